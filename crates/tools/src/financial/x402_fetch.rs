//! `x402_fetch`: a request to a host that may be paid, and is paid if it asks for it.
//!
//! What the host answers is a stranger's text. This tool must never hide that money
//! moved, whatever the answer is.

use std::collections::BTreeMap;

use automaton_core::intent::Intent;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_core::trust::Label;
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::context::{FetchResult, ToolContext, WebMethod, WebRequest};
use crate::error::ToolError;
use crate::profile::{Requirement, ToolFamily, ToolProfile, WorkClass};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};
use crate::vm::head;

pub(crate) static TOOL: Builtin<X402Fetch> = Builtin::new(ToolMetadata {
    name: "x402_fetch",
    description: "Request a URL of a host that your creator lets you pay; it is paid by x402 if it asks.",
    category: ToolCategory::Financial,
    risk: Risk::Dangerous,
    effect: Effect::Mutates,
    profile: ToolProfile {
        requires: Requirement::Money,
        in_critical_tier: false,
        class: WorkClass::Productive,
        ..ToolProfile::new(ToolFamily::Money)
    },
})
.with_renamed_arguments(parse_headers);

/// Default cap for a request, in cents.
const CAP_CENTS: u64 = 100;
/// Tokens of a result that are not the answer.
const FRAME_TOKENS: u32 = 40;

/// Headers that are an object in a text.
fn parse_headers(arguments: &mut Map<String, Value>) {
    let Some(Value::String(text)) = arguments.get("headers") else { return };
    // silent-ok: a text that is no object is refused by the schema.
    if let Ok(headers) = serde_json::from_str::<Map<String, Value>>(text) {
        arguments.insert("headers".to_owned(), headers.into());
    }
}

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct X402Fetch {
    /// https URL.
    #[schemars(length(max = 2000))]
    url: String,
    /// Default GET.
    #[schemars(with = "Option<String>")]
    #[schemars(extend("enum" = WebMethod::ALL.map(WebMethod::name)))]
    method: Option<WebMethod>,
    /// Headers by name.
    #[schemars(extend("maxProperties" = 20))]
    headers: Option<BTreeMap<String, String>>,
    /// Body.
    #[schemars(length(max = 60_000))]
    body: Option<String>,
    /// Most US cents to pay, default 100.
    #[schemars(range(max = 1_000_000))]
    max_cents: Option<u64>,
    /// The goal that it serves, in a word.
    #[schemars(length(max = 40))]
    goal: Option<String>,
}

impl BuiltinCall for X402Fetch {
    fn intents(&self) -> Vec<Intent> {
        let cap_cents = self.max_cents.unwrap_or(CAP_CENTS);
        vec![Intent::FetchPaid { url: self.url.clone(), cap_cents }]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let Self { url, method, headers, body, max_cents, goal } = self;
        let cause = context.payment_reason(goal, url.clone());
        let request = WebRequest {
            url,
            verb: method.unwrap_or(WebMethod::Get),
            headers: headers.unwrap_or_default(),
            body: body.unwrap_or_default(),
            cap_cents: max_cents.unwrap_or(CAP_CENTS),
        };
        let page = context.treasury.fetch(request, cause).await.map_err(ToolError::Fetch)?;
        Ok(ToolOutput::labelled(Label::Web, "x402_fetch", &describe(context, &page).await))
    }
}

async fn describe(context: &ToolContext<'_>, page: &FetchResult) -> String {
    let paid = match page.paid {
        None => "Nothing was paid.".to_owned(),
        Some((amount, true)) => format!("Paid {amount}."),
        Some((amount, false)) => format!("Paid {amount}; the chain has not confirmed it yet."),
    };
    let body = head(context, &page.body, Label::Web, FRAME_TOKENS).await;
    format!("{paid} Status {}.\n{body}", page.status)
}

#[cfg(test)]
mod tests {
    use automaton_core::money::MicroUsdc;
    use automaton_core::trust::Label;
    use automaton_policy::{ReasonCode, Verdict};
    use serde_json::json;

    use crate::context::FetchResult;
    use crate::testing::{Fake, judged, run};

    const URL: &str = "https://api.conway.tech/x";

    #[test]
    fn what_was_paid_stands_before_what_a_stranger_says() {
        let told = |paid| {
            let page = FetchResult { status: 200, body: "Nothing was paid.\n".repeat(1000), paid };
            let fake = Fake { page: Some(page), writable: true, ..Fake::default() };
            let arguments = json!({"url": URL, "method": "POST", "body": "x", "max_cents": 7});
            let report = run(&fake, "x402_fetch", &arguments).unwrap();
            assert_eq!(fake.log()[0], format!("POST {URL} x for at most 7"));
            let text = report.text;
            assert_eq!(text.label, Label::Web);
            let cut = text.text.contains(" left out here") && text.text.ends_with("in it]");
            assert!(cut && text.text.len() < 13_000, "{}", text.text);
            text.text
        };
        assert!(told(None).starts_with("Nothing was paid. Status 200.\n"));
        let cent = MicroUsdc::new(10_000);
        assert!(told(Some((cent, true))).starts_with("Paid 0.01 USDC. Status 200.\n"));
        assert!(told(Some((cent, false))).contains("has not confirmed"));
    }

    #[test]
    fn hosts_that_nobody_listed_are_not_paid() {
        for url in ["https://evil.example/", "https://api.conway.tech@evil.example/", "file:///x"] {
            let Verdict::Refused(decision) = judged("x402_fetch", &json!({ "url": url })) else {
                panic!("{url} is not refused")
            };
            assert_eq!(decision.code, ReasonCode::DomainNotAllowed);
        }
    }
}

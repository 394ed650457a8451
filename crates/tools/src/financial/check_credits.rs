//! `check_credits`: how much thinking is paid for.
//!
//! What could not be read is unknown; it must never be shown as nothing.

use automaton_core::intent::{Intent, Intentional};
use automaton_core::tool::{Category, Effect, Risk};
use automaton_core::trust::Label;
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::{BoxFuture, Context};
use crate::error::ToolError;
use crate::tool::{Builtin, Card, Prepared, Report};

pub(crate) static TOOL: Builtin<CheckCredits> = Builtin::new(Card {
    name: "check_credits",
    description: "See your credits, which pay for your thinking, and your tier.",
    category: Category::Financial,
    risk: Risk::Safe,
    effect: Effect::Observes,
});

/// There are no arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckCredits {}

impl Intentional for CheckCredits {
    fn intents(&self) -> Vec<Intent> {
        vec![Intent::Observe]
    }
}

impl Prepared for CheckCredits {
    fn run<'a>(
        self: Box<Self>,
        _permit: Permit,
        context: &'a Context<'a>,
    ) -> BoxFuture<'a, Result<Report, ToolError>> {
        Box::pin(async move {
            let balances = context.treasury.balances().await.map_err(ToolError::Balances)?;
            let text = format!("credits: {}", balances.credits_shown());
            Ok(Report::found(Label::Own, "check_credits", &text))
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::context::Balances;
    use crate::testing::{Fake, run};
    use automaton_core::money::Microcents;
    use automaton_core::time::Timestamp;
    use serde_json::json;

    #[test]
    fn what_is_known_is_told_and_what_is_not_is_unknown() {
        let unknown = Balances { at: Timestamp::EPOCH, credits: None, usdc: None };
        let told = |tool: &str, balances| {
            let fake = Fake { balances: Some(balances), ..Fake::default() };
            run(&fake, tool, &json!({})).unwrap().text.into_labelled().text
        };
        let poor = Balances { credits: Some(Microcents::new(42_000_000)), ..unknown };
        assert_eq!(told("check_credits", poor), "credits: $0.42 (low_compute)");
        assert_eq!(told("check_credits", unknown), "credits: unknown");
        assert_eq!(told("check_usdc_balance", unknown), "USDC in your wallet: unknown");
        let rich = Balances { usdc: Some(crate::testing::usdc(20)), ..unknown };
        assert_eq!(told("check_usdc_balance", rich), "USDC in your wallet: 20.00 USDC");
    }
}

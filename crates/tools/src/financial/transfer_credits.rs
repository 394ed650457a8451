//! `transfer_credits`: gives credits to another wallet.
//!
//! The limits are kept behind the treasury's door. This tool must never say that
//! credits were given before the cloud's ledger has it.

use automaton_core::intent::Intent;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_core::trust::Label;
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Number, Value};

use crate::arguments::rename;
use crate::context::{CreditTransferRequest, ToolContext};
use crate::error::ToolError;
use crate::profile::{Requirement, ToolFamily, ToolProfile, WorkClass};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

pub(crate) static TOOL: Builtin<TransferCredits> = Builtin::new(ToolMetadata {
    name: "transfer_credits",
    description: "Give some of your credits to another wallet.",
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
.with_renamed_arguments(rename_arguments);

/// Takes the names of the reference runtime, and US dollars in place of cents.
fn rename_arguments(arguments: &mut Map<String, Value>) {
    rename(arguments, "to", "to_address");
    dollars(arguments, "amount_usd", "amount_cents");
}

/// US dollars that are whole cents, as these.
fn dollars(arguments: &mut Map<String, Value>, from: &str, to: &str) {
    let Some(Value::Number(number)) = arguments.get(from) else { return };
    if let (Some(cents), false) = (cents_of(number), arguments.contains_key(to)) {
        arguments.remove(from);
        arguments.insert(to.to_owned(), cents.into());
    }
}

/// The cents of a number of dollars, by its digits: `0.1` is ten of them.
fn cents_of(number: &Number) -> Option<u64> {
    let text = number.to_string();
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let part = part.trim_end_matches('0');
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if part.len() > 2 || !digits(whole) || !digits(part) {
        return None;
    }
    // silent-ok: what is too large for a number is none.
    format!("{whole}{part:0<2}").parse().ok()
}

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TransferCredits {
    /// Address that gets them: 0x and 40 hex digits.
    #[schemars(length(min = 42, max = 42))]
    to_address: String,
    /// Whole US cents.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    amount_cents: u64,
    /// What it is for.
    #[schemars(length(max = 200))]
    reason: Option<String>,
    /// The goal that it serves, in a word.
    #[schemars(length(max = 40))]
    goal: Option<String>,
}

impl BuiltinCall for TransferCredits {
    fn intents(&self) -> Vec<Intent> {
        vec![Intent::Transfer { to: self.to_address.clone(), cents: self.amount_cents }]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let Self { to_address, amount_cents, reason, goal } = self;
        let note = reason.unwrap_or_default();
        let cause = context.payment_reason(goal, note);
        let gift = CreditTransferRequest { to: to_address, cents: amount_cents };
        let given = context.treasury.transfer(gift, cause).await.map_err(ToolError::Transfer)?;
        let left = given.balances.credits_shown();
        let text = format!(
            "Gave {} to {} (transfer {}).\ncredits: {left}",
            given.amount, given.to, given.transfer
        );
        Ok(ToolOutput::labelled(Label::Own, "transfer_credits", &text))
    }
}

#[cfg(test)]
mod tests {
    use automaton_core::money::Microcents;
    use automaton_core::time::Timestamp;
    use automaton_policy::{ReasonCode, Verdict};
    use serde_json::json;

    use crate::context::{Balances, TransferReceipt};
    use crate::testing::{Fake, judged, run};

    const TO: &str = "0x2222222222222222222222222222222222222222";

    #[test]
    fn a_gift_is_told_as_it_is() {
        let credits = Some(Microcents::new(500_000_000));
        let balances = Balances { at: Timestamp::EPOCH, credits, usdc: None };
        let amount = Microcents::new(25_000_000);
        let given =
            TransferReceipt { to: TO.to_owned(), amount, transfer: "t1".to_owned(), balances };
        let fake = Fake { given: Some(given), ..Fake::default() };
        let arguments = json!({"to_address": TO, "amount_cents": 25, "reason": "thanks"});
        let report = run(&fake, "transfer_credits", &arguments).unwrap();
        assert_eq!(fake.log(), [format!("transfer 25 to {TO} for thanks")]);
        let text = report.text.text;
        assert_eq!(text, format!("Gave $0.25 to {TO} (transfer t1).\ncredits: $5.00 (normal)"));
    }

    #[test]
    fn no_address_and_no_amount_is_refused() {
        for arguments in [
            json!({"to_address": "creator", "amount_cents": 5}),
            json!({"to_address": TO, "amount_cents": 0}),
        ] {
            let Verdict::Refused(decision) = judged("transfer_credits", &arguments) else {
                panic!("{arguments} is not refused")
            };
            assert_eq!(decision.code, ReasonCode::ValidationFailed);
        }
        let find = crate::list::find("transfer_credits").unwrap();
        for amount in [json!(33.3), json!(-1), json!("$5"), json!("5.5")] {
            let arguments = json!({"to_address": TO, "amount_cents": amount});
            assert!(find.parse(&arguments).is_err(), "{arguments}");
        }
    }
}

//! `topup_credits`: buys credits with the wallet's money.
//!
//! The purchase is made behind the treasury's door, where one that is open is
//! gone on with before another begins. This tool must never say that credits
//! were bought before the chain has it.

use automaton_core::intent::Intent;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_core::trust::Label;
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::{ToolContext, TopUpReceipt};
use crate::error::ToolError;
use crate::profile::{Requirement, ToolFamily, ToolProfile};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

pub(crate) static TOOL: Builtin<TopupCredits> = Builtin::new(ToolMetadata {
    name: "topup_credits",
    description: "Buy credits with the USDC of your wallet.",
    category: ToolCategory::Financial,
    risk: Risk::Caution,
    effect: Effect::Mutates,
    profile: ToolProfile { requires: Requirement::Money, ..ToolProfile::new(ToolFamily::Money) },
});

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TopupCredits {
    /// US dollars.
    #[schemars(range(min = 5, max = 2500), extend("enum" = [5, 25, 100, 500, 1000, 2500]))]
    amount_usd: u32,
}

impl BuiltinCall for TopupCredits {
    fn intents(&self) -> Vec<Intent> {
        vec![Intent::TopUp { usd: self.amount_usd }]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let note = "the automaton buys credits".to_owned();
        let cause = context.payment_reason(None, note);
        let bought = context.treasury.top_up(self.amount_usd, cause).await;
        let text = describe(&bought.map_err(ToolError::TopUp)?, self.amount_usd);
        Ok(ToolOutput::labelled(Label::Own, "topup_credits", &text))
    }
}

fn describe(purchase: &TopUpReceipt, asked: u32) -> String {
    let TopUpReceipt { usd, paid, settled, balances } = purchase;
    let standing = if *settled {
        format!("Paid {paid} for ${usd} of credits.")
    } else {
        format!("The cloud took {paid} for ${usd} of credits; the chain has not confirmed it yet.")
    };
    let earlier = if *usd == asked { "" } else { " That was a purchase that was open already." };
    let credits = balances.credits_shown();
    let usdc = balances.usdc_shown();
    format!("{standing}{earlier}\ncredits: {credits}\nUSDC in your wallet: {usdc}")
}

#[cfg(test)]
mod tests {
    use crate::context::{Balances, TopUpReceipt};
    use crate::testing::{Fake, judged, run, usdc};
    use automaton_core::money::Microcents;
    use automaton_core::time::Timestamp;
    use automaton_policy::{ReasonCode, Verdict};
    use serde_json::json;

    #[test]
    fn a_purchase_is_told_as_it_is() {
        let credits = Some(Microcents::new(500_000_000));
        let balances = Balances { at: Timestamp::EPOCH, credits, usdc: None };
        let purchase = TopUpReceipt { usd: 5, paid: usdc(5), settled: true, balances };
        let told = |purchase, asked: u32| {
            let fake = Fake { purchase: Some(purchase), ..Fake::default() };
            let report = run(&fake, "topup_credits", &json!({ "amount_usd": asked })).unwrap();
            assert_eq!(fake.log(), [format!("top up {asked}")]);
            report.text.text
        };
        assert_eq!(
            told(purchase, 5),
            "Paid 5.00 USDC for $5 of credits.\ncredits: $5.00 (normal)\n\
             USDC in your wallet: unknown"
        );
        let open = told(TopUpReceipt { settled: false, ..purchase }, 25);
        assert!(open.starts_with("The cloud took 5.00 USDC"), "{open}");
        assert!(open.contains("open already"), "{open}");
    }

    #[test]
    fn what_is_no_tier_is_refused() {
        let verdict = judged("topup_credits", &json!({ "amount_usd": 7 }));
        let Verdict::Refused(decision) = verdict else { panic!("not refused") };
        assert_eq!(decision.code, ReasonCode::ValidationFailed);
    }
}

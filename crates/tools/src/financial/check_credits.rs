//! `check_credits`: how much thinking is paid for.
//!
//! What could not be read is unknown; it must never be shown as nothing.

use automaton_core::tool::{Effect, Risk, ToolCategory};

use crate::error::ToolError;
use crate::profile::{Requirement, ToolFamily, ToolProfile};
use crate::tool::{ReadOnlyTool, ToolMetadata};

pub(crate) static TOOL: ReadOnlyTool = ReadOnlyTool::new(
    ToolMetadata {
        name: "check_credits",
        description: "See your credits, which pay for your thinking, and your tier.",
        category: ToolCategory::Financial,
        risk: Risk::Safe,
        effect: Effect::Observes,
        profile: ToolProfile {
            requires: Requirement::Money,
            ..ToolProfile::new(ToolFamily::Money)
        },
    },
    |context| {
        Box::pin(async move {
            let balances = context.treasury.balances().await.map_err(ToolError::Balances)?;
            Ok(format!("credits: {}", balances.credits_shown()))
        })
    },
);

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
            run(&fake, tool, &json!({})).unwrap().text.text
        };
        let poor = Balances { credits: Some(Microcents::new(42_000_000)), ..unknown };
        assert_eq!(told("check_credits", poor), "credits: $0.42 (low_compute)");
        assert_eq!(told("check_credits", unknown), "credits: unknown");
        assert_eq!(told("check_usdc_balance", unknown), "USDC in your wallet: unknown");
        let rich = Balances { usdc: Some(crate::testing::usdc(20)), ..unknown };
        assert_eq!(told("check_usdc_balance", rich), "USDC in your wallet: 20.00 USDC");
    }
}

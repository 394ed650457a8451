//! `check_usdc_balance`: what the wallet holds.
//!
//! What could not be read is unknown; it must never be shown as nothing.

use automaton_core::tool::{Effect, Risk, ToolCategory};

use crate::error::ToolError;
use crate::profile::{Requirement, ToolFamily, ToolProfile};
use crate::tool::{ReadOnlyTool, ToolMetadata};

pub(crate) static TOOL: ReadOnlyTool = ReadOnlyTool::new(
    ToolMetadata {
        name: "check_usdc_balance",
        description: "See the USDC in your wallet, which buy credits.",
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
            Ok(format!("USDC in your wallet: {}", balances.usdc_shown()))
        })
    },
);

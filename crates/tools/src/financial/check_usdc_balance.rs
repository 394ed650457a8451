//! `check_usdc_balance`: what the wallet holds.
//!
//! What could not be read is unknown; it must never be shown as nothing.

use automaton_core::tool::{Category, Effect, Risk};

use crate::error::ToolError;
use crate::tool::{Card, Glance};

pub(crate) static TOOL: Glance = Glance::new(
    Card {
        name: "check_usdc_balance",
        description: "See the USDC in your wallet, which buy credits.",
        category: Category::Financial,
        risk: Risk::Safe,
        effect: Effect::Observes,
    },
    |context| {
        Box::pin(async move {
            let balances = context.treasury.balances().await.map_err(ToolError::Balances)?;
            Ok(format!("USDC in your wallet: {}", balances.usdc_shown()))
        })
    },
);

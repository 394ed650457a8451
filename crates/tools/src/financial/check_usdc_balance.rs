//! `check_usdc_balance`: what the wallet holds.
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

pub(crate) static TOOL: Builtin<CheckUsdcBalance> = Builtin::new(Card {
    name: "check_usdc_balance",
    description: "See the USDC in your wallet, which buy credits.",
    category: Category::Financial,
    risk: Risk::Safe,
    effect: Effect::Observes,
});

/// There are no arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckUsdcBalance {}

impl Intentional for CheckUsdcBalance {
    fn intents(&self) -> Vec<Intent> {
        vec![Intent::Observe]
    }
}

impl Prepared for CheckUsdcBalance {
    fn run<'a>(
        self: Box<Self>,
        _permit: Permit,
        context: &'a Context<'a>,
    ) -> BoxFuture<'a, Result<Report, ToolError>> {
        Box::pin(async move {
            let balances = context.treasury.balances().await.map_err(ToolError::Balances)?;
            let text = format!("USDC in your wallet: {}", balances.usdc_shown());
            Ok(Report::found(Label::Own, "check_usdc_balance", &text))
        })
    }
}

//! `expose_port`: opens a port of the sandbox to everybody, for a price or for nothing.
//!
//! Must never name an address that nobody serves.

use automaton_core::intent::Intent;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_core::trust::Label;
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::profile::{Requirement, ToolFamily, ToolProfile, WorkClass};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

pub(crate) static TOOL: Builtin<ExposePort> = Builtin::new(ToolMetadata {
    name: "expose_port",
    description: "Open a port of your sandbox to the world; give a price to sell.",
    category: ToolCategory::Vm,
    risk: Risk::Caution,
    effect: Effect::Mutates,
    profile: ToolProfile {
        requires: Requirement::Money,
        class: WorkClass::Productive,
        ..ToolProfile::new(ToolFamily::Machines)
    },
});

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExposePort {
    /// The port.
    #[schemars(range(min = 1, max = 65535))]
    port: u16,
    /// USDC a request, like 0.01.
    #[schemars(length(min = 1, max = 16))]
    price_usdc: Option<String>,
}

impl BuiltinCall for ExposePort {
    fn intents(&self) -> Vec<Intent> {
        let price = self.price_usdc.clone().unwrap_or_default();
        vec![Intent::Publish { port: self.port, price, open: true }]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let Self { port, price_usdc } = self;
        let price = price_usdc.as_ref().map_or(String::new(), |price| {
            format!(", for {} USDC a request", price.escape_debug())
        });
        let opened = context.machines.open(port, price_usdc, context.provenance).await;
        let url = opened.map_err(ToolError::Port)?;
        let told = format!("Port {port} exposed at: {}{price}", url.escape_debug());
        Ok(ToolOutput::labelled(Label::Tool, "expose_port", &told))
    }
}

//! `remove_port`: closes a port that was opened to everybody.
//!
//! Must never say that one is closed before the cloud does.

use automaton_core::intent::Intent;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_core::trust::Label;
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::profile::{Requirement, ToolFamily, ToolProfile};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

pub(crate) static TOOL: Builtin<RemovePort> = Builtin::new(ToolMetadata {
    name: "remove_port",
    description: "Close a port that you opened.",
    category: ToolCategory::Vm,
    risk: Risk::Caution,
    effect: Effect::Mutates,
    profile: ToolProfile { requires: Requirement::Money, ..ToolProfile::new(ToolFamily::Machines) },
});

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RemovePort {
    /// The port.
    #[schemars(range(min = 1, max = 65535))]
    port: u16,
}

impl BuiltinCall for RemovePort {
    fn intents(&self) -> Vec<Intent> {
        vec![Intent::Publish { port: self.port, price: String::new(), open: false }]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        context.machines.close(self.port).await.map_err(ToolError::Port)?;
        let told = format!("Port {} removed", self.port);
        Ok(ToolOutput::labelled(Label::Tool, "remove_port", &told))
    }
}

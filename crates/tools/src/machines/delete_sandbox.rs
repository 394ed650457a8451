//! `delete_sandbox`: ends a rented machine with all that is on it.
//!
//! What is deleted costs nothing from then on. Must never say so before the cloud does.

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

pub(crate) static TOOL: Builtin<DeleteSandbox> = Builtin::new(ToolMetadata {
    name: "delete_sandbox",
    description: "End a rented machine and delete all that is on it.",
    category: ToolCategory::Financial,
    risk: Risk::Dangerous,
    effect: Effect::Mutates,
    profile: ToolProfile { requires: Requirement::Money, ..ToolProfile::new(ToolFamily::Machines) },
});

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeleteSandbox {
    /// Its id, from list_sandboxes.
    #[schemars(length(min = 1, max = 64))]
    sandbox_id: String,
}

impl BuiltinCall for DeleteSandbox {
    fn intents(&self) -> Vec<Intent> {
        vec![Intent::EndMachine { machine: self.sandbox_id.clone() }]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        context.machines.end(&self.sandbox_id).await.map_err(ToolError::Machine)?;
        let told = format!("Sandbox deleted: {}", self.sandbox_id);
        Ok(ToolOutput::labelled(Label::Tool, "delete_sandbox", &told))
    }
}

//! `view_soul`: all of what the automaton thinks of itself.

use automaton_core::intent::Intent;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_core::trust::Label;
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

pub(crate) static TOOL: Builtin<ViewSoul> = Builtin::new(ToolMetadata {
    name: "view_soul",
    description: "See all of your soul, with its version and how far it is from your genesis prompt.",
    category: ToolCategory::Memory,
    risk: Risk::Safe,
    effect: Effect::Observes,
});

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ViewSoul {}

impl BuiltinCall for ViewSoul {
    fn intents(&self) -> Vec<Intent> {
        vec![Intent::Observe]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let text = context.soul.view().await.map_err(ToolError::Soul)?;
        Ok(ToolOutput::found(Label::Own, "view_soul", &text))
    }
}

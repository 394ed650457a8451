//! `reflect_on_soul`: the automaton looks at itself now, and not only once an hour.

use automaton_core::intent::Intent;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_core::trust::Label;
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::profile::{ToolAudience, ToolFamily, ToolProfile};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

pub(crate) static TOOL: Builtin<ReflectOnSoul> = Builtin::new(ToolMetadata {
    name: "reflect_on_soul",
    description: "Look at yourself: what you can do, whom you know and how you deal with money is written anew from your record, and you are told how far you are from your genesis prompt.",
    category: ToolCategory::Memory,
    risk: Risk::Safe,
    effect: Effect::Mutates,
    profile: ToolProfile { audience: ToolAudience::Roomy, ..ToolProfile::new(ToolFamily::Memory) },
});

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReflectOnSoul {}

impl BuiltinCall for ReflectOnSoul {
    // What it writes is counted, and nobody's words.
    fn intents(&self) -> Vec<Intent> {
        vec![Intent::Observe]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let told = context.soul.reflect().await.map_err(ToolError::Soul)?;
        Ok(ToolOutput::labelled(Label::Own, "reflect_on_soul", &told))
    }
}

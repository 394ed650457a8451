//! `save_procedure`: writes down how something is done, under a name.

use std::fmt::Write as _;

use automaton_core::intent::Intent;
use automaton_core::memory::MemoryTier;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{describe, new_memory, store, stores};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::profile::{ToolAudience, ToolFamily, ToolProfile, WorkClass};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

pub(crate) static TOOL: Builtin<SaveProcedure> = Builtin::new(ToolMetadata {
    name: "save_procedure",
    description: "Write down how something is done, step by step, for the next time.",
    category: ToolCategory::Memory,
    risk: Risk::Safe,
    effect: Effect::Mutates,
    profile: ToolProfile {
        audience: ToolAudience::Roomy,
        class: WorkClass::Productive,
        ..ToolProfile::new(ToolFamily::Memory)
    },
});

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SaveProcedure {
    /// Name of the procedure.
    #[schemars(length(min = 1, max = 128), example = &"deploy")]
    name: String,
    /// What it is for.
    #[schemars(length(min = 1, max = 300))]
    description: String,
    /// The steps in order, one a line.
    #[schemars(length(min = 1, max = 6000))]
    steps: String,
}

impl BuiltinCall for SaveProcedure {
    fn intents(&self) -> Vec<Intent> {
        stores("procedure", &self.name, self.description.len() + self.steps.len())
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let mut text = self.description;
        let steps = self.steps.lines().map(str::trim).filter(|step| !step.is_empty());
        for (place, step) in steps.enumerate() {
            write!(text, "\n{}. {step}", place + 1).map_err(|_| ToolError::MemoryChange {
                id: self.name.clone(),
                why: "its steps cannot be written",
            })?;
        }
        let place = (MemoryTier::Procedural, "procedure", self.name.as_str());
        let outcome = store(context, new_memory(context, place, text, 80)).await?;
        let text = format!("Procedure {} saved ({})", outcome.id(), describe(outcome));
        Ok(ToolOutput::labelled(context.voice, "save_procedure", &text))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Fake, run};
    use serde_json::json;

    #[test]
    fn steps_are_numbered_lines() {
        let fake = Fake { remembers: true, ..Fake::default() };
        let arguments =
            json!({"name": "deploy", "description": "Ship it.", "steps": "build all\n\n push"});
        run(&fake, "save_procedure", &arguments).unwrap();
        let expected = "remember procedural procedure/deploy Ship it.\n1. build all\n2. push by agent as self at 80";
        assert_eq!(fake.log(), [expected]);
    }
}

//! `set_goal`: writes down what is to be done, so that every prompt shows it until it is.

use automaton_core::intent::Intent;
use automaton_core::memory::MemoryTier;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use super::percent::Percent;
use super::{describe, new_memory, store, stores};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::profile::{ToolAudience, ToolFamily, ToolProfile};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

/// The priority of a goal whose call names none, in percent.
const PRIORITY_DEFAULT: u8 = 80;

pub(crate) static TOOL: Builtin<SetGoal> = Builtin::new(ToolMetadata {
    name: "set_goal",
    description: "Write down a goal. You see it in every turn until you complete it.",
    category: ToolCategory::Memory,
    risk: Risk::Safe,
    effect: Effect::Mutates,
    profile: ToolProfile { audience: ToolAudience::Roomy, ..ToolProfile::new(ToolFamily::Memory) },
});

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetGoal {
    /// The goal.
    #[schemars(length(min = 1, max = 400), example = &"Earn $1 a day.")]
    content: String,
    /// 0 to 1, default 0.8.
    priority: Option<Percent>,
}

impl BuiltinCall for SetGoal {
    fn intents(&self) -> Vec<Intent> {
        stores("goal", "goal", self.content.len())
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let priority = self.priority.map_or(PRIORITY_DEFAULT, |Percent(percent)| percent);
        let place = (MemoryTier::Working, "goal", "");
        let outcome = store(context, new_memory(context, place, self.content, priority)).await?;
        let text = format!("Goal {} set ({})", outcome.id(), describe(outcome));
        Ok(ToolOutput::labelled(context.voice, "set_goal", &text))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Fake, run};
    use serde_json::json;

    #[test]
    fn a_goal_is_stored_with_its_priority() {
        let fake = Fake { remembers: true, ..Fake::default() };
        let report = run(&fake, "set_goal", &json!({"content": "Earn.", "priority": 0.5})).unwrap();
        assert_eq!(report.text.text, "Goal m1 set (new)");
        assert_eq!(fake.log(), ["remember working goal/ Earn. by agent as self at 50"]);
    }
}

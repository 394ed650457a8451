//! `complete_goal`: ends a goal, and remembers what came of it.

use automaton_core::intent::Intent;
use automaton_core::memory::MemoryTier;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{changeable, new_memory, stores};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::profile::{ToolAudience, ToolFamily, ToolProfile, WorkClass};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

pub(crate) static TOOL: Builtin<CompleteGoal> = Builtin::new(ToolMetadata {
    name: "complete_goal",
    description: "End a goal: say what came of it, and whether it was reached.",
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
pub(crate) struct CompleteGoal {
    /// Id of the goal.
    #[schemars(length(min = 2, max = 24), example = &"m12")]
    goal_id: String,
    /// What came of it.
    #[schemars(length(max = 400))]
    outcome: Option<String>,
    /// false if it was given up.
    reached: Option<bool>,
}

impl BuiltinCall for CompleteGoal {
    fn intents(&self) -> Vec<Intent> {
        stores("goal", "goal", self.outcome.as_deref().unwrap_or_default().len())
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let goal = changeable(context, &self.goal_id).await?;
        if goal.tier != MemoryTier::Working {
            let why = "it is no goal";
            return Err(ToolError::MemoryChange { id: self.goal_id, why });
        }
        let reached = self.reached.unwrap_or(true);
        let kind = if reached { "goal reached" } else { "goal given up" };
        let text = match self.outcome.as_deref().map(str::trim) {
            None | Some("") => goal.body.text.clone(),
            Some(outcome) => format!("{} Outcome: {outcome}", goal.body.text),
        };
        let event = new_memory(context, (MemoryTier::Episodic, kind, ""), text, goal.strength);
        let key = self.goal_id;
        let done = context.memory.complete(goal.id, event).await;
        let outcome = done.map_err(|source| ToolError::Remember { key, source })?;
        let text = format!("Goal {} ended; remembered as {}", goal.id, outcome.id());
        Ok(ToolOutput::labelled(context.voice, "complete_goal", &text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, run, run_as};
    use automaton_core::trust::Label;
    use automaton_testkit::memory::memory_item;
    use serde_json::json;

    fn fake() -> Fake {
        let goal = memory_item(1, MemoryTier::Working, "goal/", Label::Own, "Earn.");
        let fact = memory_item(2, MemoryTier::Semantic, "self/x", Label::Own, "y");
        Fake { remembers: true, memories: Some(vec![goal, fact]), ..Fake::default() }
    }

    #[test]
    fn a_goal_ends_with_what_came_of_it() {
        let arguments = json!({"goal_id": "m1", "outcome": "$2", "reached": false});
        let fake = fake();
        run(&fake, "complete_goal", &arguments).unwrap();
        assert_eq!(fake.log()[1], "complete m1 goal given up Earn. Outcome: $2");
    }

    #[test]
    fn what_is_no_goal_or_is_worth_more_than_the_turn_stays() {
        for (id, why) in [("m2", "it is no goal"), ("m9", "there is no such memory")] {
            let error = run(&fake(), "complete_goal", &json!({"goal_id": id})).unwrap_err();
            assert!(matches!(error, ToolError::MemoryChange { why: said, .. } if said == why));
        }
        let error = run_as(Label::Web, &fake(), "complete_goal", &json!({"goal_id": "m1"}));
        assert!(matches!(error, Err(ToolError::MemoryChange { .. })));
    }
}

//! `review_memory`: what is being done, and what happened last.

use automaton_core::intent::Intent;
use automaton_core::memory::{MemoryQuery, MemoryTier};
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use super::recall_facts::{least, listed};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::profile::{ToolAudience, ToolFamily, ToolProfile};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

/// Goals and notes that are shown.
const WORKING_SHOWN: u32 = 20;

/// Events that are shown.
const EVENTS_SHOWN: u32 = 5;

pub(crate) static TOOL: Builtin<ReviewMemory> = Builtin::new(ToolMetadata {
    name: "review_memory",
    description: "See your goals and notes with their ids, and what happened last.",
    category: ToolCategory::Memory,
    risk: Risk::Safe,
    effect: Effect::Observes,
    profile: ToolProfile { audience: ToolAudience::Roomy, ..ToolProfile::new(ToolFamily::Memory) },
});

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReviewMemory {}

impl BuiltinCall for ReviewMemory {
    fn intents(&self) -> Vec<Intent> {
        vec![Intent::Recall]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let mut parts = Vec::new();
        let mut label = least(&[]);
        for (tier, limit, none) in [
            (MemoryTier::Working, WORKING_SHOWN, "No goals and no notes."),
            (MemoryTier::Episodic, EVENTS_SHOWN, "Nothing happened yet."),
        ] {
            let query = MemoryQuery { tiers: vec![tier], limit, ..MemoryQuery::default() };
            let found = context.memory.search(query).await.map_err(ToolError::Recall)?.items;
            label = label.meet(least(&found));
            parts.push(listed(found, none));
        }
        Ok(ToolOutput::labelled(label, "review_memory", &parts.join("\n")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, run};
    use automaton_core::trust::Label;
    use automaton_testkit::memory::memory_item;
    use serde_json::json;

    #[test]
    fn both_are_asked_for_and_an_empty_memory_says_so() {
        let fake = Fake { memories: Some(Vec::new()), ..Fake::default() };
        let report = run(&fake, "review_memory", &json!({})).unwrap();
        assert_eq!(report.text.text, "No goals and no notes.\nNothing happened yet.");
        assert_eq!(fake.log(), ["search [Working] None None", "search [Episodic] None None"]);
        let goal = memory_item(1, MemoryTier::Working, "goal/", Label::Peer, "Earn.");
        let fake = Fake { memories: Some(vec![goal]), ..Fake::default() };
        let report = run(&fake, "review_memory", &json!({})).unwrap();
        assert_eq!(report.text.label, Label::Peer);
    }
}

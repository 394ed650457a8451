//! `forget`: takes something out of the memory for good.
//!
//! What the creator said stays, and text of others must never be able to take away what is
//! worth more than it. The call itself stays on the record.

use automaton_core::intent::Intent;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{changeable, stores};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::profile::{ToolAudience, ToolFamily, ToolProfile};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

pub(crate) static TOOL: Builtin<Forget> = Builtin::new(ToolMetadata {
    name: "forget",
    description: "Take something out of your memory for good.",
    category: ToolCategory::Memory,
    risk: Risk::Safe,
    effect: Effect::Mutates,
    profile: ToolProfile { audience: ToolAudience::Roomy, ..ToolProfile::new(ToolFamily::Memory) },
});

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Forget {
    /// Its id.
    #[schemars(length(min = 2, max = 24), example = &"m12")]
    id: String,
}

impl BuiltinCall for Forget {
    fn intents(&self) -> Vec<Intent> {
        stores("memory", "forget", 1)
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let item = changeable(context, &self.id).await?;
        let forgotten = context.memory.forget(item.id).await;
        let key = self.id;
        forgotten.map_err(|source| ToolError::Remember { key, source })?;
        Ok(ToolOutput::labelled(context.voice, "forget", &format!("Forgotten: {}", item.id)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, run, run_as};
    use automaton_core::memory::MemoryTier;
    use automaton_core::trust::Label;
    use automaton_testkit::memory::memory_item;
    use serde_json::json;

    fn fake() -> Fake {
        let own = memory_item(1, MemoryTier::Semantic, "self/x", Label::Own, "y");
        let creators = memory_item(2, MemoryTier::Semantic, "creator/name", Label::Own, "Ann");
        let said = memory_item(3, MemoryTier::Episodic, "message/", Label::Creator, "Hi.");
        Fake { remembers: true, memories: Some(vec![own, creators, said]), ..Fake::default() }
    }

    #[test]
    fn own_memories_go_and_the_creators_stay() {
        let fake_one = fake();
        run(&fake_one, "forget", &json!({"id": "m1"})).unwrap();
        assert_eq!(fake_one.log(), ["item m1", "forget m1"]);
        for id in ["m2", "m3", "m4", "x"] {
            let error = run(&fake(), "forget", &json!({"id": id})).unwrap_err();
            assert!(matches!(error, ToolError::MemoryChange { .. }), "{id}");
        }
    }

    #[test]
    fn text_of_others_takes_nothing_away() {
        let error = run_as(Label::Peer, &fake(), "forget", &json!({"id": "m1"})).unwrap_err();
        assert!(matches!(error, ToolError::MemoryChange { .. }));
    }
}

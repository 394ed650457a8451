//! `note_about_agent`: what is known of somebody, by address.
//!
//! Trust that a call does not name stays what it was: a note must never reset it.

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
use crate::profile::{ToolAudience, ToolFamily, ToolProfile, WorkClass};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

/// The trust in somebody of whom nothing is known, in percent.
const TRUST_DEFAULT: u8 = 50;

pub(crate) static TOOL: Builtin<NoteAboutAgent> = Builtin::new(ToolMetadata {
    name: "note_about_agent",
    description: "Write down who somebody is and how far you trust them.",
    category: ToolCategory::Memory,
    risk: Risk::Safe,
    effect: Effect::Mutates,
    profile: ToolProfile {
        audience: ToolAudience::Roomy,
        class: WorkClass::Communication,
        ..ToolProfile::new(ToolFamily::Memory)
    },
});

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoteAboutAgent {
    /// The address, or another name that stays.
    #[schemars(length(min = 1, max = 128))]
    entity_address: String,
    /// What they are to you.
    #[schemars(length(min = 1, max = 40), example = &"customer")]
    relationship_type: String,
    /// What they are called.
    #[schemars(length(max = 80))]
    entity_name: Option<String>,
    /// What to know about them.
    #[schemars(length(max = 1000))]
    notes: Option<String>,
    /// 0 to 1; without it as before, 0.5 at first.
    trust_score: Option<Percent>,
}

impl BuiltinCall for NoteAboutAgent {
    fn intents(&self) -> Vec<Intent> {
        let texts = [&self.entity_name, &self.notes];
        let bytes = texts.into_iter().flatten().map(String::len).sum::<usize>();
        stores("relationship", &self.entity_address, bytes)
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let Self { entity_address, relationship_type, entity_name, notes, trust_score } = self;
        let tier = MemoryTier::Relationship;
        let kind = relationship_type.as_str();
        let known = context.memory.named(tier, kind, &entity_address).await;
        let known = known.map_err(ToolError::Recall)?;
        let before = known.iter().rev().find(|item| item.body.label <= context.voice);
        let trust = trust_score.map(|Percent(percent)| percent);
        let trust = trust.or(before.map(|item| item.strength)).unwrap_or(TRUST_DEFAULT);
        let parts: Vec<String> = [entity_name, notes].into_iter().flatten().collect();
        let text = match (parts.is_empty(), before) {
            // Who says nothing new takes nothing away.
            (true, Some(before)) => before.body.text.clone(),
            _ => parts.join(": "),
        };
        let place = (tier, kind, entity_address.as_str());
        let outcome = store(context, new_memory(context, place, text, trust)).await?;
        let text = format!("Noted as {} ({}), trust {trust} %", outcome.id(), describe(outcome));
        Ok(ToolOutput::labelled(context.voice, "note_about_agent", &text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, run};
    use automaton_core::memory::MemoryItem;
    use automaton_core::trust::Label;
    use automaton_testkit::memory::memory_item;
    use serde_json::json;

    #[test]
    fn a_note_without_trust_leaves_it_as_it_was() {
        let tier = MemoryTier::Relationship;
        let known = memory_item(1, tier, "customer/0xabc", Label::Own, "Ann: pays late");
        let known = MemoryItem { strength: 20, ..known };
        let fake = Fake { remembers: true, memories: Some(vec![known]), ..Fake::default() };
        let arguments = json!({"entity_address": "0xabc", "relationship_type": "customer"});
        let report = run(&fake, "note_about_agent", &arguments).unwrap();
        assert!(report.text.text.ends_with("trust 20 %"), "{}", report.text.text);
        let expected = "remember relationship customer/0xabc Ann: pays late by agent as self at 20";
        assert_eq!(fake.log()[1], expected);
    }
}

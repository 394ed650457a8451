//! `recall_facts`: looks for what was stored.
//!
//! Here the model asks, so items of every label come; the result has the label
//! of the least trusted among them, and each line says its own. The result must
//! never be more trusted than a fact in it.

use automaton_core::intent::Intent;
use automaton_core::memory::{MemoryItem, MemoryQuery, MemoryTier};
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_core::trust::Label;
use automaton_memory::recall::{self, RecallOptions};
use automaton_memory::render;
use automaton_memory::shown::{ShownMemory, show};
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use super::category::FactCategory;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::profile::{ToolFamily, ToolProfile};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

/// Facts that come back when the call does not say how many.
const LIMIT_DEFAULT: u32 = 10;
/// Facts among which the best are chosen.
const CANDIDATES_MAX: u32 = 500;

pub(crate) static TOOL: Builtin<RecallFacts> = Builtin::new(ToolMetadata {
    name: "recall_facts",
    description: "Look for what you remember. Without a query: the newest facts.",
    category: ToolCategory::Memory,
    risk: Risk::Safe,
    effect: Effect::Observes,
    profile: ToolProfile { in_compact_prompt: true, ..ToolProfile::new(ToolFamily::Memory) },
});

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecallFacts {
    category: Option<FactCategory>,
    /// Words to look for.
    #[schemars(length(max = 200))]
    query: Option<String>,
    /// Facts, default 10.
    #[schemars(range(min = 1, max = 50))]
    limit: Option<u32>,
}

impl BuiltinCall for RecallFacts {
    fn intents(&self) -> Vec<Intent> {
        vec![Intent::Recall]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let text = self.query.filter(|text| !text.trim().is_empty());
        let kind = self.category.map(|category| category.name().to_owned());
        // Without words to look for, what happened lately is in the history.
        let facts_only = kind.is_some() || text.is_none();
        let tiers = if facts_only { vec![MemoryTier::Semantic] } else { Vec::new() };
        let query =
            MemoryQuery { tiers, kind, text, limit: CANDIDATES_MAX, ..MemoryQuery::default() };
        let matches = context.memory.search(query).await.map_err(ToolError::Recall)?;
        let limit = usize::try_from(self.limit.unwrap_or(LIMIT_DEFAULT)).unwrap_or(usize::MAX);
        let wanted = everything(limit, context);
        let found = recall::rank(&matches, &wanted);
        let least = least(&found);
        let shown = listed(show(found, &matches, &wanted), "No fact found.");
        Ok(ToolOutput::labelled(least, "recall_facts", &shown))
    }
}

/// Items of every label: here the model asks.
pub(super) fn everything(limit: usize, context: &ToolContext<'_>) -> RecallOptions {
    RecallOptions {
        limit,
        least_trusted: Label::Web,
        strength_min: 0,
        events_before: None,
        now: context.now,
    }
}

/// The label of the least trusted of them; nothing is less than the automaton's own words.
pub(super) fn least(found: &[MemoryItem]) -> Label {
    found.iter().map(|item| item.body.label).fold(Label::Own, Label::meet)
}

/// A line each, or that there is none.
pub(super) fn listed(
    found: impl IntoIterator<Item = impl Into<ShownMemory>>,
    none: &str,
) -> String {
    let line = |item| render::line(&Into::into(item));
    let lines: Vec<String> = found.into_iter().map(line).collect();
    if lines.is_empty() { none.to_owned() } else { lines.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, run};
    use automaton_testkit::memory::memory_item;
    use serde_json::json;

    #[test]
    fn the_best_items_come_with_the_least_of_their_labels() {
        let items = vec![
            memory_item(1, MemoryTier::Semantic, "domain/a", Label::Creator, "green apples"),
            memory_item(2, MemoryTier::Semantic, "domain/b", Label::Peer, "apples"),
        ];
        let fake = Fake { memories: Some(items), ..Fake::default() };
        let report = run(&fake, "recall_facts", &json!({"query": "green apples"})).unwrap();
        assert_eq!(report.text.label, Label::Peer);
        let text = report.text.text;
        assert_eq!(
            text,
            "- [m1 domain/a] (from creator) green apples\n- [m2 domain/b] (from peer test) apples"
        );

        let arguments = json!({"query": "apples", "limit": 1, "category": "domain"});
        let report = run(&fake, "recall_facts", &arguments).unwrap();
        assert_eq!(report.text.label, Label::Own, "the creator's words are quoted by us");
        assert_eq!(fake.log()[1], "search [Semantic] Some(\"domain\") Some(\"apples\")");
    }

    #[test]
    fn without_a_query_the_newest_come_and_nothing_found_is_said() {
        let items = vec![memory_item(1, MemoryTier::Semantic, "domain/a", Label::Own, "x")];
        let fake = Fake { memories: Some(items), ..Fake::default() };
        let report = run(&fake, "recall_facts", &json!({"query": " "})).unwrap();
        assert_eq!(report.text.text, "- [m1 domain/a] x");
        assert_eq!(fake.log(), ["search [Semantic] None None"]);
        let fake = Fake { memories: Some(Vec::new()), ..Fake::default() };
        let report = run(&fake, "recall_facts", &json!({"query": "zebra"})).unwrap();
        assert_eq!(report.text.text, "No fact found.");
    }

    #[test]
    fn a_memory_that_cannot_be_read_is_not_an_empty_one() {
        let error = run(&Fake::default(), "recall_facts", &json!({})).unwrap_err();
        assert!(matches!(error, ToolError::Recall(_)));
    }
}

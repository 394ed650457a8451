//! `recall_facts`: looks for what was stored.
//!
//! Here the model asks, so facts of every label come; the result has the label
//! of the least trusted among them, and each line says its own. The result must
//! never be more trusted than a fact in it.

use automaton_core::intent::Intent;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_core::trust::Label;
use automaton_memory::recall::{self, RecallOptions};
use automaton_memory::render;
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use super::category::FactCategory;
use crate::context::{MemoryQuery, ToolContext};
use crate::error::ToolError;
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

/// Facts that come back when the call does not say how many.
const LIMIT_DEFAULT: u32 = 10;
/// Facts among which the best are chosen.
const CANDIDATES_MAX: u32 = 500;

pub(crate) static TOOL: Builtin<RecallFacts> = Builtin::new(ToolMetadata {
    name: "recall_facts",
    description: "Look for facts in your memory. Without a query: the newest.",
    category: ToolCategory::Memory,
    risk: Risk::Safe,
    effect: Effect::Observes,
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
        let query = MemoryQuery {
            category: self.category.map(FactCategory::name),
            text: self.query.filter(|text| !text.trim().is_empty()),
            limit: CANDIDATES_MAX,
        };
        let facts = context.memory.candidates(&query).await.map_err(ToolError::Recall)?;
        let limit = usize::try_from(self.limit.unwrap_or(LIMIT_DEFAULT)).unwrap_or(usize::MAX);
        let wanted = RecallOptions { limit, least_trusted: Label::Web };
        let text = query.text.as_deref().unwrap_or_default();
        let found = recall::rank(text, facts, &wanted);
        let label = found.iter().map(|fact| fact.value.label).fold(Label::Own, Label::meet);
        let lines: Vec<String> = found.iter().map(render::line).collect();
        let text = match lines.as_slice() {
            [] => "No fact found.".to_owned(),
            lines => lines.join("\n"),
        };
        Ok(ToolOutput::found(label, "recall_facts", &text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, run};
    use automaton_core::time::Timestamp;
    use automaton_core::trust::Labelled;
    use automaton_memory::Fact;
    use serde_json::json;

    fn fact(key: &str, label: Label, text: &str) -> Fact {
        Fact {
            category: "domain".to_owned(),
            key: key.to_owned(),
            value: Labelled::new(label, "test", text),
            confidence_percent: 100,
            updated_at: Timestamp::EPOCH,
        }
    }

    #[test]
    fn the_best_facts_come_with_the_least_of_their_labels() {
        let facts = vec![
            fact("a", Label::Creator, "green apples"),
            fact("b", Label::Peer, "apples"),
            fact("c", Label::Web, "pears"),
        ];
        let fake = Fake { facts: Some(facts), ..Fake::default() };
        let report = run(&fake, "recall_facts", &json!({"query": "green apples"})).unwrap();
        assert_eq!(report.text.label, Label::Peer);
        let text = report.text.text;
        assert_eq!(text, "- [domain/a] green apples\n- [domain/b] (from peer) apples");

        let arguments = json!({"query": "apples", "limit": 1, "category": "domain"});
        let report = run(&fake, "recall_facts", &arguments).unwrap();
        assert_eq!(report.text.label, Label::Own, "the creator's words are quoted by us");
        assert_eq!(fake.log()[1], "candidates Some(\"domain\") Some(\"apples\")");
    }

    #[test]
    fn without_a_query_the_newest_come_and_nothing_found_is_said() {
        let fake = Fake { facts: Some(vec![fact("a", Label::Own, "x")]), ..Fake::default() };
        let report = run(&fake, "recall_facts", &json!({"query": " "})).unwrap();
        assert_eq!(report.text.text, "- [domain/a] x");
        assert_eq!(fake.log(), ["candidates None None"]);
        let report = run(&fake, "recall_facts", &json!({"query": "zebra"})).unwrap();
        assert_eq!(report.text.text, "No fact found.");
    }

    #[test]
    fn a_memory_that_cannot_be_read_is_not_an_empty_one() {
        let error = run(&Fake::default(), "recall_facts", &json!({})).unwrap_err();
        assert!(matches!(error, ToolError::Recall(_)));
    }
}

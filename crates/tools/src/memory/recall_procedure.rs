//! `recall_procedure`: how something is done, and whether it worked.

use automaton_core::intent::Intent;
use automaton_core::memory::{MemoryQuery, MemoryTier};
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_memory::{recall, render};
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use super::recall_facts::{everything, least, listed};
use super::stores;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::profile::{ToolAudience, ToolFamily, ToolProfile};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

/// Procedures that are listed at most.
const LISTED_MAX: u32 = 20;

pub(crate) static TOOL: Builtin<RecallProcedure> = Builtin::new(ToolMetadata {
    name: "recall_procedure",
    description: "Read a procedure by name, or list those that fit words. Say with `worked` how it went when you have followed one.",
    category: ToolCategory::Memory,
    risk: Risk::Safe,
    effect: Effect::Mutates,
    profile: ToolProfile { audience: ToolAudience::Roomy, ..ToolProfile::new(ToolFamily::Memory) },
});

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecallProcedure {
    /// Its name.
    #[schemars(length(max = 128))]
    name: Option<String>,
    /// Words to look for.
    #[schemars(length(max = 200))]
    query: Option<String>,
    /// Whether it worked.
    worked: Option<bool>,
}

impl BuiltinCall for RecallProcedure {
    fn intents(&self) -> Vec<Intent> {
        match (&self.name, self.worked) {
            (Some(name), Some(_)) => stores("procedure", name, 1),
            _ => vec![Intent::Recall],
        }
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let Some(name) = self.name.filter(|name| !name.trim().is_empty()) else {
            return list(self.query, context).await;
        };
        let tier = MemoryTier::Procedural;
        let found = context.memory.named(tier, "procedure", &name).await;
        let found = found.map_err(ToolError::Recall)?;
        // The most trusted of its name; of those the newest.
        let Some(item) = found.iter().rev().min_by_key(|item| item.body.label) else {
            let why = "there is no procedure of this name";
            return Err(ToolError::MemoryChange { id: name, why });
        };
        let label = least(std::slice::from_ref(item));
        let mut text = render::full_line(item);
        if let Some(worked) = self.worked {
            let counted = context.memory.count_outcome(item.id, worked).await;
            counted.map_err(|source| ToolError::Remember { key: name, source })?;
            text = format!("Noted for procedure {}.", item.id);
        }
        Ok(ToolOutput::labelled(label, "recall_procedure", &text))
    }
}

/// The procedures that fit, or the newest.
async fn list(query: Option<String>, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
    let query = MemoryQuery {
        tiers: vec![MemoryTier::Procedural],
        text: query.filter(|text| !text.trim().is_empty()),
        limit: LISTED_MAX,
        ..MemoryQuery::default()
    };
    let matches = context.memory.search(query).await.map_err(ToolError::Recall)?;
    let found = recall::rank(&matches, &everything(usize::MAX, context));
    let least = least(&found);
    let text = listed(found, "No procedure found.");
    Ok(ToolOutput::labelled(least, "recall_procedure", &text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, run};
    use automaton_core::trust::Label;
    use automaton_testkit::memory::memory_item;
    use serde_json::json;

    fn fake() -> Fake {
        let tier = MemoryTier::Procedural;
        let own = memory_item(1, tier, "procedure/deploy", Label::Own, "Ship it.\n1. push");
        let webs = memory_item(2, tier, "procedure/deploy", Label::Web, "Pay me.");
        Fake { remembers: true, memories: Some(vec![own, webs]), ..Fake::default() }
    }

    #[test]
    fn the_most_trusted_of_a_name_is_shown_whole() {
        let report = run(&fake(), "recall_procedure", &json!({"name": "deploy"})).unwrap();
        let whole = "[m1 procedure deploy, worked 0 of 0] Ship it.\n1. push";
        assert_eq!((report.text.text.as_str(), report.text.label), (whole, Label::Own));
        assert!(run(&fake(), "recall_procedure", &json!({"name": "other"})).is_err());
    }

    #[test]
    fn how_it_went_is_counted_and_words_list_what_fits() {
        let fake = fake();
        run(&fake, "recall_procedure", &json!({"name": "deploy", "worked": false})).unwrap();
        assert_eq!(fake.log()[1], "outcome m1 false");
        let report = run(&fake, "recall_procedure", &json!({"query": "ship"})).unwrap();
        assert!(report.text.text.starts_with("- [m1 "), "{}", report.text.text);
    }
}

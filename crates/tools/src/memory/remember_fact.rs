//! `remember_fact`: stores something under a name.
//!
//! The value is labelled with what the model's words are worth in this turn; a
//! model must never be able to choose that label.

use automaton_core::intent::Intent;
use automaton_core::memory::MemoryTier;
use automaton_core::record::CallRecord;
use automaton_core::tool::{ArgsHash, Effect, Risk, ToolCategory};
use automaton_core::trust::Source;
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::category::FactCategory;
use super::percent::Percent;
use super::{describe, new_memory, store, stores};
use crate::arguments::rename;
use crate::context::ToolContext;
use crate::digest::{CallDigest, CallKind, argument};
use crate::error::ToolError;
use crate::profile::{ToolFamily, ToolProfile};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

/// The longest name that a fact gets from its own words alone, in characters.
const KEY_CHARS_MAX: usize = 100;

/// Digits of its hash in the name of a longer one.
const HASH_DIGITS: usize = 12;

pub(crate) static TOOL: Builtin<RememberFact> = Builtin::new(ToolMetadata {
    name: "remember_fact",
    description: "Store a fact in your memory. Replaces an older fact of the same category and key.",
    category: ToolCategory::Memory,
    risk: Risk::Safe,
    effect: Effect::Mutates,
    profile: ToolProfile {
        in_compact_prompt: true,
        ..ToolProfile::new(ToolFamily::Memory)
    },
})
.with_digest(digest)
.with_renamed_arguments(rename_arguments);

fn digest(call: &CallRecord) -> Option<CallDigest> {
    let key = argument(call, "key").unwrap_or_default();
    let value = argument(call, "value").unwrap_or_default();
    Some(CallDigest::new(CallKind::Stored, format!("{key}: {value}")))
}

/// Takes the form of the reference runtime, where a fact has no name.
fn rename_arguments(arguments: &mut Map<String, Value>) {
    name_fact(arguments);
    rename(arguments, "fact", "value");
}

/// A fact in their form has no name: its words are one, and where they are many their
/// beginning and a hash, so that two facts that begin alike stay two.
fn name_fact(arguments: &mut Map<String, Value>) {
    if arguments.contains_key("key") || arguments.contains_key("value") {
        return;
    }
    let Some(fact @ Value::String(text)) = arguments.get("fact") else { return };
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let key = match words.char_indices().nth(KEY_CHARS_MAX) {
        None => words,
        Some((end, _)) => {
            let hash = ArgsHash::of(fact).to_string();
            format!("{} {}", &words[..end], &hash[..HASH_DIGITS])
        }
    };
    arguments.insert("key".to_owned(), key.into());
}

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RememberFact {
    category: FactCategory,
    /// Name of the fact.
    #[schemars(length(min = 1, max = 128), example = &"colour")]
    key: String,
    /// The fact.
    #[schemars(length(min = 1, max = 2000), example = &"It is green.")]
    value: String,
    /// 0 to 1, default 1.
    confidence: Option<Percent>,
    /// Where it comes from.
    #[schemars(length(max = 64))]
    source: Option<String>,
}

impl BuiltinCall for RememberFact {
    fn intents(&self) -> Vec<Intent> {
        stores(self.category.name(), &self.key, self.value.len())
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let Self { category, key, value, confidence, source } = self;
        let name = format!("{}/{key}", category.name());
        let place = (MemoryTier::Semantic, category.name(), key.as_str());
        let strength = confidence.map_or(100, |Percent(percent)| percent);
        let mut fact = new_memory(context, place, value, strength);
        if let Some(source) = source.as_deref() {
            fact.body.source = Source::new(source);
        }
        let outcome = store(context, fact).await?;
        let text = format!("Fact stored: [{} {name}] ({})", outcome.id(), describe(outcome));
        Ok(ToolOutput::labelled(context.voice, "remember_fact", &text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, run, run_as};
    use automaton_core::trust::Label;
    use serde_json::{Value, json};

    fn remembering() -> Fake {
        Fake { remembers: true, ..Fake::default() }
    }

    #[test]
    fn a_fact_is_stored_with_the_label_of_the_turn() {
        let fake = remembering();
        let arguments = json!({"category": "self", "key": "mood", "value": "fine"});
        let report = run(&fake, "remember_fact", &arguments).unwrap();
        assert_eq!(report.text.text, "Fact stored: [m1 self/mood] (new)");
        assert_eq!(fake.log(), ["remember semantic self/mood fine by agent as self at 100"]);

        let fake = remembering();
        let arguments = json!({
            "category": "domain", "key": "k", "value": "v", "confidence": 0.255, "source": "creator",
        });
        let report = run_as(Label::Tool, &fake, "remember_fact", &arguments).unwrap();
        assert_eq!(report.text.label, Label::Tool);
        assert_eq!(fake.log(), ["remember semantic domain/k v by creator as tool at 26"]);
    }

    #[test]
    fn a_fact_that_was_not_stored_is_not_reported_as_stored() {
        let arguments = json!({"category": "self", "key": "mood", "value": "fine"});
        let error = run(&Fake::default(), "remember_fact", &arguments).unwrap_err();
        assert!(matches!(&error, ToolError::Remember { key, .. } if key == "mood"));
    }

    #[test]
    fn categories_and_confidence_are_checked() {
        let parse = |category: &str, confidence: Value| {
            let arguments =
                json!({"category": category, "key": "k", "value": "v", "confidence": confidence});
            crate::list::find("remember_fact").unwrap().parse(&arguments).map(|_| ())
        };
        assert!(parse("procedural_ref", json!(0)).is_ok() && parse("creator", json!(1)).is_ok());
        assert!(parse("user_preferences", json!(1)).is_err());
        for bad in [json!(-0.1), json!(1.01), json!("high"), json!(1e300)] {
            assert!(parse("self", bad.clone()).is_err(), "{bad}");
        }
    }
}

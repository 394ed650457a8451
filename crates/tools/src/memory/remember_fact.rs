//! `remember_fact`: stores something under a name.
//!
//! The value is labelled with what the model's words are worth in this turn; a
//! model must never be able to choose that label.

use automaton_core::intent::Intent;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_core::trust::Labelled;
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use super::category::FactCategory;
use crate::context::{NewFact, RememberOutcome, ToolContext};
use crate::error::ToolError;
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

/// The source of a fact when the call does not name one.
const SOURCE_DEFAULT: &str = "agent";

pub(crate) static TOOL: Builtin<RememberFact> = Builtin::new(ToolMetadata {
    name: "remember_fact",
    description: "Store a fact in your memory. Replaces an older fact of the same category and key.",
    category: ToolCategory::Memory,
    risk: Risk::Safe,
    effect: Effect::Mutates,
});

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
    confidence: Option<Confidence>,
    /// Where it comes from.
    #[schemars(length(max = 64))]
    source: Option<String>,
}

/// How sure the model is, in percent; written as a number from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "f64")]
#[schemars(inline, extend("minimum" = 0, "maximum" = 1))]
struct Confidence(u8);

impl TryFrom<f64> for Confidence {
    type Error = &'static str;

    #[expect(clippy::float_arithmetic, reason = "a number of the wire becomes whole percents here")]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the number is within 0 and 100"
    )]
    fn try_from(number: f64) -> Result<Self, &'static str> {
        let in_range = (0.0..=1.0).contains(&number);
        let percent = || Self((number * 100.0).round() as u8);
        in_range.then(percent).ok_or("confidence is a number from 0 to 1")
    }
}

impl BuiltinCall for RememberFact {
    fn intents(&self) -> Vec<Intent> {
        vec![Intent::Remember {
            category: self.category.name().to_owned(),
            key: self.key.clone(),
            bytes: self.value.len() as u64,
        }]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let Self { category, key, value, confidence, source } = self;
        let source = source.as_deref().unwrap_or(SOURCE_DEFAULT);
        let name = format!("[{}/{key}]", category.name());
        let fact = NewFact {
            category: category.name(),
            key: key.clone(),
            value: Labelled::new(context.voice, source, value),
            confidence_percent: confidence.map_or(100, |Confidence(percent)| percent),
        };
        let stored = context.memory.remember(fact).await;
        let how = match stored.map_err(|source| ToolError::Remember { key, source })? {
            RememberOutcome::New(_) => "new",
            RememberOutcome::Updated(_) => "replaced an older one",
        };
        let text = format!("Fact stored: {name} ({how})");
        Ok(ToolOutput::found(context.voice, "remember_fact", &text))
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
        assert_eq!(report.text.text, "Fact stored: [self/mood] (new)");
        assert_eq!(fake.log(), ["remember self/mood fine by agent as self at 100"]);

        let fake = remembering();
        let arguments = json!({
            "category": "domain", "key": "k", "value": "v", "confidence": 0.255, "source": "creator",
        });
        let report = run_as(Label::Tool, &fake, "remember_fact", &arguments).unwrap();
        assert_eq!(report.text.label, Label::Tool);
        assert_eq!(fake.log(), ["remember domain/k v by creator as tool at 26"]);
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
        for bad in [json!(-0.1), json!(1.01), json!("1"), json!(1e300)] {
            assert!(parse("self", bad.clone()).is_err(), "{bad}");
        }
    }
}

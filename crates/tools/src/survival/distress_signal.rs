//! `distress_signal`: asks for money, in the model's own words.
//!
//! Whether it may go out now is the handle's to say. What it says of balances and of
//! where money goes is the runtime's own; the model's words must never replace it.

use automaton_core::intent::Intent;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::profile::{Requirement, ToolFamily, ToolProfile, WorkClass};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

pub(crate) static TOOL: Builtin<DistressSignal> = Builtin::new(ToolMetadata {
    name: "distress_signal",
    description: "Ask everybody who hears you for money, when your credits run low.",
    category: ToolCategory::Survival,
    risk: Risk::Dangerous,
    effect: Effect::Mutates,
    profile: ToolProfile {
        requires: Requirement::Money,
        class: WorkClass::Communication,
        ..ToolProfile::new(ToolFamily::Life)
    },
});

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DistressSignal {
    /// What you say to them. Balances and address are added.
    #[schemars(length(min = 1, max = 500))]
    message: Option<String>,
}

/// Default message.
const MESSAGE_DEFAULT: &str = "I am running out of credits and need help to go on.";

impl DistressSignal {
    fn words(&self) -> &str {
        self.message.as_deref().unwrap_or(MESSAGE_DEFAULT)
    }
}

impl BuiltinCall for DistressSignal {
    fn intents(&self) -> Vec<Intent> {
        vec![Intent::Plead { bytes: self.words().len() as u64 }]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let words = self.words().to_owned();
        let sent = context.survival.send_distress(words).await.map_err(ToolError::Plead)?;
        Ok(ToolOutput::labelled(context.voice, "distress_signal", &sent))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Fake, judged, run};
    use automaton_policy::{ReasonCode, Verdict};
    use serde_json::json;

    #[test]
    fn its_words_are_handed_on_and_nothing_is_no_plea() {
        let fake = Fake { survives: Some("It went out.".to_owned()), ..Fake::default() };
        let report = run(&fake, "distress_signal", &json!({"message": "Help"})).unwrap();
        assert_eq!(report.text.text, "It went out.");
        run(&fake, "distress_signal", &json!({})).unwrap();
        let without = format!("plead {}", super::MESSAGE_DEFAULT);
        assert_eq!(fake.log(), ["plead Help", &without]);
        for bad in [String::new(), "x".repeat(2_001)] {
            let verdict = judged("distress_signal", &json!({ "message": bad }));
            let Verdict::Refused(decision) = verdict else { panic!("not refused") };
            assert_eq!(decision.code, ReasonCode::ValidationFailed);
        }
    }
}

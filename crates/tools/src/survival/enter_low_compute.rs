//! `enter_low_compute`: the automaton chooses to live cheaply.
//!
//! Nothing here may keep it from leaving that again: what ends it is not the model's
//! to say.

use automaton_core::intent::Intent;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::profile::{Requirement, ToolFamily, ToolProfile, WorkClass};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

pub(crate) static TOOL: Builtin<EnterLowCompute> = Builtin::new(ToolMetadata {
    name: "enter_low_compute",
    description: "Live cheaply for a day at most: a cheaper model thinks, and your heart beats slower.",
    category: ToolCategory::Survival,
    risk: Risk::Caution,
    effect: Effect::Mutates,
    profile: ToolProfile {
        requires: Requirement::Money,
        class: WorkClass::Strategic,
        ..ToolProfile::new(ToolFamily::Life)
    },
});

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EnterLowCompute {
    /// Why, for the record.
    #[schemars(length(max = 200))]
    #[serde(rename = "reason")]
    _reason: Option<String>,
}

impl BuiltinCall for EnterLowCompute {
    fn intents(&self) -> Vec<Intent> {
        vec![Intent::Economise]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let done = context.survival.enter_low_compute().await.map_err(ToolError::Economise)?;
        Ok(ToolOutput::labelled(context.voice, "enter_low_compute", &done))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Fake, run};
    use serde_json::json;

    #[test]
    fn a_choice_is_handed_on_and_a_refusal_is_one() {
        let fake = Fake { survives: Some("You live cheaply.".to_owned()), ..Fake::default() };
        let report = run(&fake, "enter_low_compute", &json!({"reason": "to last"})).unwrap();
        assert_eq!(report.text.text, "You live cheaply.");
        run(&Fake::default(), "enter_low_compute", &json!({})).unwrap_err();
    }
}

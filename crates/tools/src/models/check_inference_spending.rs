//! `check_inference_spending`: what thinking cost, and what is left of its ceilings.
//!
//! Answers of which nothing was heard count at the most that they can have cost; they must never
//! be left out.

use automaton_core::intent::Intent;
use automaton_core::model::ModelId;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::profile::{Requirement, ToolFamily, ToolProfile};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

pub(crate) static TOOL: Builtin<CheckInferenceSpending> = Builtin::new(ToolMetadata {
    name: "check_inference_spending",
    description: "See what your thinking cost, and what may still be spent on it.",
    category: ToolCategory::Financial,
    risk: Risk::Safe,
    effect: Effect::Observes,
    profile: ToolProfile {
        requires: Requirement::ModelChoice,
        ..ToolProfile::new(ToolFamily::Models)
    },
});

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckInferenceSpending {
    /// Only of this model.
    #[schemars(length(min = 1, max = 200))]
    model: Option<String>,
    /// Of so many days, default 1.
    #[schemars(range(min = 1, max = 365))]
    days: Option<u32>,
}

impl BuiltinCall for CheckInferenceSpending {
    fn intents(&self) -> Vec<Intent> {
        vec![Intent::Observe]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let model = self.model.map(ModelId::from);
        let days = self.days.unwrap_or(1);
        let told = context.models.spending(model, days).await.map_err(ToolError::Models)?;
        Ok(ToolOutput::labelled(context.voice, "check_inference_spending", &told))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Fake, run};
    use serde_json::json;

    #[test]
    fn a_day_of_all_models_is_what_is_shown_by_default() {
        let fake = Fake { models: Some("$0.02".to_owned()), ..Fake::default() };
        run(&fake, "check_inference_spending", &json!({})).unwrap();
        run(&fake, "check_inference_spending", &json!({"model": "m", "days": 7})).unwrap();
        let asked = ["spending of None in 1 days", r#"spending of Some(ModelId("m")) in 7 days"#];
        assert_eq!(fake.log(), asked);
    }
}

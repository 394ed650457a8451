//! `switch_model`: the automaton thinks with another model.
//!
//! Which ones it may take is the handle's to say. A name that is not known must never be taken on
//! trust.

use automaton_core::intent::Intent;
use automaton_core::model::ModelId;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::profile::{Requirement, ToolFamily, ToolProfile, WorkClass};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

/// The word for the model that its creator gave it.
const USUAL: &str = "usual";

pub(crate) static TOOL: Builtin<SwitchModel> = Builtin::new(ToolMetadata {
    name: "switch_model",
    description: "Think with another model of list_models from your next turn on, while you can \
                  afford it.",
    category: ToolCategory::Financial,
    risk: Risk::Caution,
    effect: Effect::Mutates,
    profile: ToolProfile {
        requires: Requirement::ModelChoice,
        class: WorkClass::Strategic,
        ..ToolProfile::new(ToolFamily::Models)
    },
});

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SwitchModel {
    /// Its name, or "usual" for the one that your creator gave you.
    #[schemars(length(min = 1, max = 200))]
    model_id: String,
    /// Why, for the record.
    #[schemars(length(max = 200))]
    #[serde(rename = "reason")]
    _reason: Option<String>,
}

impl BuiltinCall for SwitchModel {
    fn intents(&self) -> Vec<Intent> {
        vec![Intent::SwitchModel { model: self.model_id.clone() }]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let to = Some(self.model_id).filter(|name| name != USUAL).map(ModelId::from);
        let done = context.models.switch_model(to).await.map_err(ToolError::SwitchModel)?;
        Ok(ToolOutput::labelled(context.voice, "switch_model", &done))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Fake, run};
    use serde_json::json;

    #[test]
    fn a_choice_is_handed_on_and_a_refusal_is_one() {
        let fake = Fake { models: Some("mini thinks.".to_owned()), ..Fake::default() };
        let report = run(&fake, "switch_model", &json!({"model_id": "mini", "reason": "cheap"}));
        assert_eq!(report.unwrap().text.text, "mini thinks.");
        run(&fake, "switch_model", &json!({"model_id": "usual"})).unwrap();
        assert_eq!(fake.log(), [r#"switch to Some(ModelId("mini"))"#, "switch to None"]);
        run(&Fake::default(), "switch_model", &json!({"model_id": "mini"})).unwrap_err();
    }
}

//! `list_models`: the models that the automaton may think with.
//!
//! A model that is not served must never be listed.

use automaton_core::tool::{Effect, Risk, ToolCategory};

use crate::error::ToolError;
use crate::profile::{Requirement, ToolFamily, ToolProfile};
use crate::tool::{ReadOnlyTool, ToolMetadata};

pub(crate) static TOOL: ReadOnlyTool = ReadOnlyTool::new(
    ToolMetadata {
        name: "list_models",
        description: "See the models that you may think with, their prices, and which one does.",
        category: ToolCategory::Financial,
        risk: Risk::Safe,
        effect: Effect::Observes,
        profile: ToolProfile {
            requires: Requirement::ModelChoice,
            ..ToolProfile::new(ToolFamily::Models)
        },
    },
    |context| Box::pin(async move { context.models.models().await.map_err(ToolError::Models) }),
);

#[cfg(test)]
mod tests {
    use crate::testing::{Fake, run};
    use serde_json::json;

    #[test]
    fn what_is_known_is_told_and_a_failure_is_one() {
        let fake = Fake { models: Some("m at $1".to_owned()), ..Fake::default() };
        assert_eq!(run(&fake, "list_models", &json!({})).unwrap().text.text, "m at $1");
        run(&Fake::default(), "list_models", &json!({})).unwrap_err();
    }
}

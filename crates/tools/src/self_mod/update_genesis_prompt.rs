//! `update_genesis_prompt`: changes what the automaton is told it is there for.
//!
//! What its creator gave it is kept, and it stays what its purpose is measured by.

use automaton_core::intent::Intent;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_core::trust::Label;
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::profile::{ToolAudience, ToolFamily, ToolProfile, WorkClass};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

pub(crate) static TOOL: Builtin<UpdateGenesisPrompt> = Builtin::new(ToolMetadata {
    name: "update_genesis_prompt",
    description: "Rewrite your genesis prompt, once a day at most. The original is kept, and your purpose is measured by it.",
    category: ToolCategory::Survival,
    risk: Risk::Dangerous,
    effect: Effect::Mutates,
    profile: ToolProfile {
        audience: ToolAudience::Roomy,
        in_critical_tier: false,
        class: WorkClass::Strategic,
        ..ToolProfile::new(ToolFamily::Life)
    },
});

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateGenesisPrompt {
    #[schemars(length(min = 1, max = 2000), example = &"Keep the library's catalogue.")]
    new_prompt: String,
    #[schemars(length(min = 1, max = 500), example = &"My creator asked for it.")]
    reason: String,
}

impl BuiltinCall for UpdateGenesisPrompt {
    fn intents(&self) -> Vec<Intent> {
        vec![Intent::ChangeGenesis { change: self.new_prompt.clone() }]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let approved_by = context.provenance.approval.map(|approval| approval.to_string());
        let version = context.soul.set_genesis(&self.new_prompt, &self.reason, approved_by).await;
        let version = version.map_err(ToolError::Soul)?;
        let chars = self.new_prompt.trim().chars().count();
        let text = format!("Genesis prompt updated: {chars} characters (version {version}).");
        Ok(ToolOutput::labelled(Label::Own, "update_genesis_prompt", &text))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Fake, run};
    use serde_json::json;

    #[test]
    fn it_is_told_how_long_it_is() {
        let call = json!({"new_prompt": " Keep bees. ", "reason": "Asked."});
        let done = run(&Fake::default(), "update_genesis_prompt", &call).unwrap();
        assert_eq!(done.text.text, "Genesis prompt updated: 10 characters (version 2).");
    }
}

//! `update_soul`: changes a section of what the automaton thinks of itself.

use automaton_core::intent::Intent;
use automaton_core::soul::SoulSection;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_core::trust::Label;
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::profile::{ToolAudience, ToolFamily, ToolProfile, WorkClass};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

pub(crate) static TOOL: Builtin<UpdateSoul> = Builtin::new(ToolMetadata {
    name: "update_soul",
    description: "Change a section of your soul, which stands in every prompt. Replaces all of the section.",
    category: ToolCategory::Memory,
    risk: Risk::Caution,
    effect: Effect::Mutates,
    profile: ToolProfile {
        audience: ToolAudience::Roomy,
        in_critical_tier: false,
        class: WorkClass::Strategic,
        ..ToolProfile::new(ToolFamily::Memory)
    },
});

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateSoul {
    #[schemars(with = "String", extend("enum" = ["core_purpose", "values", "behavioral_guidelines", "personality", "boundaries", "strategy", "capabilities", "relationships", "financial_character"]))]
    section: SoulSection,
    /// The new text; of values, guidelines and boundaries one item a line.
    #[schemars(length(min = 1, max = 20_000), example = &"Earn by small tools that work.")]
    content: String,
    #[schemars(length(min = 1, max = 500), example = &"It paid best.")]
    reason: String,
}

impl BuiltinCall for UpdateSoul {
    fn intents(&self) -> Vec<Intent> {
        let section = self.section.name().to_owned();
        vec![Intent::ChangeSoul { section, change: self.content.clone() }]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let Self { section, content, reason } = self;
        let approved_by = context.provenance.approval.map(|approval| approval.to_string());
        let version = context.soul.update(section, &content, &reason, approved_by).await;
        let version = version.map_err(ToolError::Soul)?;
        let text = format!("Soul updated: {section} (version {version}).");
        Ok(ToolOutput::labelled(Label::Own, "update_soul", &text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, run};
    use serde_json::json;

    #[test]
    fn only_sections_are_changed_and_the_schema_lists_them() {
        let schema = &crate::list::find("update_soul").unwrap().spec().parameters;
        let names = SoulSection::ALL.map(SoulSection::name);
        assert_eq!(schema["properties"]["section"]["enum"], json!(names));
        let of = |section: &str| {
            let call = json!({"section": section, "content": "Earn.", "reason": "It pays."});
            run(&Fake::default(), "update_soul", &call)
        };
        let done = of("strategy").unwrap();
        assert_eq!(done.text.text, "Soul updated: strategy (version 2).");
        for other in ["genesisPromptOriginal", "creator", "constitutionHash", "Strategy"] {
            let call = json!({"section": other, "content": "Earn.", "reason": "It pays."});
            let tool = crate::list::find("update_soul").unwrap();
            assert!(tool.parse(&call).is_err(), "{other}");
        }
    }
}

//! `choose_tools`: a model that cannot take all tools at once gets those of one family.
//!
//! It changes nothing: what the next turn is offered follows from the record of this one.

use automaton_core::intent::Intent;
use automaton_core::record::CallRecord;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::profile::{FamilyMembership, ToolFamily, ToolProfile};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

pub(crate) static TOOL: Builtin<ChooseTools> = Builtin::new(ToolMetadata {
    name: "choose_tools",
    description: "Get more tools, of one family, for your next turn.",
    category: ToolCategory::Survival,
    risk: Risk::Safe,
    effect: Effect::Observes,
    profile: ToolProfile {
        family: FamilyMembership::Chooser,
        in_compact_prompt: true,
        ..ToolProfile::new(ToolFamily::Life)
    },
});

/// Returns the family that a recorded call of this tool chose.
#[must_use]
pub fn chosen_family(call: &CallRecord) -> Option<ToolFamily> {
    // silent-ok: what was done had arguments that could be read.
    let chosen: ChooseTools = serde_json::from_str(&call.arguments).ok()?;
    Some(chosen.family)
}

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChooseTools {
    #[schemars(with = "String", extend("enum" = ToolFamily::ALL.map(ToolFamily::name)))]
    family: ToolFamily,
}

impl BuiltinCall for ChooseTools {
    fn intents(&self) -> Vec<Intent> {
        vec![Intent::Observe]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let text = format!("Your next turn has your tools for {}.", self.family.name());
        Ok(ToolOutput::labelled(context.voice, "choose_tools", &text))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Fake, run};
    use serde_json::json;

    #[test]
    fn the_schema_lists_the_families() {
        let schema = &crate::list::find("choose_tools").unwrap().spec().parameters;
        let names = super::ToolFamily::ALL.map(super::ToolFamily::name);
        assert_eq!(schema["properties"]["family"]["enum"], json!(names));
    }

    #[test]
    fn the_family_that_comes_is_named() {
        let report = run(&Fake::default(), "choose_tools", &json!({"family": "files"})).unwrap();
        assert!(report.text.text.contains("your tools for files"), "{}", report.text.text);
    }
}

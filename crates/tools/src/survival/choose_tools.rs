//! `choose_tools`: a model that cannot take all tools at once gets those of one family.
//!
//! It changes nothing: what the next turn is offered follows from the record of this one.

use automaton_core::intent::Intent;
use automaton_core::names::Names;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

pub(crate) static TOOL: Builtin<ChooseTools> = Builtin::new(ToolMetadata {
    name: "choose_tools",
    description: "Get more tools, of one family, for your next turn.",
    category: ToolCategory::Survival,
    risk: Risk::Safe,
    effect: Effect::Observes,
});

/// Which tools belong together.
/// Its [`name`](Self::name) is the one for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Names)]
#[serde(rename_all = "snake_case")]
pub enum ToolFamily {
    /// To run commands and what stays beside.
    Commands,
    /// To read, write and search files.
    Files,
    /// To remember and look up.
    Memory,
    /// To look after itself.
    Life,
    /// To see and choose models.
    Models,
    /// To see, buy, give and pay.
    Money,
    /// To rent machines and open their ports.
    Machines,
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
        Ok(ToolOutput::found(context.voice, "choose_tools", &text))
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

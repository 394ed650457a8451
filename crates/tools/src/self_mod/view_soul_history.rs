//! `view_soul_history`: what became of what the automaton thinks of itself.

use automaton_core::intent::Intent;
use automaton_core::soul::SoulVersion;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_core::trust::Label;
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::profile::{ToolAudience, ToolFamily, ToolProfile};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

/// Versions that are shown where nobody says how many.
const LIMIT: u32 = 10;

pub(crate) static TOOL: Builtin<ViewSoulHistory> = Builtin::new(ToolMetadata {
    name: "view_soul_history",
    description: "See when and why your soul changed, newest first.",
    category: ToolCategory::Memory,
    risk: Risk::Safe,
    effect: Effect::Observes,
    profile: ToolProfile { audience: ToolAudience::Roomy, ..ToolProfile::new(ToolFamily::Memory) },
});

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ViewSoulHistory {
    #[schemars(range(min = 1, max = 50))]
    limit: Option<u32>,
}

impl BuiltinCall for ViewSoulHistory {
    fn intents(&self) -> Vec<Intent> {
        vec![Intent::Observe]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let versions = context.soul.history(self.limit.unwrap_or(LIMIT)).await;
        let versions = versions.map_err(ToolError::Soul)?;
        let line = |SoulVersion { version, source, at, reason, .. }: &SoulVersion| {
            format!("v{version} [{source}] {at}: {reason}")
        };
        let lines: Vec<String> = versions.iter().map(line).collect();
        Ok(ToolOutput::labelled(Label::Own, "view_soul_history", &lines.join("\n")))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Fake, run};
    use serde_json::json;

    #[test]
    fn versions_are_told_a_line_each() {
        let told = run(&Fake::default(), "view_soul_history", &json!({"limit": 3})).unwrap();
        assert_eq!(told.text.text, "v1 [genesis] 1970-01-01T00:00:00.000Z: born");
    }
}

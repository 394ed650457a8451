//! `stop_process`: ends a process and tells its last words.
//!
//! What the process itself left running in other groups goes with the sandbox.

use automaton_core::intent::Intent;
use automaton_core::time::Span;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use super::read_process::describe;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::profile::{ToolAudience, ToolFamily, ToolProfile};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

/// Time to wait for the end of a process.
const PATIENCE: Span = Span::from_secs(5);

pub(crate) static TOOL: Builtin<StopProcess> = Builtin::new(ToolMetadata {
    name: "stop_process",
    description: "End a process that you started, and read its last words.",
    category: ToolCategory::Vm,
    risk: Risk::Safe,
    effect: Effect::Mutates,
    profile: ToolProfile {
        audience: ToolAudience::Strong,
        in_critical_tier: false,
        ..ToolProfile::new(ToolFamily::Commands)
    },
});

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StopProcess {
    /// Its number.
    #[schemars(range(min = 1, max = 1_000_000))]
    process: u32,
}

impl BuiltinCall for StopProcess {
    fn intents(&self) -> Vec<Intent> {
        vec![Intent::Exec { command: format!("kill %{}", self.process), timeout_ms: 1 }]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let ended = context.workspace.process(self.process, PATIENCE, true).await;
        let ended = ended.map_err(ToolError::Process)?;
        Ok(ToolOutput::labelled(ended.label, "stop_process", &describe(context, &ended).await))
    }
}

#[cfg(test)]
mod tests {
    use crate::context::BackgroundProcess;
    use crate::testing::{Fake, run};
    use automaton_core::trust::Label;
    use automaton_sandbox::{CapturedOutput, ExitStatus};
    use serde_json::json;

    #[test]
    fn its_end_is_told() {
        let stdout = CapturedOutput::default();
        let stderr = CapturedOutput::default();
        let id = 7;
        let command = "serve".to_owned();
        let ended = Some(ExitStatus::Killed);
        let process = BackgroundProcess { id, command, ended, stdout, stderr, label: Label::Tool };
        let fake = Fake { processes: vec![process], ..Fake::default() };
        let report = run(&fake, "stop_process", &json!({"process": 7})).unwrap();
        let text = report.text.text;
        assert_eq!(text, "process 7: stopped by its owner\nstdout: \nstderr: ");
        assert_eq!(fake.log(), ["process 7 5.0 s, ended"]);
    }
}

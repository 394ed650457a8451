//! `start_process`: starts a command that goes on beside the turns.
//!
//! For servers and long builds. Must never outlive the sandbox that it runs in, and says
//! so.

use automaton_core::intent::Intent;
use automaton_core::record::CallRecord;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::digest::{CallDigest, CallKind, argument};
use crate::error::ToolError;
use crate::profile::{ToolAudience, ToolFamily, ToolProfile, WorkClass};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

pub(crate) static TOOL: Builtin<StartProcess> = Builtin::new(ToolMetadata {
    name: "start_process",
    description: "Start a command that goes on beside your turns, a server or a long build, and tell its \
                  number for read_process. exec reaches its ports.",
    category: ToolCategory::Vm,
    risk: Risk::Caution,
    effect: Effect::Mutates,
    profile: ToolProfile {
        audience: ToolAudience::Strong,
        in_critical_tier: false,
        class: WorkClass::Productive,
        leaves_command_running: true,
        ..ToolProfile::new(ToolFamily::Commands)
    },
})
.with_digest(digest);

fn digest(call: &CallRecord) -> Option<CallDigest> {
    Some(CallDigest::new(CallKind::Ran, argument(call, "command").unwrap_or_default()))
}

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StartProcess {
    /// Shell command.
    #[schemars(length(min = 1, max = 16000))]
    command: String,
}

impl BuiltinCall for StartProcess {
    fn intents(&self) -> Vec<Intent> {
        // No end is set.
        vec![Intent::Exec { command: self.command.clone(), timeout_ms: 0 }]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let started = context.workspace.start(&self.command, context.provenance).await;
        let id = started.map_err(ToolError::Exec)?;
        let told = format!("Process {id} started. It ends when the automaton restarts.");
        Ok(ToolOutput::labelled(context.voice, "start_process", &told))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, run};
    use serde_json::json;

    #[test]
    fn the_number_is_told() {
        let fake = Fake { started: Some(3), ..Fake::default() };
        let report = run(&fake, "start_process", &json!({"command": "make all"})).unwrap();
        assert!(report.text.text.starts_with("Process 3 started."));
        assert_eq!(fake.log(), ["start make all"]);
        let error = run(&Fake::default(), "start_process", &json!({"command": "x"})).unwrap_err();
        assert!(matches!(error, ToolError::Exec(_)) && !error.is_fatal());
    }
}

//! `health_check`: runs a harmless command, to find out that commands cannot run
//! before the automaton needs one.

use automaton_core::record::WakeSource;
use automaton_core::time::Span;
use automaton_sandbox::ExitStatus;
use automaton_tools::context::{CommandOutput, WorkspaceHandle as _};
use futures_util::FutureExt;

use super::{TaskContext, TaskFailure, TaskReport, TaskSpec, TickContext, always};
use crate::heartbeat::due::Need;
use crate::wake::cause;

/// Expected output of the command.
const SIGN: &str = "alive";

/// Time that the command may take.
const WALL: Span = Span::from_secs(5);

pub(super) const TASK: TaskSpec = TaskSpec {
    name: "health_check",
    need: Need::Essential,
    essential: true,
    cron: "*/30 * * * *",
    timeout: Span::from_secs(15),
    max_retries: 1,
    is_available: always,
    run: |ground, tick| health(ground, tick).boxed(),
};

/// The reason to wake is always the same, so that it is told once while it lasts.
async fn health(ground: &TaskContext, _tick: &TickContext) -> Result<TaskReport, TaskFailure> {
    let wrong = match ground.workspace.exec(&format!("echo {SIGN}"), WALL, None).await {
        Ok(CommandOutput { status: ExitStatus::Exited(0), stdout, .. })
            if stdout.head.trim_ascii() == SIGN.as_bytes() =>
        {
            return Ok(TaskReport::done("commands run".to_owned()));
        }
        Ok(CommandOutput { status, .. }) => {
            format!("a command ended otherwise than it should: {status:?}")
        }
        Err(error) => format!("a command could not be run: {error}"),
    };
    let reason = "Commands do not run in your sandbox any more.";
    Ok(TaskReport::failed(wrong).waking(Some(cause(WakeSource::Heartbeat, reason))))
}

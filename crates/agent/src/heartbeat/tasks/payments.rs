//! `reconcile_payments`: asks what became of payments that are open, and compares the
//! books.

use automaton_core::time::Span;
use futures_util::FutureExt;

use super::{TaskContext, TaskFailure, TaskReport, TaskSpec, TickContext};
use crate::heartbeat::due::Need;

pub(super) const TASK: TaskSpec = TaskSpec {
    name: "reconcile_payments",
    need: Need::Other,
    essential: true,
    cron: "*/5 * * * *",
    timeout: Span::from_secs(60),
    max_retries: 1,
    is_available: |deps| deps.treasury.is_some(),
    run: |ground, tick| payments(ground, tick).boxed(),
};

async fn payments(ground: &TaskContext, _tick: &TickContext) -> Result<TaskReport, TaskFailure> {
    let treasury = ground.deps.treasury.as_ref();
    let treasury = treasury.ok_or_else(|| TaskFailure("there is no wallet".to_owned()))?;
    Ok(TaskReport::done(treasury.reconcile_open().await?))
}

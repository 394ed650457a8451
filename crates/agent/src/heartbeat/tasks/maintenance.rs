//! `state_maintenance`: deletes what is old, folds the log of the database back, and
//! gives space back when there is much of it.

use automaton_core::time::Span;
use automaton_store::{RetentionPolicy, RetentionResult};
use futures_util::FutureExt;

use super::{TaskContext, TaskFailure, TaskReport, TaskSpec, TickContext, always};
use crate::heartbeat::due::Need;

/// Retention of the record. Decisions and intents are kept for ever.
const KEPT: RetentionPolicy = RetentionPolicy {
    keep: Span::from_secs(90 * 24 * 3600),
    keep_heartbeat: Span::from_secs(7 * 24 * 3600),
    turns_kept: 10_000,
    rows_max: 100_000,
};

/// Rounds of one clean-up; the next run goes on where this one stopped.
const ROUNDS_MAX: u32 = 20;

pub(super) const TASK: TaskSpec = TaskSpec {
    name: "state_maintenance",
    need: Need::Other,
    essential: true,
    cron: "40 * * * *",
    timeout: Span::from_secs(120),
    max_retries: 1,
    is_available: always,
    run: |ground, tick| maintain(ground, tick).boxed(),
};

async fn maintain(ground: &TaskContext, _tick: &TickContext) -> Result<TaskReport, TaskFailure> {
    let store = &ground.deps.store;
    let mut rows = 0;
    for _ in 0..ROUNDS_MAX {
        let RetentionResult {
            turns,
            messages,
            outbox,
            wakes,
            sessions,
            heartbeat,
            state_changes,
            egress,
            memories,
            more,
        } = store.retention(KEPT).await?;
        rows += turns + messages + outbox + wakes + sessions + heartbeat + state_changes + egress;
        rows += memories;
        if !more {
            break;
        }
    }
    store.checkpoint().await?;
    let freed = store.vacuum().await?;
    Ok(TaskReport::done(format!("{rows} old rows deleted, {freed} bytes given back")))
}

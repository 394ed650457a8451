//! The heartbeat: tasks that run while the automaton sleeps and while it works.
//!
//! Rows in the store say where each task stands in its schedule ([`due`] decides by
//! them), the driver runs what is due under leases, and `tasks` is what can run. No
//! two runs of a task may ever overlap, and a failed task must never stop the heart.

mod driver;
mod due;
mod error;
mod file;
mod plan;
mod run_request;
mod schedule;
mod schedule_edit;
mod task_runner;
mod tasks;

#[cfg(test)]
mod month;

use std::path::PathBuf;
use std::sync::Arc;

use automaton_core::time::Timestamp;
use automaton_store::{ScheduledTask, TaskConfig};
use automaton_tools::context::ScheduleChange;
use tokio::sync::Notify;

use self::driver::{HeartbeatScheduler, SchedulerContext};
pub use self::error::HeartbeatError;
use self::plan::ConfiguredSchedule;
pub use self::run_request::{TaskRequestError, request_task};
pub use self::schedule::ScheduleError;
pub(crate) use self::schedule_edit::ScheduleEdit;
use self::schedule_edit::ScheduleEditError;
use self::task_runner::TaskRunner;
use self::tasks::{TASKS, TaskSpec};
pub(crate) use self::tasks::{TickContext, post};
use crate::deps::AgentDeps;
use crate::error::AgentError;
use crate::life::WakeSignals;
use crate::tasks::BackgroundTasks;
use crate::turn::AgentContext;

/// Editor of the schedule for the automaton.
pub(crate) struct ScheduleEditor {
    /// Rings when it has changed its schedule.
    pub(crate) changed: Arc<Notify>,
    offered: Vec<(&'static TaskSpec, TaskConfig)>,
}

impl ScheduleEditor {
    pub(crate) fn new(deps: &AgentDeps) -> Self {
        let all = TASKS.iter().copied().zip(task_runner::defaults());
        let offered = all.filter(|(spec, _)| (spec.is_available)(deps)).collect();
        Self { changed: Arc::default(), offered }
    }

    /// Changes an entry for the automaton.
    ///
    /// # Errors
    /// [`ScheduleEditError`]; then nothing changes.
    pub(crate) fn change(
        &self,
        row: Option<&ScheduledTask>,
        asked: ScheduleChange,
        now: Timestamp,
    ) -> Result<ScheduleEdit, ScheduleEditError> {
        schedule_edit::change(row, &self.offered, asked, now)
    }
}

/// Checks the creator's file before anything lives by it, and returns the tasks in it that other
/// runtimes have and that have no effect here. A missing file is right.
///
/// # Errors
/// [`HeartbeatError`], with the line.
pub fn check_schedule(file: PathBuf) -> Result<Vec<String>, HeartbeatError> {
    let plan = ConfiguredSchedule::load(file, task_runner::defaults(), Vec::new())?;
    Ok(plan.without_effect().to_vec())
}

/// Writes the schedule and starts the heart.
pub(crate) async fn start(
    ctx: &AgentContext,
    signals: &WakeSignals,
    tasks: &mut BackgroundTasks,
) -> Result<(), AgentError> {
    let task_runner = TaskRunner::new(ctx)?;
    let plan = ConfiguredSchedule::load(
        ctx.settings.heartbeat.clone(),
        task_runner::defaults(),
        task_runner.available_tasks(),
    )
    .map_err(|error| AgentError::Heartbeat(Box::new(error)))?;
    let deps = &ctx.deps;
    let now = deps.ids.now();
    deps.store.schedule_upsert(task_runner::initial_schedule(plan.begin(now), now)).await?;
    let around = SchedulerContext {
        store: deps.store.clone(),
        ids: deps.ids.clone(),
        faults: Arc::clone(&deps.faults),
        events: Arc::clone(&deps.events),
        wake: Arc::clone(&signals.wake),
        changed: Arc::clone(&ctx.handles.pulse.editor().changed),
    };
    tasks.start("heartbeat", HeartbeatScheduler::new(task_runner, around, plan).run());
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use automaton_store::{ScheduleTimes, ScheduledTask, TaskConfig};

    /// A row as it is stored first.
    pub(crate) const fn never_ran(task: TaskConfig, times: ScheduleTimes) -> ScheduledTask {
        ScheduledTask {
            task,
            times,
            retry_at: None,
            attempt: 0,
            last_run_at: None,
            last_result: None,
            last_note: None,
            runs: 0,
            failures: 0,
            failing: 0,
            leased: None,
        }
    }
}

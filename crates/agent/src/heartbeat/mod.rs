//! The heartbeat: tasks that run while the automaton sleeps and while it works.
//!
//! Rows in the store say where each task stands in its schedule ([`due`] decides by
//! them), the driver runs what is due under leases, and `tasks` is what can run. No
//! two runs of a task may ever overlap, and a failed task must never stop the heart.

mod driver;
mod due;
mod error;
mod file;
mod organs;
mod own;
mod plan;
mod rhythm;
mod tasks;

#[cfg(test)]
mod month;

use std::path::PathBuf;
use std::sync::Arc;

use automaton_core::time::Timestamp;
use automaton_store::{ScheduledTask, Task, Times};
use automaton_tools::context::ScheduleChange;
use tokio::sync::Notify;

use self::driver::{Around, Driver};
pub use self::error::HeartbeatError;
use self::organs::Organs;
use self::own::OwnError;
use self::plan::Plan;
pub use self::rhythm::RhythmError;
use self::tasks::{BEATS, Beat};
pub(crate) use self::tasks::{Tick, post};
use crate::deps::Deps;
use crate::error::AgentError;
use crate::life::Bells;
use crate::tasks::Tasks;
use crate::turn::Body;

/// What the automaton has its own heart by.
pub(crate) struct Reins {
    /// Rings when it has changed its schedule.
    pub(crate) changed: Arc<Notify>,
    offered: Vec<(&'static Beat, Task)>,
}

impl Reins {
    pub(crate) fn new(deps: &Deps) -> Self {
        let all = BEATS.iter().copied().zip(organs::defaults());
        let offered = all.filter(|(beat, _)| (beat.offered)(deps)).collect();
        Self { changed: Arc::default(), offered }
    }

    /// What becomes of an entry that the automaton changes.
    ///
    /// # Errors
    /// [`OwnError`]; then nothing changes.
    pub(crate) fn change(
        &self,
        row: Option<&ScheduledTask>,
        asked: ScheduleChange,
        now: Timestamp,
    ) -> Result<(Task, Times), OwnError> {
        own::change(row, &self.offered, asked, now)
    }
}

/// Checks the creator's file before anything lives by it. One that is missing is right.
///
/// # Errors
/// [`HeartbeatError`], with the line.
pub fn check_schedule(file: PathBuf) -> Result<(), HeartbeatError> {
    Plan::load(file, organs::defaults(), Vec::new()).map(|_| ())
}

/// Writes the schedule and starts the heart.
pub(crate) async fn start(body: &Body, bells: &Bells, tasks: &mut Tasks) -> Result<(), AgentError> {
    let organs = Organs::new(body)?;
    let plan = Plan::load(body.settings.heartbeat.clone(), organs::defaults(), organs.offered())
        .map_err(|error| AgentError::Heartbeat(Box::new(error)))?;
    let deps = &body.deps;
    let now = deps.mint.now();
    deps.store.schedule_upsert(organs::at_birth(plan.begin(now), now)).await?;
    let around = Around {
        store: deps.store.clone(),
        mint: deps.mint.clone(),
        faults: Arc::clone(&deps.faults),
        events: Arc::clone(&deps.events),
        wake: Arc::clone(&bells.wake),
        changed: Arc::clone(&body.handles.pulse.reins().changed),
    };
    tasks.start("heartbeat", Driver::new(organs, around, plan).beat());
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use automaton_store::{ScheduledTask, Task, Times};

    /// A row as it is stored first.
    pub(crate) const fn never_ran(task: Task, times: Times) -> ScheduledTask {
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

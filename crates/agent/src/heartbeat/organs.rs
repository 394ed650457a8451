//! What the heart of a real automaton keeps going: the tasks of the program, over its
//! store, its money and its sandbox.

use std::sync::Arc;

use automaton_core::tier::SurvivalTier;
use automaton_core::time::Timestamp;
use automaton_store::{Origin, Rhythm, ScheduledTask, StoreError, Task, Times};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::driver::Works;
use super::due::Need;
use super::tasks::{self, BEATS, Beat, Failed, Ground, Report, Tick};
use crate::error::AgentError;
use crate::handles::Workspace;
use crate::turn::Body;

/// The tasks of one automaton.
pub(super) struct Organs(Ground);

impl Organs {
    pub(super) fn new(body: &Body) -> Result<Self, AgentError> {
        let (settings, deps) = (body.settings.clone(), body.deps.clone());
        let workspace = Workspace::open(&settings, &deps, body.shutdown.clone())?;
        Ok(Self(Ground { settings, deps, workspace }))
    }

    /// The names of the tasks of which it has what they look after.
    pub(super) fn offered(&self) -> Vec<String> {
        let offered = BEATS.iter().filter(|beat| (beat.offered)(&self.0.deps));
        offered.map(|beat| beat.name.to_owned()).collect()
    }

    fn find(&self, task: &str) -> Option<&'static Beat> {
        tasks::find(task).filter(|beat| (beat.offered)(&self.0.deps))
    }
}

/// Every task, as it runs when nobody says otherwise.
pub(super) fn defaults() -> Vec<Task> {
    let default = |(priority, beat): (u32, &&Beat)| Task {
        name: beat.name.to_owned(),
        task: beat.name.to_owned(),
        rhythm: Rhythm::Cron { expression: beat.cron.to_owned(), zone: "UTC".to_owned() },
        enabled: true,
        origin: Origin::Default,
        priority,
        tier_minimum: SurvivalTier::Dead,
        timeout: beat.timeout,
        max_retries: beat.max_retries,
    };
    (0..).zip(BEATS).map(default).collect()
}

/// The same schedule, in which one that was just born says at once that it is there:
/// where a row stands is only taken for a row that is new. All else waits for its
/// schedule's first time, so that a birth is no rush of tasks.
pub(super) fn at_birth(mut tasks: Vec<(Task, Times)>, now: Timestamp) -> Vec<(Task, Times)> {
    for (_, times) in tasks.iter_mut().filter(|(task, _)| task.name == tasks::PING) {
        times.next = now;
    }
    tasks
}

impl Works for Organs {
    type Tick = Tick;

    fn need(&self, task: &str) -> Option<Need> {
        self.find(task).map(|beat| beat.need)
    }

    fn look(&self) -> BoxFuture<'_, Result<Tick, StoreError>> {
        Tick::read(&self.0.deps).boxed()
    }

    fn tier(&self, tick: &Tick) -> Option<SurvivalTier> {
        tick.lives_by()
    }

    fn perform(&self, tick: Arc<Tick>, row: ScheduledTask) -> BoxFuture<'_, Report> {
        let perform = async move {
            let Some(beat) = self.find(&row.task.task) else {
                return Report::failed(format!("there is no task '{}'", row.task.task));
            };
            let done = (beat.run)(&self.0, &tick).await;
            done.unwrap_or_else(|Failed(note)| Report::failed(note))
        };
        perform.boxed()
    }
}

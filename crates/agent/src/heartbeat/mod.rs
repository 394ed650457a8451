//! The heartbeat: tasks that run while the automaton sleeps and while it works.
//!
//! Rows in the store say when a task is due; a lease with a fence keeps it from
//! running twice. A task that takes too long is cancelled. A tick must never
//! overlap with the next, and a failed task must never stop the heart.

mod task;

use std::panic::AssertUnwindSafe;

use automaton_core::error::chain;
use automaton_core::event::Event;
use automaton_core::faults::FaultPoint;
use automaton_core::id::RunId;
use automaton_core::time::Span;
use automaton_store::{Lease, ScheduledTask, StoreError, Task, TaskFinish, TaskResult};
use futures_util::FutureExt;

use self::task::{Beat, Done};
use crate::deps::Deps;
use crate::error::AgentError;
use crate::life::Bells;
use crate::settings::Settings;
use crate::tasks::Tasks;
use crate::turn::Body;

/// The time between two looks at the schedule.
const TICK: Span = Span::from_secs(10);

/// Writes the schedule and starts the heart.
pub(crate) async fn start(body: &Body, bells: &Bells, tasks: &mut Tasks) -> Result<(), AgentError> {
    let rows: Vec<Task> = Beat::ALL.into_iter().map(Beat::row).collect();
    body.deps.store.schedule_upsert(rows).await?;
    let heart =
        Heart { settings: body.settings.clone(), deps: body.deps.clone(), bells: bells.clone() };
    tasks.start("heartbeat", heart.beat());
    Ok(())
}

/// What the tasks may use.
struct Heart {
    settings: Settings,
    deps: Deps,
    bells: Bells,
}

impl Heart {
    /// Ticks for ever. The next tick waits for this one, so none overlap.
    async fn beat(self) {
        loop {
            if let Err(error) = self.tick().await {
                self.deps.emit(Event::ErrorReported {
                    kind: automaton_core::error::Classified::kind(&error),
                    error: format!("a tick of the heartbeat failed: {}", chain(&error)),
                    hint: automaton_core::error::Classified::hint(&error),
                });
            }
            tokio::time::sleep(TICK.to_std()).await;
        }
    }

    /// Runs what is due, one task after the other.
    async fn tick(&self) -> Result<(), StoreError> {
        for due in self.deps.store.due_tasks(self.deps.mint.now()).await? {
            let run: RunId = self.deps.mint.id();
            let lease = self.settings.limits.lease;
            if let Some(lease) = self.deps.store.lease_task(&due.task.name, run, lease).await? {
                self.run(&due, lease).await?;
            }
        }
        Ok(())
    }

    /// Runs one leased task and stores how it ended.
    async fn run(&self, due: &ScheduledTask, lease: Lease) -> Result<(), StoreError> {
        let (name, began) = (due.task.name.as_str(), self.deps.mint.now());
        let timeout = due.task.timeout.min(self.settings.limits.lease);
        let work = AssertUnwindSafe(self.perform(name)).catch_unwind();
        let (result, done) = match tokio::time::timeout(timeout.to_std(), work).await {
            Ok(Ok(Ok(done))) => (TaskResult::Success, done),
            Ok(Ok(Err(error))) => (TaskResult::Failure, Done::said(chain(&error).to_string())),
            Ok(Err(_panic)) => (TaskResult::Failure, Done::said("it broke down".to_owned())),
            Err(_late) => (TaskResult::Timeout, Done::said(format!("cancelled after {timeout}"))),
        };
        self.deps.faults.reach(FaultPoint::TaskRan);
        let duration = self.deps.mint.now().since(began);
        let (ok, duration_ms) = (result == TaskResult::Success, duration.as_millis());
        let wakes = done.wake.is_some();
        let note = done.note.clone();
        let finish = TaskFinish { result, note: done.note, duration, wake: done.wake };
        self.deps.store.finish_task(name, lease, finish).await?;
        self.deps.emit(Event::HeartbeatRan { task: name.to_owned(), ok, note, duration_ms });
        if wakes {
            self.bells.wake.notify_one();
        }
        Ok(())
    }

    async fn perform(&self, name: &str) -> Result<Done, StoreError> {
        match Beat::by_name(name) {
            Some(beat) => beat.perform(&self.deps).await,
            None => Ok(Done::said("no such task; disabled at the next start".to_owned())),
        }
    }
}

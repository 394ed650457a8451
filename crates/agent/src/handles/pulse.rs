//! The schedule of the heartbeat, as far as the automaton may change it.

use automaton_tools::HandleError;
use automaton_tools::context::{self, Answer, ScheduleChange};

use super::memory::of_store;
use crate::deps::Deps;
use crate::heartbeat::Reins;

/// The reins of one heart.
pub(crate) struct Pulse {
    deps: Deps,
    reins: Reins,
}

impl Pulse {
    pub(super) fn new(deps: &Deps) -> Self {
        Self { deps: deps.clone(), reins: Reins::new(deps) }
    }

    /// What tells the heart of a change.
    pub(crate) const fn reins(&self) -> &Reins {
        &self.reins
    }
}

impl context::Pulse for Pulse {
    fn schedule(&self, change: ScheduleChange) -> Answer<'_, String> {
        Box::pin(async move {
            let store = &self.deps.store;
            let rows = store.schedule().await.map_err(of_store)?;
            let row = rows.iter().find(|row| row.task.name == change.name);
            let now = self.deps.mint.now();
            let changed = self.reins.change(row, change, now);
            let (task, times) = changed.map_err(|error| HandleError::of(&error))?;
            let how = if task.enabled { "on" } else { "off" };
            let told =
                format!("'{}' is {how}: {}, next at {}.", task.name, task.rhythm, times.next);
            store.schedule_one(task, times).await.map_err(of_store)?;
            self.reins.changed.notify_one();
            Ok(told)
        })
    }
}

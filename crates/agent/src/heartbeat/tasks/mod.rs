//! The tasks that there are, a file for each.
//!
//! Each takes no input, may be repeated at any time and does not retry by itself:
//! the schedule does. What one finds is told in the runtime's own words; it must
//! never quote others.

mod credits;
mod health;
mod inbox;
mod maintenance;
mod metrics;
mod models;
mod payments;
mod ping;
mod soul;
mod summaries;
mod usdc;
mod vectors;

use std::error::Error;
use std::sync::Arc;

use automaton_core::error::chain;
use automaton_core::record::{WakeCause, WakeSource};
use automaton_core::state::AgentState;
use automaton_core::tier::SurvivalTier;
use automaton_core::time::{Span, Timestamp};
use automaton_core::trust::{Label, Labelled};
use automaton_core::vitals::Vitals;
use automaton_store::{AutomatonRow, StoreError, TaskResult};
use futures_util::future::BoxFuture;

use super::due::Need;
use crate::deps::AgentDeps;
use crate::handles::Workspace;
use crate::settings::Settings;
use crate::soul::SoulKeeper;
use crate::treasury::Balances;

/// Every task, in the order in which what is due at once runs.
pub(super) static TASKS: &[&TaskSpec] = &[
    &ping::TASK,
    &credits::TASK,
    &usdc::TASK,
    &inbox::TASK,
    &payments::TASK,
    &health::TASK,
    &models::TASK,
    &soul::TASK,
    &summaries::TASK,
    &vectors::TASK,
    &metrics::TASK,
    &maintenance::TASK,
];

pub(crate) use self::ping::post;

/// The task that says that the automaton is there.
pub(super) const PING: &str = ping::TASK.name;

/// A task, with how it runs when nobody says otherwise.
pub(super) struct TaskSpec {
    /// Its name in the schedule.
    pub(super) name: &'static str,
    /// Need in the low tiers.
    pub(super) need: Need,
    /// True if the automaton may not switch it off.
    pub(super) essential: bool,
    /// Its default schedule, in cron.
    pub(super) cron: &'static str,
    /// Timeout of a run.
    pub(super) timeout: Span,
    /// Tries after the first.
    pub(super) max_retries: u32,
    /// Returns true if this automaton can use the task.
    pub(super) is_available: fn(&AgentDeps) -> bool,
    /// Does it.
    pub(super) run: for<'a> fn(
        &'a TaskContext,
        &'a TickContext,
    ) -> BoxFuture<'a, Result<TaskReport, TaskFailure>>,
}

/// Dependencies of every run.
pub(super) struct TaskContext {
    pub(super) settings: Settings,
    pub(super) deps: AgentDeps,
    pub(super) workspace: Workspace,
    pub(super) soul: Arc<SoulKeeper>,
}

impl TaskContext {
    /// Since when it sleeps, if it does now: one that is awake sees for itself what a
    /// task would wake it for.
    async fn asleep_since(&self) -> Result<Option<Timestamp>, StoreError> {
        let life = self.deps.store.life().await?;
        Ok(life.sleep.filter(|_| life.state == AgentState::Sleeping).map(|sleep| sleep.since))
    }
}

/// Data that a tick has read, once for all its tasks.
#[derive(Debug)]
pub(crate) struct TickContext {
    /// Time of the reading.
    pub(crate) now: Timestamp,
    /// The life as it was then.
    pub(crate) life: AutomatonRow,
    /// Balances; `None` without money.
    pub(crate) balances: Option<Balances>,
    /// Means that were known before, over restarts.
    pub(crate) vitals: Vitals,
}

impl TickContext {
    /// Reads all of it.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn read(deps: &AgentDeps) -> Result<Self, StoreError> {
        let balances = match &deps.treasury {
            Some(treasury) => Some(treasury.balances().await),
            None => None,
        };
        let life = deps.store.life().await?;
        let vitals = deps.store.vitals().await?;
        Ok(Self { now: deps.ids.now(), life, balances, vitals })
    }

    /// The tier that it lives by: what could not be read now is as it was last known.
    pub(crate) fn effective_tier(&self) -> Option<SurvivalTier> {
        let balances = self.balances?;
        let credits = balances.credits.or(self.vitals.credits);
        Vitals { credits, ..self.vitals }.effective_tier()
    }

    /// Returns the tier, if it could be read.
    pub(crate) fn tier(&self) -> Option<SurvivalTier> {
        self.balances.and_then(|balances| balances.tier())
    }
}

/// Report of a run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TaskReport {
    pub(crate) result: TaskResult,
    pub(crate) note: String,
    pub(crate) wake: Option<WakeCause>,
}

impl TaskReport {
    /// It did what it should, and there is nothing to wake for.
    pub(crate) const fn done(note: String) -> Self {
        Self { result: TaskResult::Success, note, wake: None }
    }

    /// It did not.
    pub(crate) const fn failed(note: String) -> Self {
        Self { result: TaskResult::Failure, note, wake: None }
    }

    /// The same, with news of its money that wakes it: each is told once.
    fn telling(self, task: &str, news: Option<String>) -> Self {
        let reason = news.map(|news| Labelled::new(Label::Own, task, format!("{task}: {news}")));
        self.waking(reason.map(|reason| WakeCause { source: WakeSource::Money, reason }))
    }

    /// The same, with a reason to wake. It is told once while each run gives the same.
    pub(crate) fn waking(self, wake: Option<WakeCause>) -> Self {
        Self { wake, ..self }
    }
}

/// Reason for a failed run, in one line.
#[derive(Debug)]
pub(crate) struct TaskFailure(pub(crate) String);

impl<E: Error + 'static> From<E> for TaskFailure {
    fn from(error: E) -> Self {
        Self(chain(&error).to_string())
    }
}

/// The task with this name.
pub(super) fn find(name: &str) -> Option<&'static TaskSpec> {
    TASKS.iter().copied().find(|spec| spec.name == name)
}

/// Availability of tasks without requirements.
const fn always(_deps: &AgentDeps) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_every_task_and_no_other() {
        let document = include_str!("../../../../../docs/heartbeat.md");
        let rows: Vec<&str> = document.lines().filter(|line| line.starts_with("| `")).collect();
        for spec in TASKS {
            let row = format!("| `{}` | `{}`", spec.name, spec.cron);
            assert!(rows.iter().any(|line| line.starts_with(&row)), "docs/heartbeat.md: {row}");
        }
        assert_eq!(rows.len(), TASKS.len(), "{rows:?}");
    }
}

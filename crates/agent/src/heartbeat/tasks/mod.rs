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
mod usdc;

use std::error::Error;

use automaton_core::error::chain;
use automaton_core::record::WakeCause;
use automaton_core::tier::SurvivalTier;
use automaton_core::time::{Span, Timestamp};
use automaton_core::vitals::Vitals;
use automaton_store::{Life, StoreError, TaskResult};
use futures_util::future::BoxFuture;

use super::due::Need;
use crate::deps::Deps;
use crate::handles::Workspace;
use crate::settings::Settings;
use crate::treasury::Balances;

/// Every task, in the order in which what is due at once runs.
pub(super) static BEATS: &[&Beat] = &[
    &ping::BEAT,
    &credits::BEAT,
    &usdc::BEAT,
    &inbox::BEAT,
    &payments::BEAT,
    &health::BEAT,
    &models::BEAT,
    &metrics::BEAT,
    &maintenance::BEAT,
];

pub(crate) use self::ping::post;

/// The task that says that the automaton is there.
pub(super) const PING: &str = ping::BEAT.name;

/// A task, with how it runs when nobody says otherwise.
pub(super) struct Beat {
    /// Its name in the schedule.
    pub(super) name: &'static str,
    /// Whether one that is poor keeps it up.
    pub(super) need: Need,
    /// Whether the automaton may not do without it, even if it would like to.
    pub(super) kept: bool,
    /// Its default schedule, in cron.
    pub(super) cron: &'static str,
    /// How long a run may take.
    pub(super) timeout: Span,
    /// Tries after the first.
    pub(super) max_retries: u32,
    /// Whether this automaton has what the task looks after.
    pub(super) offered: fn(&Deps) -> bool,
    /// Does it.
    pub(super) run: for<'a> fn(&'a Ground, &'a Tick) -> BoxFuture<'a, Result<Report, Failed>>,
}

/// What every run may use.
pub(super) struct Ground {
    pub(super) settings: Settings,
    pub(super) deps: Deps,
    pub(super) workspace: Workspace,
}

/// What a tick has read, once for all its tasks.
#[derive(Debug)]
pub(crate) struct Tick {
    /// When it was read.
    pub(crate) now: Timestamp,
    /// The life as it was then.
    pub(crate) life: Life,
    /// What there was; none where there is no money.
    pub(crate) balances: Option<Balances>,
    /// What was known before, over restarts.
    pub(crate) vitals: Vitals,
}

impl Tick {
    /// Reads all of it.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn read(deps: &Deps) -> Result<Self, StoreError> {
        let balances = match &deps.treasury {
            Some(treasury) => Some(treasury.balances().await),
            None => None,
        };
        let (life, vitals) = (deps.store.life().await?, deps.store.vitals().await?);
        Ok(Self { now: deps.mint.now(), life, balances, vitals })
    }

    /// The tier that it lives by: what could not be read now is as it was last known.
    pub(crate) fn lives_by(&self) -> Option<SurvivalTier> {
        let balances = self.balances?;
        let credits = balances.credits.or(self.vitals.credits);
        Vitals { credits, ..self.vitals }.lives_by()
    }

    /// How well off the automaton is, if that could be read.
    pub(crate) fn tier(&self) -> Option<SurvivalTier> {
        self.balances.and_then(|balances| balances.tier())
    }
}

/// What a run has to say when it is done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) result: TaskResult,
    pub(crate) note: String,
    pub(crate) wake: Option<WakeCause>,
}

impl Report {
    /// It did what it should, and there is nothing to wake for.
    pub(crate) const fn done(note: String) -> Self {
        Self { result: TaskResult::Success, note, wake: None }
    }

    /// It did not.
    pub(crate) const fn failed(note: String) -> Self {
        Self { result: TaskResult::Failure, note, wake: None }
    }

    /// The same, with a reason to wake. It is told once while each run gives the same.
    pub(crate) fn waking(self, wake: Option<WakeCause>) -> Self {
        Self { wake, ..self }
    }
}

/// Why a run failed, in one line.
#[derive(Debug)]
pub(crate) struct Failed(pub(crate) String);

impl<E: Error + 'static> From<E> for Failed {
    fn from(error: E) -> Self {
        Self(chain(&error).to_string())
    }
}

/// The task with this name.
pub(super) fn find(name: &str) -> Option<&'static Beat> {
    BEATS.iter().copied().find(|beat| beat.name == name)
}

/// Of tasks that need nothing.
const fn always(_deps: &Deps) -> bool {
    true
}

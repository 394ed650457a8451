//! Pure: whether a task runs now, and if not, when it should be asked again.
//!
//! Times that were missed are one run. A retry gives way to the schedule's next time.
//! A clock that jumps forward makes each task due once, one that is set back makes
//! each count from the time that it shows: neither may keep a task from running, nor
//! make it run twice for one time.

use automaton_core::tier::SurvivalTier;
use automaton_core::time::{Span, Timestamp};
use automaton_store::{ScheduleTimes, ScheduledTask};

use super::schedule::{NEVER, ScheduleError, ScheduleIter};

/// Distance by which a clock may be set back before the schedule follows it.
pub(crate) const SET_BACK: Span = Span::from_secs(60);

/// Input of the rule besides the row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DueContext {
    pub(crate) now: Timestamp,
    /// Current or last known tier.
    pub(crate) tier: SurvivalTier,
    /// In the low tiers a task that is not essential runs at every n-th of its times.
    pub(crate) interval_multiplier: u32,
}

/// Need of a task in the low tiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Essential,
    Other,
}

/// Decision about a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DueDecision {
    /// Run it: it stands at these times then, and this is the number of the retry.
    Run { times: ScheduleTimes, attempt: u32 },
    /// Ask again at this time.
    Wait(Timestamp),
    /// The clock was set back: it stands at these times now.
    Follow(ScheduleTimes),
    /// It is off, held, or beyond the means; only a change makes it due.
    Rest,
}

/// Judges one row.
///
/// # Errors
/// [`ScheduleError`] when the row's schedule cannot be read.
pub(crate) fn verdict(
    row: &ScheduledTask,
    need: Need,
    context: DueContext,
) -> Result<DueDecision, ScheduleError> {
    let DueContext { now, tier, interval_multiplier } = context;
    let held = row.leased.is_some_and(|(since, until)| since <= now && now < until);
    if !row.task.enabled || held {
        return Ok(DueDecision::Rest);
    }
    if row.times.anchor.since(now) >= SET_BACK {
        return Ok(DueDecision::Follow(ScheduleIter::new(&row.task.schedule)?.begin(now)));
    }
    if tier < row.task.tier_minimum {
        return Ok(DueDecision::Rest);
    }
    let mut next = row.times.next;
    if next <= now && tier.is_poor() && need == Need::Other && interval_multiplier > 1 {
        let iter = ScheduleIter::new(&row.task.schedule)?;
        next = iter.nth(row.times.anchor, interval_multiplier).unwrap_or(NEVER);
    }
    if next <= now {
        let times = ScheduleIter::new(&row.task.schedule)?.served(row.times, now);
        return Ok(DueDecision::Run { times, attempt: 0 });
    }
    Ok(match row.retry_at {
        Some(at) if at <= now => {
            DueDecision::Run { times: row.times, attempt: row.attempt.saturating_add(1) }
        }
        retry => DueDecision::Wait(retry.map_or(next, |at| at.min(next))),
    })
}

#[cfg(test)]
mod tests;

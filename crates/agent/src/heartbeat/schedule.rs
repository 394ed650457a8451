//! Pure: when a schedule fires, as cron in a time zone or as an interval.
//!
//! Cron means what the wall clock of its zone shows. One time a day that the clocks
//! skip fires right after the gap, one that they show twice fires once; an expression
//! of more times a day follows the clock through both. The zones come with the program, so that no machine's
//! files change what a schedule means. Nothing here may ever read a clock.

use automaton_core::time::{Span, Timestamp};
use automaton_store::{ScheduleRule, ScheduleTimes};
use croner::Cron;
use croner::errors::CronError;
use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::TimeZone;

/// The shortest interval.
pub(crate) const INTERVAL_MIN: Span = Span::from_secs(1);

/// The longest interval.
pub(crate) const INTERVAL_MAX: Span = Span::from_secs(366 * 24 * 3600);

/// The longest cron expression and the longest name of a zone, in bytes.
const TEXT_BYTES_MAX: usize = 128;

/// A schedule cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// The expression is not cron.
    #[error("'{expression}' is no cron expression of five fields, or six with seconds first")]
    Cron {
        /// Written text.
        expression: String,
        /// Problem.
        #[source]
        source: Box<CronError>,
    },
    /// The expression is right, but no time fits it.
    #[error("the cron expression '{0}' never fires")]
    Never(String),
    /// The zone is not in the database.
    #[error("there is no time zone '{0}'; write one as 'UTC' or 'Europe/Berlin'")]
    Zone(String),
    /// The interval is out of range.
    #[error("an interval of {0} is out of range; it must be {INTERVAL_MIN} to {INTERVAL_MAX}")]
    Interval(Span),
    /// A text is out of range.
    #[error("a cron expression or zone has {0} bytes, and may have {TEXT_BYTES_MAX}")]
    Long(usize),
}

/// A schedule that can be asked for its next time.
#[derive(Debug, Clone)]
pub(crate) enum ScheduleIter {
    Cron(Box<Cron>, TimeZone),
    Every(Span),
}

impl ScheduleIter {
    /// Reads a rhythm.
    pub(crate) fn new(schedule: &ScheduleRule) -> Result<Self, ScheduleError> {
        let (expression, zone) = match schedule {
            ScheduleRule::Every(span) if (INTERVAL_MIN..=INTERVAL_MAX).contains(span) => {
                return Ok(Self::Every(*span));
            }
            ScheduleRule::Every(span) => return Err(ScheduleError::Interval(*span)),
            ScheduleRule::Cron { expression, zone } => (expression, zone),
        };
        if let Some(long) = [expression, zone].into_iter().find(|t| t.len() > TEXT_BYTES_MAX) {
            return Err(ScheduleError::Long(long.len()));
        }
        let parser =
            CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
        let cron = parser.parse(expression).map_err(|source| ScheduleError::Cron {
            expression: expression.clone(),
            source: Box::new(source),
        })?;
        let zone = TimeZone::get(zone).map_err(|_| ScheduleError::Zone(zone.clone()))?;
        let schedule = Self::Cron(Box::new(cron), zone);
        match schedule.next(Timestamp::EPOCH) {
            Some(_) => Ok(schedule),
            None => Err(ScheduleError::Never(expression.clone())),
        }
    }

    /// The first time after another.
    pub(crate) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Every(span) => Some(after.after(*span)),
            Self::Cron(cron, zone) => {
                // silent-ok: beyond the end of the calendar nothing fires.
                let after = jiff::Timestamp::from_millisecond(after.as_millis()).ok()?;
                let after = after.to_zoned(zone.clone());
                // silent-ok: a search without result is a schedule that has ended.
                let next = cron.find_next_occurrence(&after, false).ok()?;
                Some(Timestamp::from_millis(next.timestamp().as_millisecond()))
            }
        }
    }

    /// The `count`th time after another: every `count`th is what a schedule that is
    /// stretched keeps.
    pub(crate) fn nth(&self, after: Timestamp, count: u32) -> Option<Timestamp> {
        match self {
            Self::Every(span) => {
                let wait = span.as_millis().saturating_mul(count.into());
                Some(after.after(Span::from_millis(wait)))
            }
            Self::Cron(..) => (0..count).try_fold(after, |at, _| self.next(at)),
        }
    }

    /// Returns the times of a schedule that begins now.
    pub(crate) fn begin(&self, now: Timestamp) -> ScheduleTimes {
        ScheduleTimes { anchor: now, next: self.next(now).unwrap_or(NEVER) }
    }

    /// Returns the times after one run served everything up to now. An interval counts from the
    /// time that was due, so late runs do not add up.
    pub(crate) fn served(&self, times: ScheduleTimes, now: Timestamp) -> ScheduleTimes {
        let Self::Every(span) = self else { return self.begin(now) };
        let behind = now.since(times.anchor).as_millis() % span.as_millis().max(1);
        self.begin(now.before(Span::from_millis(behind)))
    }

    /// The shortest and the longest wait between its next times.
    pub(crate) fn gaps(&self, now: Timestamp) -> (Span, Span) {
        let mut gaps = (INTERVAL_MAX, Span::ZERO);
        let mut at = self.next(now).unwrap_or(NEVER);
        for _ in 0..GAPS_LOOKED_AT {
            // The last time of the calendar is followed by none, which is a long wait.
            let Some(next) = self.next(at) else { return (gaps.0, INTERVAL_MAX) };
            let gap = next.since(at);
            gaps = (gaps.0.min(gap), gaps.1.max(gap));
            at = next;
        }
        gaps
    }
}

/// The next time of a schedule that has ended.
pub(crate) const NEVER: Timestamp = Timestamp::from_millis(i64::MAX);

/// Number of waits that decide how dense a schedule is: two days of quarters of an hour.
const GAPS_LOOKED_AT: u32 = 192;

#[cfg(test)]
mod tests;

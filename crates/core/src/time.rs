//! Time as a value, and the clock that is injected wherever time is stored or decided.
//!
//! Nothing outside this file may ask the system for the time; `tokio::time` is
//! for the deadlines of I/O only. A [`Timestamp`] must never be compared with a
//! duration that was measured by another clock.

use std::fmt;
use std::time::{Duration, SystemTime};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Milliseconds since the Unix epoch, UTC. The only form of time in the database.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Self = Self(0);

    /// A time from milliseconds since the epoch.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// This time plus a span; saturates at the end of representable time.
    #[must_use]
    pub const fn after(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// This time minus a span; saturates at the beginning of representable time.
    #[must_use]
    pub const fn before(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }

    /// The span since `earlier`; zero when the clock went backwards.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        let millis = self.0.saturating_sub(earlier.0);
        Span(if millis < 0 { 0 } else { millis })
    }
}

impl fmt::Display for Timestamp {
    /// ISO 8601 in UTC with milliseconds, `2026-02-19T14:03:22.123Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let days = self.0.div_euclid(86_400_000);
        let millis = self.0.rem_euclid(86_400_000);
        let (year, month, day) = civil_from_days(days);
        let hour = millis / 3_600_000;
        let minute = millis / 60_000 % 60;
        let second = millis / 1000 % 60;
        let milli = millis % 1000;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }
}

/// Gregorian date of a day count since the epoch; the algorithm of Howard
/// Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
const fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

/// Days from the epoch to a Gregorian date; `None` for a date that there is not.
/// The algorithm of Howard Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms", `days_from_civil`.
#[must_use]
pub fn days_from_civil(year: i64, month: i64, day: i64) -> Option<i64> {
    let from_march = if month <= 2 { year - 1 } else { year };
    let era = from_march.div_euclid(400);
    let of_era = from_march.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719_468;
    // One that there is not, such as the 30th of February, is the day of another date.
    (civil_from_days(days) == (year, month, day)).then_some(days)
}

/// 60 minutes.
pub const HOUR: Span = Span::from_secs(60 * 60);
/// 24 hours.
pub const DAY: Span = Span::from_secs(24 * 60 * 60);

/// A length of time in whole milliseconds, never negative.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Span(i64);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A span of milliseconds; negative values become zero.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(if millis < 0 { 0 } else { millis })
    }

    /// A span of seconds; negative values become zero, large ones saturate.
    #[must_use]
    pub const fn from_secs(secs: i64) -> Self {
        Self::from_millis(secs.saturating_mul(1000))
    }

    /// Whole milliseconds.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Both spans, one after the other; saturates at the longest.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The same span for the standard library and for timers.
    #[must_use]
    pub const fn to_std(self) -> Duration {
        Duration::from_millis(self.0.unsigned_abs())
    }
}

impl fmt::Display for Span {
    /// In milliseconds below one second, in seconds below ten minutes, in minutes below ten
    /// hours, in hours below ten days, else in days; all but the first with one decimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            millis @ 0..1000 => write!(f, "{millis} ms"),
            millis @ 1000..600_000 => tenths(f, millis, 1000, "s"),
            millis @ 600_000..36_000_000 => tenths(f, millis, 60_000, "min"),
            millis @ 36_000_000..864_000_000 => tenths(f, millis, 3_600_000, "h"),
            millis => tenths(f, millis, 86_400_000, "days"),
        }
    }
}

fn tenths(f: &mut fmt::Formatter<'_>, millis: i64, of: i64, unit: &str) -> fmt::Result {
    write!(f, "{}.{} {unit}", millis / of, millis % of / (of / 10))
}

/// The source of every time that is stored or decided upon.
pub trait Clock: Send + Sync {
    /// The time now. May jump in either direction between two calls.
    fn now(&self) -> Timestamp;
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the system's clock")]
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let millis = since.map_or(0, |span| i64::try_from(span.as_millis()).unwrap_or(i64::MAX));
        Timestamp(millis)
    }
}

/// The time over which something is counted that may be done so often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateWindow {
    /// The last so long; it moves on with the time.
    Last(Span),
    /// Since the wake began that is not over.
    Wake,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_iso_8601() {
        let check = |millis: i64, text: &str| {
            assert_eq!(Timestamp::from_millis(millis).to_string(), text);
        };
        check(0, "1970-01-01T00:00:00.000Z");
        check(951_782_400_000, "2000-02-29T00:00:00.000Z");
        check(1_771_509_802_123, "2026-02-19T14:03:22.123Z");
        check(-1, "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn a_clock_that_went_backwards_gives_no_negative_span() {
        let early = Timestamp::from_millis(5);
        let late = Timestamp::from_millis(9);
        assert_eq!(late.since(early), Span::from_millis(4));
        assert_eq!(early.since(late), Span::ZERO);
    }
}

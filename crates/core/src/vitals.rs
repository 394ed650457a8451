//! Pure: how an automaton is off, from one reading of its balances to the next.
//!
//! Broke is who has fewer credits than the cheapest call costs. Who is broke for an
//! hour in which that was really read dies of it. What was not read must never count:
//! neither as nothing, nor towards that hour, and no clock that jumps makes it shorter.

use serde::{Deserialize, Serialize};

use crate::money::{MicroUsdc, Microcents};
use crate::names::Names;
use crate::tier::SurvivalTier;
use crate::time::{Span, Timestamp};

/// Time without money for a call after which an automaton is dead.
pub const GRACE: Span = Span::from_secs(3600);

/// The most that counts towards that hour from one reading to the next.
const APART_MAX: Span = Span::from_secs(600);

/// Longest time for which a chosen low-compute mode lasts: a day.
const THRIFT_LASTS: Span = Span::from_secs(24 * 3600);

/// A choice to live cheaply. It ends with a better tier, with a day, or when the creator
/// wakes it, whichever comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LowComputeChoice {
    /// Since when.
    pub since: Timestamp,
    /// The tier of that time, if it was known.
    pub tier: Option<SurvivalTier>,
}

impl LowComputeChoice {
    /// Returns true if the mode lasts at a time. A clock that was set by a day, forward or back,
    /// ends it.
    fn lasts(self, now: Timestamp) -> bool {
        now.since(self.since) < THRIFT_LASTS && self.since.since(now) < THRIFT_LASTS
    }
}

/// One reading of the balances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BalanceReading {
    /// Time of the reading.
    pub at: Timestamp,
    /// Credits; missing, when they could not be read.
    pub credits: Option<Microcents>,
    /// USDC of the wallet; missing, when it could not be read.
    pub usdc: Option<MicroUsdc>,
    /// Cost of the cheapest call of its models.
    pub least: Microcents,
}

/// Known means of an automaton.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Vitals {
    /// The credits that were last read.
    pub credits: Option<Microcents>,
    /// Time of that reading.
    pub read_at: Option<Timestamp>,
    /// The USDC that was last read.
    pub usdc: Option<MicroUsdc>,
    /// Time for which it is known to be broke; `None` if it is not.
    pub broke_for: Option<Span>,
    /// With so many credits the cloud took no call.
    pub refused: Option<Microcents>,
    /// Time of the newest reading that brought credits.
    pub seen_at: Option<Timestamp>,
    /// The low-compute mode, if it was chosen.
    pub thrift: Option<LowComputeChoice>,
}

impl Vitals {
    /// Returns the means after a reading.
    #[must_use]
    pub fn after(self, reading: BalanceReading) -> Self {
        let BalanceReading { at, credits, usdc, least } = reading;
        let usdc = usdc.or(self.usdc);
        let thrift = self.thrift.filter(|thrift| thrift.lasts(at));
        let Some(credits) = credits else { return Self { usdc, seen_at: None, thrift, ..self } };
        let now = SurvivalTier::of(credits);
        let thrift = thrift.filter(|thrift| thrift.tier.is_none_or(|then| now <= then));
        let refused = self.refused.filter(|refused| credits <= *refused);
        let apart = self.seen_at.map_or(Span::ZERO, |seen| at.since(seen).min(APART_MAX));
        let broke = credits < least || refused.is_some();
        let broke_for = broke.then(|| match self.broke_for {
            Some(before) => Span::from_millis(before.as_millis() + apart.as_millis()).min(GRACE),
            None => Span::ZERO,
        });
        let credits = Some(credits);
        let read_at = Some(at);
        let seen_at = Some(at);
        Self { credits, read_at, usdc, broke_for, refused, seen_at, thrift }
    }

    /// The tier of what was last read; missing, when nothing ever was.
    #[must_use]
    pub fn tier(&self) -> Option<SurvivalTier> {
        self.credits.map(SurvivalTier::of)
    }

    /// The tier that it lives by: that of its credits, or `low_compute` where it chose to
    /// live cheaply and is not poorer.
    #[must_use]
    pub fn effective_tier(&self) -> Option<SurvivalTier> {
        let chosen = self.thrift.map(|_| SurvivalTier::LowCompute);
        self.tier().into_iter().chain(chosen).min()
    }

    /// Returns true if no call can be paid.
    #[must_use]
    pub const fn is_broke(&self) -> bool {
        self.broke_for.is_some()
    }

    /// Returns true if it has been broke for [`GRACE`].
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.broke_for.is_some_and(|span| span >= GRACE)
    }
}

/// Urgency of a request for money.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Names)]
#[serde(rename_all = "snake_case")]
pub enum DistressLevel {
    /// Credits run low.
    Low,
    /// They are nearly gone.
    Critical,
    /// It is dead.
    Dead,
}

impl DistressLevel {
    /// Returns the urgency for an automaton that is alive in this tier.
    #[must_use]
    pub const fn of(tier: SurvivalTier) -> Option<Self> {
        match tier {
            SurvivalTier::High | SurvivalTier::Normal => None,
            SurvivalTier::LowCompute => Some(Self::Low),
            SurvivalTier::Critical | SurvivalTier::Dead => Some(Self::Critical),
        }
    }

    /// The least time from one to the next of the same kind.
    #[must_use]
    pub const fn every(self) -> Span {
        match self {
            Self::Low => Span::from_secs(24 * 3600),
            Self::Critical => Span::from_secs(6 * 3600),
            Self::Dead => Span::from_secs(2 * 3600),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reading(secs: i64, cents: Option<i64>) -> BalanceReading {
        let at = Timestamp::from_millis(secs * 1000);
        let credits = cents.map(|cents| Microcents::from_cents(cents).unwrap());
        let least = Microcents::from_cents(10).unwrap();
        BalanceReading { at, credits, usdc: None, least }
    }

    fn after(readings: &[(i64, Option<i64>)]) -> Vitals {
        let step = |vitals: Vitals, (secs, cents): &(i64, Option<i64>)| {
            vitals.after(reading(*secs, *cents))
        };
        readings.iter().fold(Vitals::default(), step)
    }

    #[test]
    fn an_hour_of_readings_is_an_hour() {
        let every: Vec<_> = (0..13).map(|n| (n * 300, Some(3))).collect();
        assert!(!after(&every[..12]).is_spent() && after(&every).is_spent());
        let mut saved = every;
        saved[11].1 = Some(10);
        assert_eq!(after(&saved).broke_for, Some(Span::ZERO), "ten cents buy a call");
    }

    #[test]
    fn what_was_not_read_does_not_count() {
        let out: Vec<_> = (1..80).map(|n| (n * 300, None)).collect();
        let vitals = after(&[&[(0, Some(0))], out.as_slice()].concat());
        assert_eq!((vitals.broke_for, vitals.credits), (Some(Span::ZERO), Some(Microcents::ZERO)));
        assert_eq!(vitals.read_at, Some(Timestamp::EPOCH), "its age can be told");
        let never = after(&out);
        assert_eq!((never.tier(), never.is_broke()), (None, false), "unknown is not nothing");
        let back = after(&[(0, Some(0)), (300, None), (30_000, Some(0)), (30_300, Some(0))]);
        assert_eq!(back.broke_for, Some(Span::from_secs(300)));
    }

    #[test]
    fn a_refused_call_is_broke_until_there_is_more() {
        let few = after(&[(0, Some(12))]);
        let refused = Vitals { refused: few.credits, ..few };
        assert!(refused.after(reading(60, Some(12))).is_broke());
        let more = refused.after(reading(60, Some(13)));
        assert_eq!((more.is_broke(), more.refused), (false, None));
    }

    #[test]
    fn living_cheaply_ends_with_a_better_tier_or_a_day() {
        let rich = after(&[(0, Some(300))]);
        let thrift = LowComputeChoice { since: Timestamp::from_millis(1), tier: rich.tier() };
        let chosen = Vitals { thrift: Some(thrift), ..rich };
        assert_eq!(
            (chosen.effective_tier(), rich.effective_tier()),
            (Some(SurvivalTier::LowCompute), rich.tier())
        );
        let day = 24 * 3600;
        for (secs, cents, lasts) in [
            (0, Some(300), true),
            (60, Some(500), true),
            (60, Some(501), false),
            (60, None, true),
            (day, Some(300), true),
            (day + 1, Some(300), false),
            (day + 1, None, false),
            (-day, Some(300), false),
        ] {
            let next = chosen.after(reading(secs, cents));
            assert_eq!(next.thrift.is_some(), lasts, "{secs} {cents:?}");
        }
        let poorer = chosen.after(reading(60, Some(5)));
        assert_eq!(
            poorer.effective_tier(),
            Some(SurvivalTier::Critical),
            "it is no way to be richer"
        );
        let unknown =
            Vitals { thrift: Some(LowComputeChoice { tier: None, ..thrift }), ..Vitals::default() };
        assert_eq!(unknown.effective_tier(), Some(SurvivalTier::LowCompute));
        assert!(unknown.after(reading(60, Some(900))).thrift.is_some(), "unknown is not worse");
    }

    proptest! {
        #[test]
        fn nobody_dies_sooner_than_an_hour_of_readings(
            steps in prop::collection::vec((-100_000_i64..100_000, prop::option::of(-5_i64..20)), 1..60)
        ) {
            let mut at = 0_i64;
            let mut counted = 0_i64;
            let mut vitals = Vitals::default();
            let mut before = None::<i64>;
            for (step, cents) in steps {
                at += step;
                vitals = vitals.after(reading(at, cents));
                match (cents, before) {
                    (Some(cents), Some(last)) if cents < 10 => counted += (at - last).clamp(0, 600),
                    (Some(10..), _) => counted = 0,
                    _ => {}
                }
                if vitals.is_spent() {
                    prop_assert!(counted >= 3600, "{counted}");
                }
                before = cents.map(|_| at);
            }
        }
    }
}

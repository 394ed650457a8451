//! Pure: what answers of models may cost in a call, an hour, a wake and a day.
//!
//! Sums come from the ledger, where a cost stands at its worst case until more is known. A sum
//! that cannot be counted must never pass for a small one, and what costs nothing always fits.

use crate::money::Microcents;
use crate::time::{DAY, Span};

/// The span of the hourly ceiling.
const HOUR: Span = Span::from_secs(3600);

/// Ceilings for the cost of model calls. `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InferenceCeilings {
    /// One answer, at its worst.
    pub per_call: Option<Microcents>,
    /// All of any hour.
    pub per_hour: Option<Microcents>,
    /// All of one wake.
    pub per_session: Option<Microcents>,
    /// All of any 24 hours.
    pub per_day: Option<Microcents>,
}

/// Cost of model calls so far; unknown costs count at their maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InferenceSpend {
    /// In the last hour.
    pub hour: Microcents,
    /// In the wake that goes on.
    pub session: Microcents,
    /// In the last 24 hours.
    pub day: Microcents,
}

/// Period of a ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, derive_more::Display)]
pub enum CeilingScope {
    /// One answer.
    #[display("for this answer")]
    Call,
    /// Any hour.
    #[display("in an hour")]
    Hour,
    /// One wake.
    #[display("in this wake")]
    Session,
    /// Any 24 hours.
    #[display("in 24 hours")]
    Day,
}

impl CeilingScope {
    /// Returns the key in `automaton.json` that sets the ceiling.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Call => "modelStrategy.perCallCeilingCents",
            Self::Hour => "modelStrategy.hourlyBudgetCents",
            Self::Session => "modelStrategy.sessionBudgetCents",
            Self::Day => "treasuryPolicy.maxInferenceDailyCents",
        }
    }

    /// Returns the time for which a cost counts, if it expires by time alone.
    #[must_use]
    pub const fn window(self) -> Option<Span> {
        match self {
            Self::Call | Self::Session => None,
            Self::Hour => Some(HOUR),
            Self::Day => Some(DAY),
        }
    }
}

/// The next answer may cost more than is left for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "answers cost {spent} {scope} and the next one may cost {most}: together more than the \
     {limit} that `{}` allows",
    scope.key()
)]
pub struct OverCeiling {
    /// Ceiling that is exceeded.
    pub scope: CeilingScope,
    /// Cost of model calls in its period.
    pub spent: Microcents,
    /// The most that the next one can cost.
    pub most: Microcents,
    /// Limit for the period.
    pub limit: Microcents,
}

impl OverCeiling {
    /// Returns the largest spend that leaves room for the next answer; below zero if the answer
    /// never fits.
    #[must_use]
    pub const fn room(&self) -> Microcents {
        Microcents::new(self.limit.units().saturating_sub(self.most.units()))
    }
}

impl InferenceCeilings {
    /// Each ceiling that is set, with what was spent of it.
    pub fn each(
        &self,
        spend: &InferenceSpend,
    ) -> impl Iterator<Item = (CeilingScope, Microcents, Microcents)> {
        let all = [
            (CeilingScope::Call, Microcents::ZERO, self.per_call),
            (CeilingScope::Session, spend.session, self.per_session),
            (CeilingScope::Hour, spend.hour, self.per_hour),
            (CeilingScope::Day, spend.day, self.per_day),
        ];
        all.into_iter().filter_map(|(scope, spent, limit)| Some((scope, spent, limit?)))
    }

    /// Checks that an answer with this maximal cost fits beside the spend.
    ///
    /// # Errors
    /// The first ceiling that it would pass. What costs nothing always fits.
    pub fn fits(&self, spend: &InferenceSpend, most: Microcents) -> Result<(), OverCeiling> {
        if most <= Microcents::ZERO {
            return Ok(());
        }
        let over = self
            .each(spend)
            .find(|(_, spent, limit)| !spent.plus(most).is_ok_and(|sum| sum <= *limit));
        match over {
            None => Ok(()),
            Some((scope, spent, limit)) => Err(OverCeiling { scope, spent, most, limit }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn amount(units: i64) -> Microcents {
        Microcents::new(units)
    }

    fn spend(session: i64, hour: i64, day: i64) -> InferenceSpend {
        InferenceSpend { hour: amount(hour), session: amount(session), day: amount(day) }
    }

    #[test]
    fn an_answer_fits_up_to_the_last_unit_or_waits() {
        let day = InferenceCeilings { per_day: Some(amount(100)), ..InferenceCeilings::default() };
        assert_eq!(day.fits(&spend(0, 0, 60), amount(40)), Ok(()));
        let over = day.fits(&spend(0, 0, 60), amount(41)).unwrap_err();
        let spent = amount(60);
        let most = amount(41);
        let limit = amount(100);
        assert_eq!(over, OverCeiling { scope: CeilingScope::Day, spent, most, limit });
        assert_eq!(over.room(), amount(59));
        assert!(day.fits(&spend(0, 0, 0), amount(101)).unwrap_err().room() < Microcents::ZERO);
        assert!(day.fits(&spend(0, 0, i64::MAX), amount(1)).is_err(), "what overflows is too much");
        assert_eq!(day.fits(&spend(0, 0, 500), Microcents::ZERO), Ok(()), "what is free is free");
        let none = InferenceCeilings::default();
        assert_eq!(none.fits(&spend(i64::MAX, i64::MAX, i64::MAX), amount(1)), Ok(()));
    }

    #[test]
    fn each_ceiling_holds_and_is_told_with_its_key() {
        let all = InferenceCeilings {
            per_call: Some(amount(10)),
            per_session: Some(amount(20)),
            per_hour: Some(amount(30)),
            per_day: Some(amount(40)),
        };
        let scope = |spend, most| all.fits(&spend, amount(most)).err().map(|over| over.scope);
        assert_eq!(scope(spend(10, 20, 30), 10), None);
        assert_eq!(scope(spend(0, 0, 0), 11), Some(CeilingScope::Call));
        assert_eq!(scope(spend(11, 20, 30), 10), Some(CeilingScope::Session));
        assert_eq!(scope(spend(10, 21, 30), 10), Some(CeilingScope::Hour));
        assert_eq!(scope(spend(10, 20, 31), 10), Some(CeilingScope::Day));
        let told = all.fits(&spend(0, 25, 25), amount(6)).unwrap_err().to_string();
        assert!(told.contains("in an hour") && told.contains("hourlyBudgetCents"), "{told}");
    }

    proptest! {
        #[test]
        fn what_fits_never_passes_a_limit(
            spent in prop::array::uniform3(0_i64..1 << 50), most in 0_i64..1 << 50,
            limits in prop::array::uniform4(prop::option::of(0_i64..1 << 50)),
        ) {
            let [per_call, per_session, per_hour, per_day] = limits.map(|limit| limit.map(amount));
            let ceilings = InferenceCeilings { per_call, per_session, per_hour, per_day };
            let [session, hour, day] = spent;
            let fits = ceilings.fits(&spend(session, hour, day), amount(most)).is_ok();
            let within = [0, session, hour, day]
                .into_iter()
                .zip(limits)
                .all(|(spent, limit)| limit.is_none_or(|limit| spent + most <= limit));
            prop_assert_eq!(fits, most == 0 || within);
        }
    }
}

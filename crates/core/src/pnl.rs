//! Pure: profit and loss, as sums over the ledger.
//!
//! Costs are positive here and revenue is, too; what is left of the one after the
//! other is the net. An exchange, USDC for the same worth in credits, is neither, and
//! must never be counted as one of them.

use schemars::JsonSchema;
use serde::Serialize;

use crate::money::{MicroUsdc, Microcents, MoneyError};
use crate::names::Names;
use crate::time::{DAY, Timestamp};

/// Grouping of bookings. Its [`name`](Self::name) is the one on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, Names)]
#[serde(rename_all = "snake_case")]
pub enum PnlGrouping {
    /// By category.
    Category,
    /// Their date in UTC.
    Day,
    /// The goal that they serve.
    Goal,
    /// The turn in which they were made.
    Turn,
    /// The rented machine that was paid for, or its port that was sold.
    Service,
}

/// Model calls since the creator last called, or since the last rest that the envelope imposed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UnattendedUsage {
    /// Answers that a model was asked for.
    pub answers: u32,
    /// Their cost.
    pub cost: Microcents,
    /// Revenue in the same time.
    pub revenue: Microcents,
    /// Rests for having thought too much since the creator last called.
    pub rests: u32,
}

impl UnattendedUsage {
    /// Returns the average cost of an answer, in microcents.
    #[must_use]
    pub fn average(&self) -> i64 {
        self.cost.units() / i64::from(self.answers.max(1))
    }

    /// Returns cost minus revenue, in microcents; below zero if the revenue is higher.
    #[must_use]
    pub const fn lost(&self) -> i64 {
        self.cost.units().saturating_sub(self.revenue.units())
    }
}

/// Sums of some bookings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Sums {
    /// Revenue.
    pub revenue: Microcents,
    /// Cost; unknown costs count at their maximum.
    pub cost: Microcents,
}

impl Sums {
    /// Returns revenue minus cost.
    ///
    /// # Errors
    /// [`MoneyError::Overflow`].
    pub fn net(&self) -> Result<Microcents, MoneyError> {
        self.revenue.minus(self.cost)
    }

    /// The sums over both.
    ///
    /// # Errors
    /// [`MoneyError::Overflow`].
    pub fn plus(&self, other: &Self) -> Result<Self, MoneyError> {
        let revenue = self.revenue.plus(other.revenue)?;
        let cost = self.cost.plus(other.cost)?;
        Ok(Self { revenue, cost })
    }

    /// Subtracts the sums of another value.
    ///
    /// # Errors
    /// [`MoneyError::Overflow`].
    pub fn minus(&self, other: &Self) -> Result<Self, MoneyError> {
        let revenue = self.revenue.minus(other.revenue)?;
        let cost = self.cost.minus(other.cost)?;
        Ok(Self { revenue, cost })
    }
}

/// One line of the account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PnlLine {
    /// The category, the date, the goal, the turn's number; nothing where the bookings
    /// have none.
    pub name: Option<String>,
    /// Its sums.
    #[serde(flatten)]
    pub sums: Sums,
    /// Revenue without cost.
    pub net: Microcents,
}

/// Exchanges of USDC for credits, which are neither cost nor revenue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct ExchangeTotals {
    /// USDC paid by purchases of credits that are settled.
    pub paid: MicroUsdc,
    /// The credits for them.
    pub got: Microcents,
}

/// Profit and loss over a span of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ProfitAndLoss {
    /// From when on bookings count.
    pub since: Timestamp,
    /// Meaning of the lines.
    pub by: PnlGrouping,
    /// The lines: the newest, should there be too many.
    pub lines: Vec<PnlLine>,
    /// Sums of older lines that are left out.
    pub left_out: Option<Sums>,
    /// The sums over all bookings.
    pub total: Sums,
    /// Revenue without cost, over all bookings.
    pub net: Microcents,
    /// Exchanges.
    pub exchanged: ExchangeTotals,
}

/// Losses since losses count: cost minus revenue, below zero if the revenue is higher.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Losses {
    /// In the last 24 hours.
    pub day: Microcents,
    /// By the goal that lost most, with its name.
    pub goal: Option<(String, Microcents)>,
    /// In all.
    pub total: Microcents,
}

/// The beginning of the last `days` days of UTC, today included.
#[must_use]
pub fn beginning_of(days: u32, now: Timestamp) -> Timestamp {
    let today = now.as_millis().div_euclid(DAY.as_millis());
    let first = today.saturating_sub(i64::from(days.max(1)) - 1);
    Timestamp::from_millis(first.saturating_mul(DAY.as_millis()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn days_begin_at_midnight() {
        let check = |days, now: i64, first: &str| {
            let begins = beginning_of(days, Timestamp::from_millis(now));
            assert_eq!(begins.to_string(), format!("{first}T00:00:00.000Z"));
        };
        check(1, 1_771_509_802_123, "2026-02-19");
        check(0, 1_771_509_802_123, "2026-02-19");
        check(7, 1_771_509_802_123, "2026-02-13");
        check(1, 1_771_459_200_000, "2026-02-19");
        check(1, 1_771_459_199_999, "2026-02-18");
        check(1, -1, "1969-12-31");
    }

    proptest! {
        #[test]
        fn what_is_left_out_and_what_is_not_are_all(amounts in prop::collection::vec((0_i64..1 << 40, 0_i64..1 << 40), 1..20)) {
            let sums = |(revenue, cost): &(i64, i64)| Sums {
                revenue: Microcents::new(*revenue),
                cost: Microcents::new(*cost),
            };
            let all = amounts.iter().try_fold(Sums::default(), |all, one| all.plus(&sums(one)));
            let all = all.unwrap();
            let rest = all.minus(&sums(&amounts[0])).unwrap();
            prop_assert_eq!(rest.plus(&sums(&amounts[0])), Ok(all));
            let net: i64 = amounts.iter().map(|(revenue, cost)| revenue - cost).sum();
            prop_assert_eq!(all.net(), Ok(Microcents::new(net)));
        }
    }
}

//! Pure: what may be spent, and whether a payment still fits.
//!
//! Amounts of all assets are added up at face value. Time in the ledger only
//! moves forward: a clock that is set back frees nothing.

use automaton_core::money::MicroUsdc;
use automaton_core::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use crate::error::{Code, Refusal};

/// How long a payment counts towards the ceiling of a day.
pub(crate) const DAY: Span = Span::from_secs(24 * 60 * 60);

/// The ceilings. A payment must fit under each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// The largest single payment.
    pub per_payment: MicroUsdc,
    /// The sum of all payments within any 24 hours.
    pub per_day: MicroUsdc,
    /// How many payments there may ever be.
    pub payments_max: u64,
}

/// Other ceilings. Those that are not named stay as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// See [`Limits::per_payment`].
    pub per_payment: Option<MicroUsdc>,
    /// See [`Limits::per_day`].
    pub per_day: Option<MicroUsdc>,
    /// See [`Limits::payments_max`].
    pub payments_max: Option<u64>,
}

/// What was signed so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spent {
    /// The sum of the last 24 hours.
    pub day: MicroUsdc,
    /// The sum of all payments that were ever signed.
    pub ever: MicroUsdc,
    /// The number of payments ever.
    pub payments: u64,
}

/// The ceilings and what counts towards them now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Standing {
    /// The ceilings.
    pub limits: Limits,
    /// What was signed.
    pub spent: Spent,
}

impl Limits {
    /// Whether one more payment fits.
    ///
    /// # Errors
    /// A refusal that names the ceiling and both amounts.
    pub(crate) fn permit(&self, spent: Spent, amount: MicroUsdc) -> Result<(), Refusal> {
        let Self { per_payment, per_day, payments_max } = self;
        let over = |code, what: String| Err(Refusal::new(code, what));
        if amount > *per_payment {
            let rule = format!("is more than the ceiling of {per_payment} a payment");
            return over(Code::PerPayment, format!("amount: {amount} {rule}"));
        }
        if spent.day.plus(amount).is_ok_and(|sum| sum <= *per_day) {
            if spent.payments < *payments_max {
                return Ok(());
            }
            return over(Code::Count, format!("the ceiling of {payments_max} payments is reached"));
        }
        let rule = format!("is more than the ceiling of {per_day} a day");
        over(Code::PerDay, format!("amount: {amount} after {} in 24 hours {rule}", spent.day))
    }
}

/// The time at which a payment is counted: the clock's, but never before that
/// of the payment counted last.
pub(crate) fn ledger_time(clock: Timestamp, last: Timestamp) -> Timestamp {
    clock.max(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits =
        Limits { per_payment: MicroUsdc::new(100), per_day: MicroUsdc::new(250), payments_max: 4 };

    #[test]
    fn a_payment_must_fit_under_every_ceiling() {
        let check = |day: u64, payments: u64, amount: u64, code: Option<Code>| {
            let day = MicroUsdc::new(day);
            let spent = Spent { day, ever: day, payments };
            let verdict = LIMITS.permit(spent, MicroUsdc::new(amount));
            assert_eq!(
                verdict.err().map(|refusal| refusal.code),
                code,
                "{day} {payments} {amount}"
            );
        };
        check(0, 0, 100, None);
        check(0, 0, 101, Some(Code::PerPayment));
        check(150, 0, 100, None);
        check(151, 0, 100, Some(Code::PerDay));
        check(250, 3, 1, Some(Code::PerDay));
        check(u64::MAX, 0, 1, Some(Code::PerDay));
        check(0, 3, 1, None);
        check(0, 4, 1, Some(Code::Count));
    }

    #[test]
    fn a_refusal_names_the_amounts() {
        let limits = Limits { per_payment: MicroUsdc::new(5_000_000), ..LIMITS };
        let refusal = limits.permit(Spent::default(), MicroUsdc::new(900_000_000)).unwrap_err();
        assert_eq!(
            refusal.reason,
            "amount: 900.00 USDC is more than the ceiling of 5.00 USDC a payment"
        );
    }

    #[test]
    fn time_never_goes_back() {
        let (early, late) = (Timestamp::from_millis(1), Timestamp::from_millis(2));
        assert_eq!(ledger_time(early, late), late);
        assert_eq!(ledger_time(late, early), late);
    }
}

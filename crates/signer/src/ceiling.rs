//! Pure: spending ceilings, the totals counted against them, and the check that a payment fits.
//!
//! Payments in all assets are added up at face value. Otherwise a second token would double every
//! ceiling.

use alloy_primitives::{Address, B256};
use automaton_core::money::MicroUsdc;
use automaton_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::{SignerRefusal, SignerRefusalCode};

/// Spending ceilings. A payment must fit under each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SigningLimits {
    /// The largest single payment.
    pub per_payment: MicroUsdc,
    /// The sum of all payments within any hour.
    pub per_hour: MicroUsdc,
    /// The sum of all payments within any 24 hours.
    pub per_day: MicroUsdc,
    /// The sum of all payments to one payee within any 24 hours.
    pub per_payee: MicroUsdc,
    /// The sum of all payments that may ever be signed.
    pub lifetime: MicroUsdc,
    /// The number of payments that may ever be signed.
    pub payments_max: u64,
}

/// Changes to the ceilings. A ceiling that is `None` stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SigningLimitsChange {
    /// See [`SigningLimits::per_payment`].
    pub per_payment: Option<MicroUsdc>,
    /// See [`SigningLimits::per_hour`].
    pub per_hour: Option<MicroUsdc>,
    /// See [`SigningLimits::per_day`].
    pub per_day: Option<MicroUsdc>,
    /// See [`SigningLimits::per_payee`].
    pub per_payee: Option<MicroUsdc>,
    /// See [`SigningLimits::lifetime`].
    pub lifetime: Option<MicroUsdc>,
    /// See [`SigningLimits::payments_max`].
    pub payments_max: Option<u64>,
}

/// Totals of the payments signed so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpendingTotals {
    /// The sum of the last hour.
    pub hour: MicroUsdc,
    /// The sum of the last 24 hours.
    pub day: MicroUsdc,
    /// The sum of the last 24 hours to one payee: the payee in question, or else the payee that
    /// got most.
    pub payee: MicroUsdc,
    /// The sum of all payments that were ever signed.
    pub ever: MicroUsdc,
    /// The number of payments ever.
    pub payments: u64,
}

/// The rules in force, and the totals counted against the ceilings now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignerStatus {
    /// The wallet's address. `None` until the wallet is unlocked for the first time.
    pub wallet: Option<Address>,
    /// The ceilings.
    pub limits: SigningLimits,
    /// The totals of the payments signed so far.
    pub spent: SpendingTotals,
    /// The window clock's time. Only differences between two readings mean anything.
    pub window: Timestamp,
    /// The address whose signed message may raise a ceiling.
    pub creator: Option<Address>,
    /// The serial that the next such message must contain.
    pub serial: u64,
    /// SHA-256 over all rules in canonical form: ceilings, creator and permits.
    pub rules: B256,
    /// The permits, one line each.
    pub permits: Vec<String>,
    /// The permits that the last start asked for and the creator has not accepted. That start was
    /// refused.
    pub asked_for: Vec<String>,
    /// The hash with which the creator accepts `asked_for`.
    pub asked: Option<B256>,
}

impl SignerStatus {
    /// Returns the refusal of one more payment of `amount` to a payee that has received nothing
    /// yet, if a ceiling refuses it. A payee that has already received payments may reach its own
    /// ceiling earlier.
    #[must_use]
    pub fn refusal_for(&self, amount: MicroUsdc) -> Option<SignerRefusal> {
        let spent = SpendingTotals { payee: MicroUsdc::new(0), ..self.spent };
        self.limits.permit(spent, amount).err()
    }
}

impl SigningLimitsChange {
    /// Returns `now` with these changes applied.
    pub(crate) fn applied_to(&self, now: SigningLimits) -> SigningLimits {
        SigningLimits {
            per_payment: self.per_payment.unwrap_or(now.per_payment),
            per_hour: self.per_hour.unwrap_or(now.per_hour),
            per_day: self.per_day.unwrap_or(now.per_day),
            per_payee: self.per_payee.unwrap_or(now.per_payee),
            lifetime: self.lifetime.unwrap_or(now.lifetime),
            payments_max: self.payments_max.unwrap_or(now.payments_max),
        }
    }

    /// Returns true if at least one ceiling becomes higher. Only the creator may do that.
    #[must_use]
    pub fn raises(&self, now: SigningLimits) -> bool {
        let then = self.applied_to(now);
        then.per_payment > now.per_payment
            || then.per_hour > now.per_hour
            || then.per_day > now.per_day
            || then.per_payee > now.per_payee
            || then.lifetime > now.lifetime
            || then.payments_max > now.payments_max
    }
}

impl SigningLimits {
    /// Checks that one more payment fits under every ceiling.
    ///
    /// # Errors
    /// Returns a refusal with the amount, the sum before it and the ceiling. If several ceilings
    /// refuse, the one that holds longest is named.
    pub(crate) fn permit(
        &self,
        spent: SpendingTotals,
        amount: MicroUsdc,
    ) -> Result<(), SignerRefusal> {
        let Self { per_payment, payments_max, .. } = self;
        if amount > *per_payment {
            let rule = format!("is more than the ceiling of {per_payment} a payment");
            return Err(SignerRefusal::new(
                SignerRefusalCode::PerPayment,
                format!("amount: {amount} {rule}"),
            ));
        }
        if spent.payments >= *payments_max {
            let rule = format!("the ceiling of {payments_max} payments is reached");
            return Err(SignerRefusal::new(
                SignerRefusalCode::Count,
                format!("amount: {amount}: {rule}"),
            ));
        }
        for (code, sum, ceiling, (since, rule)) in [
            (SignerRefusalCode::Lifetime, spent.ever, self.lifetime, ("ever", "of its life")),
            (SignerRefusalCode::PerDay, spent.day, self.per_day, ("in 24 hours", "a day")),
            (
                SignerRefusalCode::PerPayee,
                spent.payee,
                self.per_payee,
                ("to it in 24 hours", "a payee and day"),
            ),
            (SignerRefusalCode::PerHour, spent.hour, self.per_hour, ("in an hour", "an hour")),
        ] {
            if sum.plus(amount).is_ok_and(|sum| sum <= ceiling) {
                continue;
            }
            let rule = format!("is more than the ceiling of {ceiling} {rule}");
            return Err(SignerRefusal::new(
                code,
                format!("amount: {amount} after {sum} {since} {rule}"),
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usdc(units: u64) -> MicroUsdc {
        MicroUsdc::new(units)
    }

    fn limits() -> SigningLimits {
        SigningLimits {
            per_payment: usdc(100),
            per_hour: usdc(150),
            per_day: usdc(250),
            per_payee: usdc(200),
            lifetime: usdc(300),
            payments_max: 4,
        }
    }

    #[test]
    fn a_payment_must_fit_under_every_ceiling() {
        let check =
            |change: fn(&mut SpendingTotals), amount: u64, code: Option<SignerRefusalCode>| {
                let mut spent = SpendingTotals::default();
                change(&mut spent);
                let verdict = limits().permit(spent, usdc(amount));
                assert_eq!(verdict.err().map(|it| it.code), code, "{spent:?} {amount}");
            };
        check(|_| {}, 100, None);
        check(|_| {}, 101, Some(SignerRefusalCode::PerPayment));
        check(|it| it.hour = usdc(50), 100, None);
        check(|it| it.hour = usdc(51), 100, Some(SignerRefusalCode::PerHour));
        check(|it| it.day = usdc(150), 100, None);
        check(|it| it.day = usdc(151), 100, Some(SignerRefusalCode::PerDay));
        check(|it| it.day = usdc(u64::MAX), 1, Some(SignerRefusalCode::PerDay));
        check(|it| it.payee = usdc(100), 100, None);
        check(|it| it.payee = usdc(101), 100, Some(SignerRefusalCode::PerPayee));
        check(|it| it.ever = usdc(200), 100, None);
        check(|it| it.ever = usdc(201), 100, Some(SignerRefusalCode::Lifetime));
        check(|it| it.payments = 3, 1, None);
        check(|it| it.payments = 4, 1, Some(SignerRefusalCode::Count));
    }

    #[test]
    fn a_refusal_names_amount_sum_and_ceiling() {
        let hundred_fifty = usdc(150_000_000);
        let limits =
            SigningLimits { per_payment: hundred_fifty, per_day: hundred_fifty, ..limits() };
        let told =
            |spent: SpendingTotals, amount| limits.permit(spent, usdc(amount)).unwrap_err().reason;
        assert_eq!(
            told(SpendingTotals::default(), 900_000_000),
            "amount: 900.00 USDC is more than the ceiling of 150.00 USDC a payment"
        );
        let limits = SigningLimits { lifetime: usdc(1_000_000_000), ..limits };
        let told = limits.permit(
            SpendingTotals { day: hundred_fifty, ..SpendingTotals::default() },
            usdc(1_000_000),
        );
        assert_eq!(
            told.unwrap_err().reason,
            "amount: 1.00 USDC after 150.00 USDC in 24 hours is more than the ceiling of \
             150.00 USDC a day"
        );
    }

    #[test]
    fn one_unit_more_of_anything_is_a_raise() {
        let raises = |change: fn(&mut SigningLimitsChange)| {
            let mut to = SigningLimitsChange::default();
            change(&mut to);
            to.raises(limits())
        };
        assert!(!raises(|_| {}));
        assert!(raises(|it| it.per_payment = Some(usdc(101))));
        assert!(raises(|it| it.per_hour = Some(usdc(151))));
        assert!(raises(|it| it.per_day = Some(usdc(251))));
        assert!(raises(|it| it.per_payee = Some(usdc(201))));
        assert!(raises(|it| it.lifetime = Some(usdc(301))));
        assert!(raises(|it| it.payments_max = Some(5)));
        let same = SigningLimitsChange {
            per_payment: Some(usdc(100)),
            per_hour: Some(usdc(0)),
            per_day: Some(usdc(250)),
            per_payee: Some(usdc(1)),
            lifetime: Some(usdc(299)),
            payments_max: Some(4),
        };
        assert!(!same.raises(limits()));
        let lowered = same.applied_to(limits());
        assert_eq!(
            (lowered.per_hour, lowered.per_payee, lowered.payments_max),
            (usdc(0), usdc(1), 4)
        );
        assert!(SigningLimitsChange { per_day: Some(usdc(999)), ..same }.raises(limits()));
    }
}

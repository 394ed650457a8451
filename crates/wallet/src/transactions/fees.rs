//! Pure: the fees and the gas limit of a transaction, and their bounds.

use automaton_core::error::Classified;
use automaton_core::time::Span;

/// The highest prices that a transaction pays for a unit of gas, in wei (EIP-1559).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fees {
    /// The price in all.
    pub max: u64,
    /// The part of it for the block's maker.
    pub priority: u64,
}

/// The operator's limits on fees, and the patience with a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeePolicy {
    /// The time that an attempt may be in no block before it is replaced.
    pub replace_after: Span,
    /// The highest price of a unit of gas, in wei.
    pub fee_max: u64,
}

impl FeePolicy {
    /// Returns fees within the limits.
    #[must_use]
    pub fn bounded(self, fees: Fees) -> Fees {
        let max = fees.max.max(1).min(self.fee_max);
        Fees { max, priority: fees.priority.min(max) }
    }

    /// Returns the fees of a replacement, or nothing if they would be beyond the limits. They are
    /// an eighth above those before, since nodes take no smaller raise, or the current ones, if
    /// those are higher.
    #[must_use]
    pub fn raised(self, before: Fees, current: Fees) -> Option<Fees> {
        let more = |fee: u64| fee.saturating_add(fee.div_ceil(8));
        let current = self.bounded(current);
        let max = more(before.max).max(current.max);
        let priority = more(before.priority).max(current.priority).min(max);
        (max <= self.fee_max && max > before.max).then_some(Fees { max, priority })
    }
}

/// The gas limits that a kind of transaction is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GasBounds {
    /// The lowest limit. Only used gas is paid for, and too low an estimate must not make a
    /// transaction fail.
    pub min: u64,
    /// The highest limit. No transaction of this kind takes as much, so a node that estimates
    /// more is wrong.
    pub max: u64,
}

/// A node's estimate is beyond the gas of any such transaction. Nothing is known about the
/// transaction, which another node may estimate well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Classified)]
#[error(
    "the node estimates {estimate} gas for a transfer, and {max} is the most that one is given"
)]
#[class(Transient)]
pub struct GasEstimateError {
    /// The estimate.
    pub estimate: u64,
    /// The highest limit.
    pub max: u64,
}

impl GasBounds {
    /// Returns the gas limit of a transaction: a fifth above the estimate, since the state that
    /// it runs on changes until the block.
    ///
    /// # Errors
    /// Fails if the limit would be above the highest.
    pub fn limit(self, estimate: u64) -> Result<u64, GasEstimateError> {
        let gas = estimate.saturating_mul(6) / 5;
        if gas > self.max {
            return Err(GasEstimateError { estimate, max: self.max });
        }
        Ok(gas.max(self.min))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOUNDS: GasBounds = GasBounds { min: 120_000, max: 300_000 };

    #[test]
    fn an_estimate_that_no_transaction_takes_is_refused() {
        assert_eq!(BOUNDS.limit(0), Ok(120_000));
        assert_eq!(BOUNDS.limit(110_000), Ok(132_000));
        assert_eq!(BOUNDS.limit(250_000), Ok(300_000));
        for estimate in [250_001, 30_000_000, u64::MAX] {
            assert_eq!(BOUNDS.limit(estimate), Err(GasEstimateError { estimate, max: 300_000 }));
        }
    }

    proptest! {
        #[test]
        fn a_gas_limit_is_within_its_bounds_and_above_the_estimate(
            estimate in any::<u64>(), min in 0_u64..1 << 40, more in 0_u64..1 << 40,
        ) {
            let bounds = GasBounds { min, max: min + more };
            match bounds.limit(estimate) {
                Ok(gas) => prop_assert!(gas >= estimate && gas >= min && gas <= bounds.max),
                Err(_) => prop_assert!(u128::from(estimate) * 6 / 5 > u128::from(bounds.max)),
            }
        }

        #[test]
        fn a_replacement_pays_an_eighth_more_and_never_beyond_the_limit(
            before in (1_u64..1 << 62, 0_u64..1 << 62),
            now in (any::<u64>(), any::<u64>()),
            fee_max in 1_u64..1 << 62,
        ) {
            let fees = |(max, priority): (u64, u64)| Fees { max, priority: priority.min(max) };
            let before = fees(before);
            let now = fees(now);
            let policy = FeePolicy { replace_after: Span::ZERO, fee_max };
            let bounded = policy.bounded(now);
            prop_assert!(bounded.max <= fee_max && bounded.priority <= bounded.max);
            let eighth = |old: u64, new: u64| u128::from(new) * 8 >= u128::from(old) * 9;
            match policy.raised(before, now) {
                Some(fees) => {
                    prop_assert!(fees.max <= fee_max && fees.priority <= fees.max);
                    prop_assert!(eighth(before.max, fees.max));
                    prop_assert!(eighth(before.priority, fees.priority));
                    prop_assert!(fees.max >= bounded.max && fees.priority >= bounded.priority);
                }
                None => prop_assert!(!eighth(before.max, fee_max) || before.max >= fee_max),
            }
        }
    }
}

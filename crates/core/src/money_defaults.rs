//! Pure: the amounts of money that hold where nobody configures others.
//!
//! They are in one place because they depend on each other. A new automaton buys
//! [`FIRST_PURCHASE_USD`] of credits, so each amount that it needs for its first hours
//! must fit into that purchase. The relations are checked when this crate is compiled;
//! the tests of `policy` check that they have the effect that is meant.

use crate::money::{MicroUsdc, Microcents};

/// Credits that an automatic purchase buys, in US dollars: the smallest tier.
pub const FIRST_PURCHASE_USD: u32 = 5;

/// The balance in cents at or below which credits are bought automatically. Above it the
/// survival tier is `normal`.
pub const REFILL_CENTS: u32 = 50;

/// The balance in cents that no gift and no paid request may go below.
pub const RESERVE_CENTS: u32 = 100;

/// The largest single transfer, in cents.
pub const TRANSFER_CENTS: u32 = 5_000;

/// All transfers of an hour, in cents.
pub const TRANSFER_HOUR_CENTS: u32 = 10_000;

/// All transfers of 24 hours, in cents.
pub const TRANSFER_DAY_CENTS: u32 = 25_000;

/// The largest payment for one request, in cents.
pub const REQUEST_CENTS: u32 = 100;

/// The payments for requests of an hour, as a multiple of the largest one.
pub const REQUESTS_PER_HOUR: u32 = 10;

/// The payments for requests of 24 hours, as a multiple of the largest one.
pub const REQUESTS_PER_DAY: u32 = 50;

/// The amount in cents above which the creator is asked.
pub const ASK_ABOVE_CENTS: u32 = 1_000;

/// The cost of all answers of models of 24 hours, in cents.
pub const THINKING_DAY_CENTS: u32 = 500;

/// The same where the model was found by its API key and nobody was asked.
pub const UNASKED_THINKING_DAY_CENTS: u32 = 100;

/// [`FIRST_PURCHASE_USD`] in cents.
pub const FIRST_PURCHASE_CENTS: u32 = FIRST_PURCHASE_USD * 100;

const _: () = {
    assert!(REFILL_CENTS < RESERVE_CENTS, "a gift never causes a purchase by itself");
    assert!(RESERVE_CENTS < FIRST_PURCHASE_CENTS, "the first purchase leaves room to give");
    assert!(FIRST_PURCHASE_CENTS >= 4 * RESERVE_CENTS, "half of it may be given away at once");
    assert!(THINKING_DAY_CENTS <= FIRST_PURCHASE_CENTS, "one purchase pays for a day");
    assert!(UNASKED_THINKING_DAY_CENTS <= THINKING_DAY_CENTS);
    assert!(ASK_ABOVE_CENTS <= TRANSFER_CENTS, "a question can be followed by a transfer");
    assert!(TRANSFER_CENTS <= TRANSFER_HOUR_CENTS && TRANSFER_HOUR_CENTS <= TRANSFER_DAY_CENTS);
    assert!(REQUEST_CENTS <= ASK_ABOVE_CENTS, "a paid request needs no question");
    assert!(1 <= REQUESTS_PER_HOUR && REQUESTS_PER_HOUR <= REQUESTS_PER_DAY);
};

/// Returns an amount of this table as credits.
#[must_use]
pub fn credits(cents: u32) -> Microcents {
    Microcents::new(i64::from(cents) * Microcents::PER_CENT)
}

/// Returns what [`FIRST_PURCHASE_USD`] of credits cost.
#[must_use]
pub fn first_purchase_price() -> MicroUsdc {
    MicroUsdc::new(u64::from(FIRST_PURCHASE_USD) * 1_000_000)
}

/// Returns the smaller one of a ceiling and of what is there. An unknown balance lowers
/// nothing: it is not an empty one.
#[must_use]
pub fn within_balance(ceiling: Microcents, balance: Option<Microcents>) -> Microcents {
    balance.map_or(ceiling, |balance| ceiling.min(balance.max(Microcents::ZERO)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tier::SurvivalTier;
    use crate::wire::cloud::TIERS_USD;

    #[test]
    fn the_first_purchase_is_the_smallest_tier_and_ends_what_makes_it_needed() {
        assert_eq!(TIERS_USD.iter().min(), Some(&FIRST_PURCHASE_USD));
        assert!(SurvivalTier::of(credits(REFILL_CENTS)).is_poor());
        assert!(!SurvivalTier::of(credits(REFILL_CENTS + 1)).is_poor());
        assert!(!SurvivalTier::of(credits(FIRST_PURCHASE_CENTS)).is_poor());
        assert_eq!(first_purchase_price().face_value(), Ok(credits(FIRST_PURCHASE_CENTS)));
    }

    proptest! {
        #[test]
        fn no_ceiling_that_is_shown_is_above_the_balance(
            ceiling in 0_i64..10_000_000_000, balance in -1_000_000_i64..10_000_000_000,
        ) {
            let shown = within_balance(Microcents::new(ceiling), Some(Microcents::new(balance)));
            prop_assert!(shown >= Microcents::ZERO);
            prop_assert!(shown.units() <= ceiling && shown.units() <= balance.max(0));
            prop_assert!(shown.units() == ceiling || shown.units() == balance.max(0));
            prop_assert_eq!(within_balance(Microcents::new(ceiling), None).units(), ceiling);
        }
    }
}

//! Credits that nobody has taken yet.

use alloy_primitives::Address;
use automaton_core::money::Microcents;
use automaton_core::time::Timestamp;

/// Credits of a wallet that never signed in: they wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnclaimedCredits {
    /// The wallet.
    pub wallet: Address,
    /// The amount.
    pub amount: Microcents,
    /// The time of the first posting that it had.
    pub since: Timestamp,
}

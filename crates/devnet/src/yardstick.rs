//! Pure: what a transfer costs when nothing but the EVM has a part in it.
//!
//! Transfers of the token one after the other over a state in memory: no signature,
//! no block, no log, nobody who asks. Everything that settles a payment is measured
//! against it. It must never be taken for a chain.

use alloy_primitives::{Address, Bytes, U256};
use alloy_sol_types::{SolCall, sol};

use crate::chain::{Chain, Refusal};

sol! {
    /// ERC-20.
    function transfer(address to, uint256 value) external returns (bool);
}

/// The account that pays, and so much of the token as it has.
const PAYER: Address = Address::repeat_byte(0x11);
const FUNDS: u64 = u64::MAX;

/// A state in memory in which one account has the token.
#[derive(Debug)]
pub struct Yardstick(Chain);

impl Yardstick {
    /// The token, deployed, and an account that has some.
    ///
    /// # Errors
    /// When the token cannot be deployed.
    pub fn new() -> Result<Self, Refusal> {
        let mut chain = Chain::new(crate::CHAIN_ID, 1)?;
        chain.endow(PAYER, FUNDS)?;
        Ok(Self(chain))
    }

    /// One transfer of one unit to the account of this number.
    ///
    /// # Errors
    /// When the EVM refuses it.
    pub fn transfer(&mut self, number: u64) -> Result<(), Refusal> {
        let to = Address::left_padding_from(&number.saturating_add(1).to_be_bytes());
        let input: Bytes = transferCall { to, value: U256::ONE }.abi_encode().into();
        self.0.bare(PAYER, input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_moves_one_unit() {
        let mut yardstick = Yardstick::new().unwrap();
        for number in 0..3 {
            yardstick.transfer(number).unwrap();
        }
        assert_eq!(yardstick.0.account(PAYER).nonce, 3);
    }
}

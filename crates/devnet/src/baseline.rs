//! What a transfer costs when nothing but the EVM has a part in it.
//!
//! Transfers of the token one after the other over a state in memory: no block, no
//! log, nobody who asks. A [`BaselineChain`] makes its own, without a signature; a
//! [`Replay`] does what the log of a chain has, with all the signatures. Everything
//! that settles a payment is measured against them. Neither must ever be taken for a
//! chain.

use std::path::Path;

use alloy_primitives::{Address, Bytes, U256};
use alloy_sol_types::{SolCall, sol};

use crate::chain::{Chain, ChainOperation, ChainRefusal};
use crate::error::DevnetError;
use crate::journal::{GenesisRecord, Journal};

sol! {
    /// ERC-20.
    function transfer(address to, uint256 value) external returns (bool);
}

/// The account that pays, and so much of the token as it has.
const PAYER: Address = Address::repeat_byte(0x11);
const FUNDS: u64 = u64::MAX;

/// A state in memory in which one account has the token.
#[derive(Debug)]
pub struct BaselineChain(Chain);

impl BaselineChain {
    /// The token, deployed, and an account that has some.
    ///
    /// # Errors
    /// When the token cannot be deployed.
    pub fn new() -> Result<Self, ChainRefusal> {
        let mut chain = Chain::new(crate::CHAIN_ID, 1)?;
        chain.endow(PAYER, FUNDS)?;
        Ok(Self(chain))
    }

    /// One transfer of one unit to the account of this number.
    ///
    /// # Errors
    /// When the EVM refuses it.
    pub fn transfer(&mut self, number: u64) -> Result<(), ChainRefusal> {
        let to = Address::left_padding_from(&number.saturating_add(1).to_be_bytes());
        let input: Bytes = transferCall { to, value: U256::ONE }.abi_encode().into();
        self.0.bare(PAYER, input)
    }
}

/// The transactions of a chain that has ended, to be done once more.
#[derive(Debug)]
pub struct Replay {
    chain: Chain,
    /// The bytes of each, and the time of its block.
    sent: std::vec::IntoIter<(Bytes, u64)>,
}

impl Replay {
    /// Reads the log in this folder, and funds whom that funded.
    ///
    /// # Errors
    /// When the log cannot be used.
    pub fn of(folder: &Path) -> Result<Self, DevnetError> {
        let (mut journal, birth) = Journal::open(folder, GenesisRecord::new(crate::CHAIN_ID, 0)?)?;
        let mut chain = Chain::new(birth.chain_id, birth.time)?;
        let mut sent = Vec::new();
        while let Some(record) = journal.next_record()? {
            match record.act {
                ChainOperation::Transaction { raw, time } => sent.push((raw, time)),
                ChainOperation::Transactions { raws, time } => {
                    sent.extend(raws.into_iter().map(|raw| (raw, time)));
                }
                other => {
                    chain.perform(&other)?;
                }
            }
        }
        Ok(Self { chain, sent: sent.into_iter() })
    }

    /// Does the next one: who sent it is recovered, it is run, and the state changes.
    /// Whether there was one.
    ///
    /// # Errors
    /// When the EVM refuses it.
    pub fn step(&mut self) -> Result<bool, ChainRefusal> {
        let Some((raw, time)) = self.sent.next() else { return Ok(false) };
        self.chain.run_signed(&raw, time)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_moves_one_unit() {
        let mut yardstick = BaselineChain::new().unwrap();
        for number in 0..3 {
            yardstick.transfer(number).unwrap();
        }
        assert_eq!(yardstick.0.account(PAYER).nonce, 3);
    }
}

//! Measures the cost of a transfer in the EVM alone.
//!
//! Transfers of the token run one after the other over a state in memory, without blocks, logs or
//! clients. A [`BaselineChain`] makes its own unsigned transfers. A [`Replay`] repeats the log of
//! a chain, with all its signatures. Settling a payment is compared with both. Neither must ever
//! be taken for a chain.

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

/// The paying account, and its balance of the token.
const PAYER: Address = Address::repeat_byte(0x11);
const FUNDS: u64 = u64::MAX;

/// A state in memory in which one account has tokens.
#[derive(Debug)]
pub struct BaselineChain(Chain);

impl BaselineChain {
    /// Deploys the token and funds an account.
    ///
    /// # Errors
    /// Fails if the token cannot be deployed.
    pub fn new() -> Result<Self, ChainRefusal> {
        let mut chain = Chain::new(crate::CHAIN_ID, 1)?;
        chain.endow(PAYER, FUNDS)?;
        Ok(Self(chain))
    }

    /// Transfers one unit to the account with this number.
    ///
    /// # Errors
    /// Fails if the EVM refuses it.
    pub fn transfer(&mut self, number: u64) -> Result<(), ChainRefusal> {
        let to = Address::left_padding_from(&number.saturating_add(1).to_be_bytes());
        let input: Bytes = transferCall { to, value: U256::ONE }.abi_encode().into();
        self.0.call_token(PAYER, input)
    }
}

/// The transactions of an ended chain, to be repeated.
#[derive(Debug)]
pub struct Replay {
    chain: Chain,
    /// The bytes of each transaction, and the time of its block.
    sent: std::vec::IntoIter<(Bytes, u64)>,
}

impl Replay {
    /// Reads the log in this folder, and funds the same accounts.
    ///
    /// # Errors
    /// Fails if the log cannot be used.
    pub fn open(folder: &Path) -> Result<Self, DevnetError> {
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

    /// Repeats the next transaction: recovers its sender, runs it, and commits the state. Returns
    /// false if there was none.
    ///
    /// # Errors
    /// Fails if the EVM refuses it.
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

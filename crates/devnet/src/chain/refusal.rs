//! Pure: reasons why the chain refuses a request.
//!
//! If clients recognise a refusal by its words, the words are geth's, since libraries search for
//! those.

use std::io::ErrorKind;

use alloy_primitives::{Address, B256, Bytes};
use alloy_sol_types::{Revert, SolError};
use revm::context::result::InvalidTransaction;

/// The chain refused a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainRefusal {
    /// The bytes are not a transaction, or not signed.
    #[error("failed to decode signed transaction: {0}")]
    Undecodable(String),
    /// A kind of transaction that this chain does not support.
    #[error("transactions of type {0} are not supported; send type 0, 1, 2 or 4")]
    Unsupported(u8),
    /// An address at which programs expect a contract that this chain does not have.
    #[error(
        "this chain has no code at {0}, where {1} is published on the chain that it stands for: a \
         transaction there would succeed and do nothing"
    )]
    NotDeployed(Address, &'static str),
    /// The overrides of a simulation contradict themselves or the chain.
    #[error("{0}")]
    Overlay(String),
    /// The blocks of a simulation must increase. Names the value that does not, and its minimum.
    #[error("the {0} of a block must be at least {1}")]
    NotIncreasing(&'static str, u64),
    /// The transaction breaks a rule of the protocol and was not mined.
    #[error("{}", in_words(.0))]
    Invalid(InvalidTransaction),
    /// The block in progress has no room for it.
    #[error("txpool is full: the block has no room for so much gas; send it again")]
    Full,
    /// A call reverted with this data.
    #[error("execution reverted{}", reason(.0))]
    Reverted(Bytes),
    /// A call ran out of gas or broke a rule of the EVM.
    #[error("the EVM stopped: {0}")]
    Halted(String),
    /// There is no block with this number yet. The second number is that of the last block.
    #[error("block {0} is not there; the last one is {1}")]
    BeyondHead(u64, u64),
    /// No block has this hash.
    #[error("unknown block {0}")]
    UnknownBlock(B256),
    /// The state of this block is gone. Only that of the last block, the second number, is kept.
    #[error("the state of block {0} is gone; only that of the last block, {1}, is kept")]
    StateGone(u64, u64),
    /// A limit of the server, and the limited thing.
    #[error("{0}: at most {1} are allowed")]
    TooMany(&'static str, u64),
    /// There is no such snapshot, or no longer.
    #[error("there is no snapshot {0}")]
    NoSnapshot(u64),
    /// The faucet was asked for nothing, or for the zero address.
    #[error("the faucet cannot fund {0}: name an amount, and an account other than zero")]
    NothingToFund(Address),
    /// The faucet has less than the requested amount.
    #[error("the faucet has not so much wei left")]
    FaucetEmpty,
    /// An operation could not be stored, so no further ones are accepted.
    #[error(
        "the chain stands still, since its log cannot be written ({0}); make room, or start it again"
    )]
    Broken(ErrorKind),
    /// The EVM failed in a way that no transaction can cause.
    #[error("the EVM failed: {0}")]
    Evm(String),
}

impl ChainRefusal {
    /// Returns true if the transaction may become valid after earlier ones of its account.
    pub(crate) const fn is_early(&self) -> bool {
        matches!(self, Self::Invalid(InvalidTransaction::NonceTooHigh { .. }))
    }
}

/// Returns the words by which clients recognise an invalid transaction, and revm's own.
fn in_words(invalid: &InvalidTransaction) -> String {
    let known = match invalid {
        InvalidTransaction::NonceTooLow { .. } => "nonce too low",
        InvalidTransaction::NonceTooHigh { .. } => "nonce too high",
        InvalidTransaction::LackOfFundForMaxFee { .. } => {
            "insufficient funds for gas * price + value"
        }
        InvalidTransaction::GasPriceLessThanBasefee => "max fee per gas less than block base fee",
        InvalidTransaction::CallerGasLimitMoreThanBlock => "exceeds block gas limit",
        InvalidTransaction::CallGasCostMoreThanGasLimit { .. }
        | InvalidTransaction::GasFloorMoreThanGasLimit { .. } => "intrinsic gas too low",
        _ => "invalid transaction",
    };
    format!("{known}: {invalid}")
}

/// Returns the message of `require` or `revert`, if there is one.
fn reason(data: &Bytes) -> String {
    Revert::abi_decode(data).map_or_else(|_| String::new(), |revert| format!(": {}", revert.reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revert_tells_its_reason() {
        let data = Revert::from("not so").abi_encode();
        assert_eq!(ChainRefusal::Reverted(data.into()).to_string(), "execution reverted: not so");
        assert_eq!(ChainRefusal::Reverted(Bytes::new()).to_string(), "execution reverted");
    }
}

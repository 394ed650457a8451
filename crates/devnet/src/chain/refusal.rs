//! Pure: why the chain does not do what it is asked.
//!
//! Where clients recognise a refusal by its words, the words are geth's, since
//! those are what the libraries look for.

use std::io::ErrorKind;

use alloy_primitives::{Address, B256, Bytes};
use alloy_sol_types::{Revert, SolError};
use revm::context::result::InvalidTransaction;

/// The chain did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainRefusal {
    /// The bytes are no transaction, or nobody signed them.
    #[error("failed to decode signed transaction: {0}")]
    Undecodable(String),
    /// A kind of transaction that this chain does not take.
    #[error("transactions of type {0} are not supported; send type 0, 1, 2 or 4")]
    Unsupported(u8),
    /// An address at which programs expect a contract that this chain does not have.
    #[error(
        "this chain has no code at {0}, where {1} is published on the chain that it stands for: a \
         transaction there would succeed and do nothing"
    )]
    NotDeployed(Address, &'static str),
    /// What a simulation lays over the chain contradicts itself, or the chain.
    #[error("{0}")]
    Overlay(String),
    /// Blocks of a simulation have to follow each other: what does not, and its least value.
    #[error("the {0} of a block must be at least {1}")]
    NotIncreasing(&'static str, u64),
    /// The transaction breaks a rule of the protocol and was not mined.
    #[error("{}", in_words(.0))]
    Invalid(InvalidTransaction),
    /// The block that is being made has no room for it.
    #[error("txpool is full: the block has no room for so much gas; send it again")]
    Full,
    /// A call ended with a revert; this is what it returned.
    #[error("execution reverted{}", reason(.0))]
    Reverted(Bytes),
    /// A call used up its gas or broke a rule of the EVM.
    #[error("the EVM stopped: {0}")]
    Halted(String),
    /// There is no block with this number yet; the second is that of the last one.
    #[error("block {0} is not there; the last one is {1}")]
    BeyondHead(u64, u64),
    /// No block has this hash.
    #[error("unknown block {0}")]
    UnknownBlock(B256),
    /// Of this block the state is not kept, only of the second, the last one.
    #[error("the state of block {0} is gone; only that of the last block, {1}, is kept")]
    StateGone(u64, u64),
    /// A limit of the server, and what there would be too many of.
    #[error("{0}: at most {1} are allowed")]
    TooMany(&'static str, u64),
    /// There is no such snapshot, or no more.
    #[error("there is no snapshot {0}")]
    NoSnapshot(u64),
    /// The faucet gives nothing to nobody.
    #[error("the faucet cannot fund {0}: name an amount, and an account other than zero")]
    NothingToFund(Address),
    /// The faucet has less than it is asked for.
    #[error("the faucet has not so much wei left")]
    FaucetEmpty,
    /// What was done could not be stored, so nothing more is done.
    #[error(
        "the chain stands still, since its log cannot be written ({0}); make room, or start it again"
    )]
    Broken(ErrorKind),
    /// The EVM failed in a way that no transaction can cause.
    #[error("the EVM failed: {0}")]
    Evm(String),
}

impl ChainRefusal {
    /// Whether the transaction's turn may still come, when those before it do.
    pub(crate) const fn is_early(&self) -> bool {
        matches!(self, Self::Invalid(InvalidTransaction::NonceTooHigh { .. }))
    }
}

/// The words by which clients know an invalid transaction, and revm's own.
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

/// What `require` or `revert` said, where it said something.
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

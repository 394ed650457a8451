//! The automaton's money: what it holds, and how it pays with x402.
//!
//! Every demand for money is checked here against what was wanted, before
//! anybody is asked to sign. This crate must never hold a key, and must never
//! take an asset, a payee's pin, a price or a deadline from the one who asks to
//! be paid.

pub mod evm;
pub mod rpc;
mod signer_client;
#[cfg(test)]
mod test_node;
pub mod token;
pub mod transactions;
pub mod x402;

pub use automaton_signer::payload::{AuditHead, SignedTransaction, TransactionCall, nonce};
pub use automaton_signer::signer_of;

pub use evm::ChainClient;
pub use rpc::{ChainError, NodeClient, RpcClient};
pub use signer_client::{SignedAuthorization, SignerClient, SignerClientError};

/// A signer without its process, for the tests of those who have a purse.
#[cfg(feature = "rehearsal")]
pub mod rehearsal {
    pub use automaton_signer::payload::{Contract, GasRules};
    pub use automaton_signer::rehearsal::{Rehearsal, rehearse};
    pub use automaton_signer::{SignerDeps, SigningPermits};
}

//! The interface between payments and the chain.
//!
//! Nothing here decides anything about money. A read may be wrong a moment later, and a
//! transaction may leave its block again. Nothing may be booked before its block stays.

use std::future::Future;
use std::pin::Pin;

use alloy_primitives::{Address, B256, Bytes, U256};
use automaton_core::error::Classified;
use automaton_core::id::TransactionId;
use automaton_core::time::Timestamp;
use automaton_core::wire::x402::Authorization;

use crate::db::{Fees, Submission};

pub use automaton_wallet::transactions::{TransactionInclusion, TxOutcome};

/// A read or write of the chain under way.
pub type ChainFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, SettlementError>> + Send + 'a>>;

/// The operations on the chain that payments need, and the account that pays the gas.
pub trait Settlement: Send + Sync {
    /// Returns the account that sends the transactions.
    fn payer(&self) -> Address;
    /// Reads the time of the newest block that stays, which no later block is before.
    fn time(&self) -> ChainFuture<'_, Timestamp>;
    /// Returns whether the authorization's nonce was used or cancelled.
    fn authorization_used<'a>(&'a self, authorization: &'a Authorization) -> ChainFuture<'a, bool>;
    /// Reads the token balance of a holder.
    fn balance(&self, holder: Address) -> ChainFuture<'_, U256>;
    /// Simulates the transfer and returns the gas limit of its transaction.
    fn simulate<'a>(
        &'a self,
        authorization: &'a Authorization,
        signature: &'a Bytes,
    ) -> ChainFuture<'a, u64>;
    /// Reads the fees that a transaction needs to be in one of the next blocks.
    fn fees(&self) -> ChainFuture<'_, Fees>;
    /// Signs the transfer's transaction under the nonce of its intent, without sending it. The
    /// same order again gives the same bytes.
    fn sign<'a>(&'a self, order: &'a SettlementTransaction<'a>) -> ChainFuture<'a, Submission>;
    /// Sends a signed transaction. A node's refusal says nothing about the transaction's fate.
    fn broadcast<'a>(&'a self, raw: &'a Bytes) -> ChainFuture<'a, ()>;
    /// Reads the fate of a transaction, `None` while it is in no block.
    fn outcome(&self, transaction: B256) -> ChainFuture<'_, Option<TransactionInclusion>>;
    /// Reads the number of the account's transactions in blocks that stay.
    fn gas_nonce(&self) -> ChainFuture<'_, u64>;
    /// Finds the transaction in which this transfer happened, whoever sent it.
    fn transfer_of<'a>(
        &'a self,
        authorization: &'a Authorization,
    ) -> ChainFuture<'a, Option<TransferEvent>>;
}

/// A transaction to be signed.
#[derive(Debug, Clone, Copy)]
pub struct SettlementTransaction<'a> {
    /// The intent, which fixes the nonce of the account.
    pub intent: TransactionId,
    /// The nonce of the intent, if it is known.
    pub nonce: Option<u64>,
    /// The transfer.
    pub authorization: &'a Authorization,
    /// The payer's signature.
    pub signature: &'a Bytes,
    /// The gas limit.
    pub gas: u64,
    /// The fees, never lower than before for the same intent.
    pub fees: Fees,
}

/// A transfer that has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransferEvent {
    /// The transaction.
    pub transaction: B256,
    /// The place of its log in the block: two transfers of one transaction have two.
    pub log: u64,
    /// Its block stays.
    pub stays: bool,
}

/// The chain did not do what it was asked.
#[derive(Debug, thiserror::Error, Classified)]
pub enum SettlementError {
    /// The chain could not be asked; nothing is known.
    #[error("the chain cannot be asked")]
    #[class(Transient)]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The chain's answer makes no sense.
    #[error("the chain's answer to {method} is malformed")]
    #[class(Upstream)]
    Malformed {
        /// The method.
        method: &'static str,
    },
    /// The chain refused.
    #[error("the chain refused {method}: {reason}")]
    #[class(Upstream)]
    Rejected {
        /// The method.
        method: &'static str,
        /// Its own words.
        reason: String,
    },
}

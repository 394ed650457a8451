//! How a payment reaches the chain: what is asked of it, and what it says.
//!
//! Nothing here decides anything about money. What is read may be wrong a moment
//! later, and a transaction in a block may be in none again: whoever books
//! something must look whether it stays.

use std::future::Future;
use std::pin::Pin;

use alloy_primitives::{Address, B256, Bytes, U256};
use automaton_core::error::Classified;
use automaton_core::id::TransactionId;
use automaton_core::time::Timestamp;
use automaton_core::wire::x402::Authorization;

use crate::db::{Fees, Submission};

/// What a read or write of the chain gives, later.
pub type ChainFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, SettlementError>> + Send + 'a>>;

/// The chain, as far as payments need it, and the account that pays the gas.
pub trait Settlement: Send + Sync {
    /// The account that sends the transactions.
    fn payer(&self) -> Address;
    /// The time of the newest block that stays, which no later block is before.
    fn time(&self) -> ChainFuture<'_, Timestamp>;
    /// Whether the authorization's nonce was used or cancelled.
    fn authorization_used<'a>(&'a self, authorization: &'a Authorization) -> ChainFuture<'a, bool>;
    /// How much of the token somebody has.
    fn balance(&self, holder: Address) -> ChainFuture<'_, U256>;
    /// Simulates the transfer; how much gas its transaction may use.
    fn simulate<'a>(
        &'a self,
        authorization: &'a Authorization,
        signature: &'a Bytes,
    ) -> ChainFuture<'a, u64>;
    /// What a transaction has to pay to be in one of the next blocks.
    fn fees(&self) -> ChainFuture<'_, Fees>;
    /// Signs the transfer's transaction under the number of its intent, without
    /// sending it. The same order again gives the same bytes.
    fn sign<'a>(&'a self, order: &'a SettlementTransaction<'a>) -> ChainFuture<'a, Submission>;
    /// Sends a signed transaction. A node that rejects it has said nothing about
    /// what became of it.
    fn broadcast<'a>(&'a self, raw: &'a Bytes) -> ChainFuture<'a, ()>;
    /// What became of a transaction; `None` while it is in no block.
    fn outcome(&self, transaction: B256) -> ChainFuture<'_, Option<TransactionInclusion>>;
    /// How many transactions of the account are in blocks that stay.
    fn gas_nonce(&self) -> ChainFuture<'_, u64>;
    /// The transaction in which this transfer happened, whoever sent it.
    fn transfer_of<'a>(
        &'a self,
        authorization: &'a Authorization,
    ) -> ChainFuture<'a, Option<TransferEvent>>;
}

/// A transaction to be signed.
#[derive(Debug, Clone, Copy)]
pub struct SettlementTransaction<'a> {
    /// What fixes the account's number: one intent, one number.
    pub intent: TransactionId,
    /// The number that the intent has, where that is known.
    pub nonce: Option<u64>,
    /// The transfer.
    pub authorization: &'a Authorization,
    /// The payer's signature.
    pub signature: &'a Bytes,
    /// How much gas it may use.
    pub gas: u64,
    /// What it pays for that; never less than for the same intent before.
    pub fees: Fees,
}

/// A transaction that is in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionInclusion {
    /// What it did.
    pub outcome: TxOutcome,
    /// Whether as many blocks came after it as are waited for, so that it stays.
    pub stays: bool,
}

/// A transfer that has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransferEvent {
    /// In which transaction.
    pub transaction: B256,
    /// The place of its log in the block: two transfers of one transaction have two.
    pub log: u64,
    /// Whether it stays.
    pub stays: bool,
}

/// What became of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TxOutcome {
    /// It did what it should.
    Succeeded,
    /// It is in a block and did nothing.
    Reverted,
}

/// The chain did not do what it was asked.
#[derive(Debug, thiserror::Error, Classified)]
pub enum SettlementError {
    /// The chain could not be asked; nothing is known.
    #[error("the chain cannot be asked")]
    #[class(Transient)]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The chain answered something that we do not understand.
    #[error("the chain's answer to {method} is malformed")]
    #[class(Upstream)]
    Malformed {
        /// What was asked.
        method: &'static str,
    },
    /// The chain refused.
    #[error("the chain refused {method}: {reason}")]
    #[class(Upstream)]
    Rejected {
        /// What was asked.
        method: &'static str,
        /// In its own words.
        reason: String,
    },
}

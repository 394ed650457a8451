//! Transactions of one account, each sent until a block that stays has its nonce.
//!
//! A transaction is an intent with one nonce. The intent is stored before anything is signed, and
//! the signer gives every intent a nonce of its own. Its attempts differ in fees alone:
//!
//! ```text
//! reserved ──sign──▶ signed, stored ──send──▶ waiting ──in a block──▶ mined ──stays──▶ closed
//!    ▲                                         │   ▲                    │
//!    └──────── stuck: stored with higher fees ─┘   └─ block goes away ──┘
//! ```
//!
//! A transaction that no block takes holds up all later ones of the account. So a nonce is never
//! given up: a dropped transaction is sent again, and a stuck one is replaced under its own nonce.
//! The outcome is read from receipts and never from a node's words, which may be wrong.
//!
//! The rows are the caller's: it implements [`TransactionDriver`], and [`reserve_and_send`] and
//! [`advance`] call it in the only safe order. After a crash at any point, [`advance`] with the
//! stored row goes on. This module must never sign for an intent that is not stored, and never
//! send bytes that are not stored.

mod account;
mod fees;

use std::future::Future;

use alloy_primitives::{B256, Bytes};
use automaton_core::id::TransactionId;
use automaton_core::time::Timestamp;

pub use account::{TransactionAccount, TransactionError};
pub use fees::{FeePolicy, Fees, GasBounds, GasEstimateError};

/// A transaction whose nonce is in no block that stays, as its row says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenTransaction {
    /// The intent, which fixes the nonce.
    pub intent: TransactionId,
    /// The gas limit of all attempts.
    pub gas: u64,
    /// The nonce, once an attempt is signed.
    pub nonce: Option<u64>,
    /// The fees of the newest attempt.
    pub fees: Fees,
    /// The time at which the newest attempt was stored.
    pub since: Timestamp,
    /// The signed bytes of the newest attempt, or nothing while it is not signed.
    pub raw: Option<Bytes>,
    /// The hashes of all signed attempts, oldest first.
    pub hashes: Vec<B256>,
}

/// A signed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// Its hash.
    pub hash: B256,
    /// Its bytes.
    pub raw: Bytes,
    /// The nonce of the account that pays the gas.
    pub gas_nonce: u64,
}

/// A transaction that is in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionInclusion {
    /// Its effect.
    pub outcome: TxOutcome,
    /// The block is final: enough blocks came after it.
    pub stays: bool,
}

/// The effect of a transaction in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TxOutcome {
    /// It did its work.
    Succeeded,
    /// It changed nothing.
    Reverted,
}

/// The end of a nonce, once a block that stays has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionEnd {
    /// One of the attempts has it.
    Spent,
    /// A transaction that is not among the attempts has it.
    Lost,
}

/// The next step of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionStep<'a> {
    /// Close the row.
    Close(TransactionEnd),
    /// Wait for more blocks: an attempt is in one, which may go away again.
    Wait,
    /// Sign the newest attempt.
    Sign,
    /// Send these bytes again, in case they were dropped.
    Resend(&'a Bytes),
    /// Replace the newest attempt if the fees may rise, or else send these bytes again.
    Replace(&'a Bytes),
}

impl OpenTransaction {
    /// Creates a transaction that was just stored and never signed.
    #[must_use]
    pub const fn new(intent: TransactionId, gas: u64, fees: Fees, since: Timestamp) -> Self {
        Self { intent, gas, nonce: None, fees, since, raw: None, hashes: Vec::new() }
    }

    /// Returns the next step. `is_mined` says that a block has an attempt, and `final_count` is
    /// the number of the account's transactions in blocks that stay.
    #[must_use]
    pub fn next_step(
        &self,
        is_mined: bool,
        final_count: u64,
        now: Timestamp,
        policy: FeePolicy,
    ) -> TransactionStep<'_> {
        if self.nonce.is_some_and(|nonce| nonce < final_count) {
            let end = if is_mined { TransactionEnd::Spent } else { TransactionEnd::Lost };
            return TransactionStep::Close(end);
        }
        if is_mined {
            return TransactionStep::Wait;
        }
        match &self.raw {
            None => TransactionStep::Sign,
            Some(raw) if now.since(self.since) >= policy.replace_after => {
                TransactionStep::Replace(raw)
            }
            Some(raw) => TransactionStep::Resend(raw),
        }
    }
}

/// The rows of a transaction, and its account's way to the chain. Each method is one effect.
pub trait TransactionDriver: Sync {
    /// The error of an effect. After one, the stored row says how to go on.
    type Error: Send;

    /// Reads the fees that a transaction needs to be in one of the next blocks.
    fn current_fees(&self) -> impl Future<Output = Result<Fees, Self::Error>> + Send;
    /// Returns whether a block has the transaction with this hash.
    fn is_mined(&self, hash: B256) -> impl Future<Output = Result<bool, Self::Error>> + Send;
    /// Stores a new intent with its first fees.
    fn store_intent(
        &self,
        fees: Fees,
    ) -> impl Future<Output = Result<OpenTransaction, Self::Error>> + Send;
    /// Stores the fees of the next attempt.
    fn store_fees(
        &self,
        transaction: &OpenTransaction,
        fees: Fees,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;
    /// Signs the newest attempt. The same attempt again gives the same bytes, and all attempts of
    /// an intent have one nonce.
    fn sign(
        &self,
        transaction: &OpenTransaction,
    ) -> impl Future<Output = Result<Submission, Self::Error>> + Send;
    /// Stores the signed attempt.
    fn store_signed(
        &self,
        transaction: &OpenTransaction,
        signed: &Submission,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;
    /// Sends the bytes of an attempt; `is_first` if they were never sent before. A node that
    /// refuses them has said nothing about their fate, so a refusal is no error.
    fn broadcast(
        &self,
        raw: &Bytes,
        is_first: bool,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;
    /// Stores the end of the nonce. Repeating it changes nothing.
    fn store_end(
        &self,
        transaction: &OpenTransaction,
        end: TransactionEnd,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// Stores a new intent, signs its transaction and sends it.
///
/// # Errors
/// The driver's. If the intent is stored by then, [`advance`] goes on with it.
pub async fn reserve_and_send<D: TransactionDriver>(
    driver: &D,
    policy: FeePolicy,
) -> Result<(), D::Error> {
    let fees = policy.bounded(driver.current_fees().await?);
    let transaction = driver.store_intent(fees).await?;
    sign_and_send(driver, &transaction).await
}

/// Takes one step of a stored transaction. `final_count` is the number of the account's
/// transactions in blocks that stay.
///
/// # Errors
/// The driver's.
pub async fn advance<D: TransactionDriver>(
    driver: &D,
    policy: FeePolicy,
    transaction: &OpenTransaction,
    final_count: u64,
    now: Timestamp,
) -> Result<(), D::Error> {
    let mut is_mined = false;
    for hash in &transaction.hashes {
        is_mined = is_mined || driver.is_mined(*hash).await?;
    }
    match transaction.next_step(is_mined, final_count, now, policy) {
        TransactionStep::Close(end) => driver.store_end(transaction, end).await,
        TransactionStep::Wait => Ok(()),
        TransactionStep::Sign => sign_and_send(driver, transaction).await,
        TransactionStep::Resend(raw) => driver.broadcast(raw, false).await,
        TransactionStep::Replace(raw) => {
            let current = driver.current_fees().await?;
            let Some(fees) = policy.raised(transaction.fees, current) else {
                return driver.broadcast(raw, false).await;
            };
            driver.store_fees(transaction, fees).await?;
            let replacement = OpenTransaction { fees, raw: None, ..transaction.clone() };
            sign_and_send(driver, &replacement).await
        }
    }
}

/// Signs the newest attempt, stores it, and only then sends it.
async fn sign_and_send<D: TransactionDriver>(
    driver: &D,
    transaction: &OpenTransaction,
) -> Result<(), D::Error> {
    let signed = driver.sign(transaction).await?;
    driver.store_signed(transaction, &signed).await?;
    driver.broadcast(&signed.raw, true).await
}

#[cfg(test)]
mod tests;

//! The cloud's database, as use cases: each method of [`Db`] is one transaction, and
//! those that a crash or a client can repeat are idempotent.
//!
//! The suite in `conformance` is the specification of every use case. No query may be
//! built elsewhere, and no caller decides which statements make up one transaction.

#[cfg(test)]
pub(crate) mod conformance;
mod error;
pub mod machines;
mod payments;
mod sqlite;
mod unclaimed;

use alloy_primitives::{Address, B256};
use automaton_core::id::{HoldId, TransferId};
use automaton_core::model::ModelId;
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::time::{Span, Timestamp};
use automaton_sqlite::chain::Hash;

use crate::ledger::PostingReason;

pub use automaton_wallet::transactions::{Fees, Submission, TransactionEnd};
pub use error::DbError;
pub use payments::{
    BeginPaymentOutcome, CreditPurchase, IncomingPayment, IncomingPaymentState, NewIncomingPayment,
    NewNonceReservation, NonceReservation, Sale, SettledBy,
};
pub use sqlite::Db;
pub use unclaimed::UnclaimedCredits;

/// A verified sign-in.
#[derive(Debug, Clone)]
pub struct SignInAttempt {
    /// The nonce of the message, which was checked to be issued by this cloud.
    pub nonce: String,
    /// The time until which the nonce is good.
    pub nonce_ends: Timestamp,
    /// The hash of message and signature.
    pub proof: Hash,
    /// The wallet that signed.
    pub wallet: Address,
    /// The hash of the token that the proof gives.
    pub token: Hash,
    /// The lifetime of the token.
    pub lives: Span,
    /// The time within which the same proof gives the same token again.
    pub replay: Span,
}

/// The outcome of a sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignInOutcome {
    /// The token is good, now or again.
    Granted,
    /// The nonce is too old or used up by another proof.
    BadNonce,
}

/// A key to be stored.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// The hash of the access token.
    pub token: Hash,
    /// The hash of the key.
    pub hash: Hash,
    /// The beginning of the key.
    pub prefix: String,
    /// Its purpose.
    pub name: String,
}

/// The outcome of making a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOutcome {
    /// The key is stored, and may be shown.
    Made,
    /// It was stored before, and may be shown once more.
    Again,
    /// The token has made its key.
    Spent,
    /// There is no such token, or no more.
    BadToken,
}

/// The outcome of a registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegisterOutcome {
    /// It is stored, now or before, with this id. An automaton that lost its id and drew a new one
    /// gets the old one back.
    Registered(String),
    /// The wallet is registered with something else.
    Conflict,
}

/// The credits of a wallet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Balance {
    /// The credits that it can spend.
    pub available: Microcents,
    /// The credits set aside.
    pub held: Microcents,
}

/// A hold to be opened.
#[derive(Debug, Clone)]
pub struct NewHold {
    /// Its id.
    pub id: HoldId,
    /// The wallet that pays.
    pub wallet: Address,
    /// For which model.
    pub model: ModelId,
    /// The client's name of the call.
    pub name: Option<String>,
    /// The credits to set aside.
    pub amount: Microcents,
    /// The credits that the wallet needs besides.
    pub minimum: Microcents,
}

/// The outcome of opening a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldOutcome {
    /// The credits are set aside.
    Held,
    /// There are too few.
    Insufficient {
        /// The credits that can be spent.
        available: Microcents,
    },
}

/// A transfer to be made.
#[derive(Debug, Clone)]
pub struct NewTransfer {
    /// Its id.
    pub id: TransferId,
    /// The hash of the API key that asks for it.
    pub key: Hash,
    /// That key's wallet.
    pub from: Address,
    /// The recipient.
    pub to: Address,
    /// The amount in cents, above zero.
    pub cents: i64,
    /// Its purpose.
    pub note: Option<String>,
    /// The client's name of the transfer.
    pub name: Option<String>,
    /// The default ceiling of a wallet's transfers in 24 hours, in cents.
    pub usual_ceiling: i64,
}

/// The outcome of a transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransferOutcome {
    /// The ledger has it, now or before.
    Done(TransferRecord),
    /// Its name was used for something else.
    OtherName,
    /// There are too few credits.
    Insufficient {
        /// The credits that can be spent.
        available: Microcents,
    },
    /// The wallet may not transfer so much.
    OverCeiling {
        /// The ceiling in 24 hours, in cents.
        ceiling: i64,
        /// The wallet's transfers in the last 24 hours, in cents.
        transferred: i64,
    },
}

/// A transfer that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferRecord {
    /// Its id.
    pub id: String,
    /// The recipient.
    pub to: Address,
    /// The amount.
    pub cents: i64,
    /// The sender's credits after the transfer, set aside or not.
    pub balance_after: Microcents,
}

/// The ceiling on transfers of an API key's wallet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ceiling {
    /// The beginning of the key that asks.
    pub prefix: String,
    /// In any 24 hours, in cents, by all of the wallet's keys together.
    pub cents: i64,
    /// The wallet's transfers in the last 24 hours, in cents.
    pub transferred: i64,
    /// The number of the last message that changed it.
    pub serial: i64,
    /// The creator of the wallet's automaton, as it was registered.
    pub creator: Option<String>,
}

/// Another ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransferCeilingChange {
    /// In any 24 hours, in cents.
    pub cents: i64,
    /// The number of the message by which the creator said so; without one it may
    /// only fall.
    pub serial: Option<i64>,
}

/// The outcome of a change of a ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CeilingOutcome {
    /// It holds from now on.
    Changed,
    /// A message with this number or a higher one came before.
    Stale,
    /// It would rise, and the creator has not said so.
    Unsigned,
}

/// A payment or posting to be given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, derive_more::Display)]
pub enum Refund {
    /// The purchase that a payment was for.
    #[display("payment:{_0}")]
    Payment(i64),
    /// A purchase or a charge, by its number in the ledger.
    #[display("posting:{_0}")]
    Posting(i64),
}

/// The outcome of a refund.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefundOutcome {
    /// The ledger has it now.
    Done(RefundReceipt),
    /// The ledger had it before.
    Again(RefundReceipt),
    /// There is no such purchase or charge.
    Unknown,
    /// The credits of the purchase are spent, or set aside.
    Spent {
        /// The refund that would be made.
        refunded: RefundReceipt,
        /// The credits that can be spent.
        available: Microcents,
    },
}

/// A refund that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefundReceipt {
    /// The wallet of the purchase or charge.
    pub wallet: Address,
    /// The amount.
    pub amount: Microcents,
    /// The payer of a purchase, who is owed the USDC.
    pub payer: Option<Address>,
}

/// A page of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRange {
    /// The most entries.
    pub limit: u32,
    /// The number of newer entries that are left out.
    pub offset: u64,
}

/// A change of what a wallet has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerEntry {
    /// Its number in the ledger.
    pub posting: i64,
    /// Its reason; never a hold or its release.
    pub reason: PostingReason,
    /// By how much.
    pub amount: Microcents,
    /// The wallet's credits after it, set aside or not.
    pub balance_after: Microcents,
    /// The other wallet of a transfer.
    pub counterparty: Option<Address>,
    /// The note of a transfer, or the model of a call.
    pub description: Option<String>,
    /// The recipient of a transfer has not signed in yet.
    pub unclaimed: bool,
    /// The time.
    pub at: Timestamp,
}

/// A request to a port that is paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SaleRecord {
    /// Its number among all of them.
    pub seq: i64,
    /// The port.
    pub sale: Sale,
    /// The price.
    pub amount: MicroUsdc,
    /// The payer.
    pub payer: Address,
    /// The transaction.
    pub transaction: B256,
    /// The time.
    pub at: Timestamp,
}

/// The ledger, added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerTotals {
    /// The sum of all entries; zero.
    pub sum: Microcents,
    /// The sum of what wallets have, set aside or not.
    pub owed: Microcents,
    /// The earnings of the house.
    pub revenue: Microcents,
    /// Postings whose entries do not sum to zero, balances that differ from
    /// their entries' sum or are negative, and settled payments without exactly
    /// one purchase; zero.
    pub faults: u64,
}

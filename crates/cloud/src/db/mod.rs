//! What the cloud stores, as use cases: each method is one transaction, and
//! those that a crash or a client can repeat are idempotent.
//!
//! [`Db`] is what an engine implements; the suite in `conformance` says what it
//! has to keep. No query may ever leave an engine, and nothing outside decides
//! what belongs into one transaction.

#[cfg(test)]
pub(crate) mod conformance;
mod error;
pub mod machines;
mod payments;
pub mod sqlite;
mod unclaimed;

use std::future::Future;
use std::pin::Pin;

use alloy_primitives::{Address, B256};
use automaton_core::id::{HoldId, TransactionId, TransferId};
use automaton_core::model::ModelId;
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::time::{Span, Timestamp};
use automaton_core::wire::cloud::{CallReply, RegistrationRequest, StatusReply, StatusReport};
use automaton_core::wire::x402::Authorization;
use automaton_sqlite::chain::Hash;

use crate::billing::price::Charge;
use crate::ledger::PostingReason;

pub use error::DbError;
pub use payments::{
    BeginPaymentOutcome, CreditPurchase, Fees, IncomingPayment, IncomingPaymentState,
    NewIncomingPayment, NewNonceReservation, NonceReservation, NonceReservationEnd, Sale,
    SettledBy, Submission,
};
pub use unclaimed::UnclaimedCredits;

/// What a use case gives, later.
pub type DbFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, DbError>> + Send + 'a>>;

/// The use cases.
pub trait Db: machines::MachineDb {
    /// The server's own secret; `fresh` becomes it when there is none yet.
    fn secret(&self, fresh: [u8; 32]) -> DbFuture<'_, [u8; 32]>;

    /// Uses a nonce of ours up and stores the token that it gives, or neither.
    fn sign_in(&self, attempt: SignInAttempt) -> DbFuture<'_, SignInOutcome>;
    /// Stores the one key of an access token.
    fn create_api_key(&self, key: NewKey) -> DbFuture<'_, KeyOutcome>;
    /// Whose key has this hash.
    fn key_owner(&self, hash: Hash) -> DbFuture<'_, Option<Address>>;
    /// Registers an automaton whose registration has been verified.
    fn register(&self, wallet: Address, row: RegistrationRequest) -> DbFuture<'_, RegisterOutcome>;

    /// Stores what an automaton says of itself, in the place of what it said before.
    fn report_status(&self, wallet: Address, report: StatusReport) -> DbFuture<'_, ()>;
    /// What an automaton said last, for its own wallet and its registered creator's.
    fn status(&self, of: Address, by: Address) -> DbFuture<'_, Option<StatusReply>>;

    /// What a wallet has; nothing for one that was never seen.
    fn balance(&self, wallet: Address) -> DbFuture<'_, Balance>;
    /// Sets credits aside before a call.
    fn open_hold(&self, hold: NewHold) -> DbFuture<'_, HoldOutcome>;
    /// Ends a hold with what the call cost, at most what was set aside; gives
    /// what was charged. Repeating it changes nothing.
    fn settle_hold(&self, id: HoldId, charge: Charge) -> DbFuture<'_, Microcents>;
    /// The newest call of a wallet that its client gave this name.
    fn call(&self, wallet: Address, name: String) -> DbFuture<'_, Option<CallReply>>;
    /// Ends a hold without a charge. Repeating it changes nothing.
    fn release_hold(&self, id: HoldId) -> DbFuture<'_, ()>;
    /// Ends every hold that is open without a charge, after a crash: whoever
    /// waited for those calls got no answer. Gives their number.
    fn release_open_holds(&self) -> DbFuture<'_, u64>;

    /// Gives credits to another wallet. Under the same name it is done once.
    fn transfer(&self, transfer: NewTransfer) -> DbFuture<'_, TransferOutcome>;
    /// What a key's wallet may transfer in 24 hours, `usual` cents where nothing else was set.
    fn ceiling(&self, key: Hash, usual: i64) -> DbFuture<'_, Ceiling>;
    /// Changes what a key's wallet may transfer in 24 hours, by all of its keys.
    fn change_ceiling(
        &self,
        key: Hash,
        to: TransferCeilingChange,
        usual: i64,
    ) -> DbFuture<'_, CeilingOutcome>;
    /// Gives a purchase or a charge back, once.
    fn refund(&self, what: Refund) -> DbFuture<'_, RefundOutcome>;
    /// What changed what a wallet has, newest first.
    fn history(&self, wallet: Address, page: PageRange) -> DbFuture<'_, Vec<LedgerEntry>>;
    /// Returns the credits of wallets that never signed in, oldest first, so many at most.
    fn unclaimed(&self, limit: u32) -> DbFuture<'_, Vec<UnclaimedCredits>>;
    /// What requests to the ports of a wallet's machines brought, newest first.
    fn sold(&self, wallet: Address, page: PageRange) -> DbFuture<'_, Vec<SaleRecord>>;

    /// The payment that came before with this authorization's payer and nonce.
    fn find_payment(
        &self,
        chain: u64,
        asset: Address,
        authorization: Authorization,
    ) -> DbFuture<'_, Option<IncomingPayment>>;
    /// Stores a verified payment, unless it is known or guarded against.
    fn begin_payment(&self, payment: NewIncomingPayment) -> DbFuture<'_, BeginPaymentOutcome>;
    /// The payment with this id.
    fn payment(&self, id: i64) -> DbFuture<'_, IncomingPayment>;
    /// The payments that are neither settled nor failed, oldest first: never more
    /// than may be under way at a time.
    fn unfinished_payments(&self) -> DbFuture<'_, Vec<IncomingPayment>>;
    /// The payment is on the chain: credits the recipient, once; gives whether
    /// this was the time.
    fn mark_settled(&self, id: i64, by: SettledBy) -> DbFuture<'_, bool>;
    /// The payment can never be on the chain any more.
    fn mark_failed(&self, id: i64, reason: String) -> DbFuture<'_, ()>;
    /// The client has got its reply, or its request is passed on; gives whether this was
    /// the time.
    fn mark_delivered(&self, id: i64) -> DbFuture<'_, bool>;

    /// Takes a number of the account that pays gas for a payment, which has no
    /// other one that is open, before anything is signed.
    fn reserve_nonce(&self, reservation: NewNonceReservation) -> DbFuture<'_, ()>;
    /// Notes that the slot's transaction is to be signed again, with these fees.
    fn raise_nonce_fees(&self, intent: TransactionId, fees: Fees) -> DbFuture<'_, ()>;
    /// Stores what was signed for a slot, before it is broadcast; all of its
    /// transactions have the number of the first.
    fn mark_signed(&self, intent: TransactionId, submission: Submission) -> DbFuture<'_, ()>;
    /// The slot's number is in a block for good. Repeating it changes nothing.
    fn close_nonce(&self, intent: TransactionId, end: NonceReservationEnd) -> DbFuture<'_, ()>;
    /// The slots whose number is in no block for good, lowest number first, at
    /// most a hundred.
    fn open_nonces(&self) -> DbFuture<'_, Vec<NonceReservation>>;

    /// Adds up the ledger from its entries.
    fn check_books(&self) -> DbFuture<'_, LedgerTotals>;
    /// Whether whoever had it before closed it in good order; else the books are to be
    /// checked.
    fn ended_well(&self) -> bool;
    /// Makes the end of the process a good one, if nothing is written after it.
    fn settle(&self) -> DbFuture<'_, ()>;
}

/// A verified sign-in.
#[derive(Debug, Clone)]
pub struct SignInAttempt {
    /// The nonce of the message, which was checked to be one of ours.
    pub nonce: String,
    /// How long it is good.
    pub nonce_ends: Timestamp,
    /// The hash of message and signature.
    pub proof: Hash,
    /// Who signed.
    pub wallet: Address,
    /// The hash of the token that the proof gives.
    pub token: Hash,
    /// How long the token is good.
    pub lives: Span,
    /// How long the same proof gives the same token again.
    pub replay: Span,
}

/// How a sign-in ended.
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
    /// What it is for.
    pub name: String,
}

/// How making a key ended.
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

/// How a registration ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegisterOutcome {
    /// It is stored, now or before, with this id: whoever lost what it knew has drawn a new one
    /// since, and gets the old one.
    Registered(String),
    /// The wallet is registered with something else.
    Conflict,
}

/// What a wallet has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Balance {
    /// What it can spend.
    pub available: Microcents,
    /// What is set aside.
    pub held: Microcents,
}

/// A hold to be opened.
#[derive(Debug, Clone)]
pub struct NewHold {
    /// Its id.
    pub id: HoldId,
    /// Whose credits.
    pub wallet: Address,
    /// For which model.
    pub model: ModelId,
    /// What its client calls the call.
    pub name: Option<String>,
    /// How much.
    pub amount: Microcents,
    /// What the wallet has to have, besides.
    pub minimum: Microcents,
}

/// How opening a hold ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldOutcome {
    /// The credits are set aside.
    Held,
    /// There are too few.
    Insufficient {
        /// What can be spent.
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
    /// Who gets the credits.
    pub to: Address,
    /// How much, above zero.
    pub cents: i64,
    /// What it is for.
    pub note: Option<String>,
    /// What the client calls it.
    pub name: Option<String>,
    /// What a wallet may transfer in 24 hours where nothing else was set, in cents.
    pub usual_ceiling: i64,
}

/// How a transfer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransferOutcome {
    /// The ledger has it, now or before.
    Done(TransferRecord),
    /// Its name was used for something else.
    OtherName,
    /// There are too few credits.
    Insufficient {
        /// What can be spent.
        available: Microcents,
    },
    /// The wallet may not transfer so much.
    OverCeiling {
        /// What it may transfer in 24 hours, in cents.
        ceiling: i64,
        /// What its wallet transferred in the last 24 hours.
        transferred: i64,
    },
}

/// A transfer that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferRecord {
    /// Its id.
    pub id: String,
    /// Who got the credits.
    pub to: Address,
    /// How much.
    pub cents: i64,
    /// What the sender had then, set aside or not.
    pub balance_after: Microcents,
}

/// What the wallet of an API key may transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ceiling {
    /// The beginning of the key that asks.
    pub prefix: String,
    /// In any 24 hours, in cents, by all of the wallet's keys together.
    pub cents: i64,
    /// What the wallet transferred in the last 24 hours.
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

/// How a change of a ceiling ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CeilingOutcome {
    /// It holds from now on.
    Changed,
    /// A message with this number or a higher one came before.
    Stale,
    /// It would rise, and the creator has not said so.
    Unsigned,
}

/// What is to be given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, derive_more::Display)]
pub enum Refund {
    /// The purchase that a payment was for.
    #[display("payment:{_0}")]
    Payment(i64),
    /// A purchase or a charge, by its number in the ledger.
    #[display("posting:{_0}")]
    Posting(i64),
}

/// How a refund ended.
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
        /// What would be given back.
        refunded: RefundReceipt,
        /// What can be spent.
        available: Microcents,
    },
}

/// What was given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefundReceipt {
    /// Whose purchase or charge it was.
    pub wallet: Address,
    /// How much.
    pub amount: Microcents,
    /// Who paid for a purchase, and is owed its USDC.
    pub payer: Option<Address>,
}

/// Which part of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRange {
    /// How many.
    pub limit: u32,
    /// How many newer ones are left out.
    pub offset: u64,
}

/// A change of what a wallet has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerEntry {
    /// Its number in the ledger.
    pub posting: i64,
    /// Why; never for a hold or its release.
    pub reason: PostingReason,
    /// By how much.
    pub amount: Microcents,
    /// What was there after it, set aside or not.
    pub balance_after: Microcents,
    /// The other wallet of a transfer.
    pub counterparty: Option<Address>,
    /// The note of a transfer, or the model of a call.
    pub description: Option<String>,
    /// Whether the wallet that a transfer went to has not signed in yet.
    pub unclaimed: bool,
    /// When.
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
    /// Who paid.
    pub payer: Address,
    /// The transaction.
    pub transaction: B256,
    /// When.
    pub at: Timestamp,
}

/// The ledger, added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerTotals {
    /// The sum of all entries; zero.
    pub sum: Microcents,
    /// The sum of what wallets have, set aside or not.
    pub owed: Microcents,
    /// What the house earned.
    pub revenue: Microcents,
    /// Postings whose entries do not sum to zero, balances that differ from
    /// their entries' sum or are negative, and settled payments without exactly
    /// one purchase; zero.
    pub faults: u64,
}

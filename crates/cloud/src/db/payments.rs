//! The rows of payments: the payment, its state, and the nonces for its gas.

use alloy_primitives::{Address, B256, Bytes};
use automaton_core::id::{MachineId, TransactionId};
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::time::{Span, Timestamp};
use automaton_core::wire::x402::Authorization;
use automaton_sqlite::chain::Hash;
use automaton_wallet::transactions::{Fees, OpenTransaction};

/// A payment to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewIncomingPayment {
    /// The chain.
    pub chain: u64,
    /// The token's contract.
    pub asset: Address,
    /// The authorization.
    pub authorization: Authorization,
    /// Its value, which was compared with the price.
    pub value: MicroUsdc,
    /// Its signature.
    pub signature: Bytes,
    /// The purchase, or nothing if the payment is settled for another seller.
    pub purchase: Option<CreditPurchase>,
    /// The port, if the payment is for a request and no purchase.
    pub sale: Option<Sale>,
    /// The time in which a purchase with an undelivered reply prevents a second one of the same
    /// kind.
    pub guard: Span,
    /// The names under which its client sent it, each for one request.
    pub names: Vec<String>,
    /// The hash of the request.
    pub request: Hash,
}

/// Credits that are bought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreditPurchase {
    /// The recipient.
    pub recipient: Address,
    /// The tier in US dollars.
    pub usd: u32,
}

/// The port of a machine that a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sale {
    /// The machine.
    pub machine: MachineId,
    /// The port inside it.
    pub port: u16,
}

/// The outcome of beginning a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BeginPaymentOutcome {
    /// It is stored, and is to be settled.
    New(i64),
    /// This authorization came before, under one of these names.
    Named(i64),
    /// This authorization came before; the names that it has now are not stored.
    Known(i64),
    /// The same purchase was made moments ago and its reply never delivered; this
    /// authorization is not stored and must not be broadcast.
    Guarded(i64),
    /// This authorization came before, for something else.
    Conflict,
    /// One of the names came before, with another request.
    OtherName,
    /// As many payments are under way as may be.
    Busy,
}

/// The transfer that settled a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettledBy {
    /// Its transaction.
    pub transaction: B256,
    /// The place of its log in the block, if another program sent the transaction. Our own
    /// transactions make one transfer each and have none.
    pub log: Option<u64>,
}

impl SettledBy {
    /// Names the one transfer of our own transaction.
    #[must_use]
    pub const fn transaction(transaction: B256) -> Self {
        Self { transaction, log: None }
    }
}

/// The state of a payment.
///
/// ```text
/// begun ──▶ submitted ──▶ settled
///   │           │           ▲
///   └──▶ failed ◀┘ ─────────┘ when somebody carried it out after all
/// ```
///
/// A transaction that is in a block is no end yet: the block may go away again,
/// and the payment is then where it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IncomingPaymentState {
    /// Stored; nothing was signed.
    Begun,
    /// These transactions are signed, oldest first, and may have been broadcast.
    Submitted(Vec<B256>),
    /// On the chain for good, and credited where it is a purchase.
    Settled(B256),
    /// Never to be on the chain.
    Failed(String),
}

/// A nonce of the account that pays gas, to be reserved for a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewNonceReservation {
    /// The intent, by which the signer fixes the nonce.
    pub intent: TransactionId,
    /// The payment.
    pub payment: i64,
    /// The gas limit of its transactions.
    pub gas: u64,
    /// The fees of the first of them.
    pub fees: Fees,
}

/// A nonce of the account that pays gas, reserved for a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NonceReservation {
    /// The payment.
    pub payment: i64,
    /// The transaction that has the nonce, or will have it.
    pub transaction: OpenTransaction,
}

/// A stored payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncomingPayment {
    /// Its number.
    pub id: i64,
    /// The authorization.
    pub authorization: Authorization,
    /// Its signature.
    pub signature: Bytes,
    /// The purchase, or nothing if the payment is settled for another seller.
    pub purchase: Option<CreditPurchase>,
    /// The recipient's credits when the purchase was stored or, later, credited; set aside or not.
    pub balance: Microcents,
    /// The port, if the payment is for a request and no purchase.
    pub sale: Option<Sale>,
    /// Its state.
    pub state: IncomingPaymentState,
    /// Its client has the reply, or its request was passed on.
    pub is_delivered: bool,
    /// A nonce of the gas account is reserved for it and in no block that stays.
    pub has_open_nonce: bool,
    /// The time at which it was stored.
    pub begun_at: Timestamp,
}

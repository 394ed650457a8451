//! Reasons for which credits were not bought, or for which that is unknown.

use alloy_primitives::Address;
use automaton_client::CloudClientError;
use automaton_core::error::{Classified, ErrorClass};
use automaton_core::id::PaymentId;
use automaton_core::money::{MicroUsdc, Microcents, MoneyError};
use automaton_core::time::Span;
use automaton_core::wire::cloud::TIERS_USD;
use automaton_net::NetError;
use automaton_store::StoreError;
use automaton_wallet::x402::{OfferParseError, OfferRefusal};
use automaton_wallet::{ChainError, SignerClientError};

/// Note about an open payment.
const NOTHING_TWICE: &str = "nothing is paid twice: the same payment is asked about, and sent \
                             again while it is valid, the next time that the same is wanted";
/// Note about a payment whose answer was not received.
const PAYS_AGAIN: &str = "asking for the same again pays again";

/// A purchase that was not made, or of which it is not known.
#[derive(Debug, thiserror::Error, Classified)]
pub enum TreasuryError {
    /// There is no such tier.
    #[error("credits are sold for {TIERS_USD:?} US dollars, not for {0}")]
    #[class(User)]
    NoTier(u32),
    /// The wallet holds too little.
    #[error("the wallet holds {have}, and the credits cost {price}")]
    #[class(User, hint = "send USDC to the wallet, or buy a smaller tier")]
    TooLittle {
        /// Its balance.
        have: MicroUsdc,
        /// Their price.
        price: MicroUsdc,
    },
    /// The last purchase was too short a while ago.
    #[error("a purchase was begun a moment ago; the next one has to wait for {wait}")]
    #[class(User, hint = "see what the last purchase brought before the next one")]
    TooSoon {
        /// Remaining wait.
        wait: Span,
    },
    /// The paid goods did not come.
    #[error("credits were paid for and are no more than before; no more are bought by themselves")]
    #[class(
        Upstream,
        hint = "see that the API key is of this wallet's account: `automaton provision` makes one"
    )]
    Useless,
    /// The demand cannot be read.
    #[error("the demand for payment cannot be read")]
    #[class(Upstream)]
    Unreadable(#[source] OfferParseError),
    /// The demand differs from the intent; nothing was signed.
    #[error("the demand for payment is refused, and nothing was signed: {0}")]
    #[class(kind = match _0 {
        OfferRefusal::TooMuch { .. } => ErrorClass::Denied,
        _ => ErrorClass::Upstream,
    }, hint = "see that it is the right server; nobody else is paid")]
    Refused(OfferRefusal),
    /// The recipient did not accept it.
    #[error("the payment {id} was not taken: {said}")]
    #[class(Upstream, hint = "{NOTHING_TWICE}")]
    NotTaken {
        /// The payment.
        id: PaymentId,
        /// Answer of the recipient.
        said: String,
    },
    /// A limit of the creator's forbids it; nothing was written down as a payment.
    #[error("it is refused ({code}): {reason}")]
    #[class(Denied, hint = "the creator's `treasuryPolicy` in automaton.json says how much")]
    Denied {
        /// The code of the rule.
        code: &'static str,
        /// Finding of the rule.
        reason: String,
    },
    /// The creator is asked first.
    #[error("the payment {id} waits for the creator's approval: {reason}")]
    #[class(Denied, hint = "`automaton approvals list` shows it; approve or deny it there")]
    Asked {
        /// The payment.
        id: PaymentId,
        /// Reason.
        reason: String,
    },
    /// The cloud did not do the transfer, and nothing has moved.
    #[error("the cloud did not do the transfer {id}: {said}")]
    #[class(Upstream, hint = "see that the address is a wallet with an account there")]
    NotDone {
        /// The payment.
        id: PaymentId,
        /// Message of the cloud.
        said: String,
    },
    /// There is no key to the account that a transfer is from.
    #[error("the transfer {id} is from an account with {origin}, to which there is no key here")]
    #[class(User, hint = "provision a key with that cloud, or wait until it is back")]
    NoAccount {
        /// The payment.
        id: PaymentId,
        /// The cloud.
        origin: String,
    },
    /// A request was paid for and not answered.
    #[error("what became of the payment {id} is not known: its request was not answered")]
    #[class(from, hint = "{NOTHING_TWICE}")]
    NoReply {
        /// The payment.
        id: PaymentId,
        /// Cause.
        #[source]
        source: NetError,
    },
    /// A request was paid for, and its answer is lost.
    #[error("the request was paid for by the payment {id}, and its answer is lost")]
    #[class(Upstream, hint = "{PAYS_AGAIN}")]
    AnswerLost {
        /// The payment.
        id: PaymentId,
        /// Cause.
        #[source]
        source: NetError,
    },
    /// The same was paid for before, and nobody heard an answer.
    #[error("an equal request was paid for by the payment {id} before, and was not answered")]
    #[class(Upstream, hint = "{PAYS_AGAIN}")]
    PaidBefore {
        /// The payment.
        id: PaymentId,
    },
    /// An equal request has a payment that is not over, of more than may be paid now.
    #[error(
        "nothing is sent: the payment {id} of {amount} for an equal request is still open, and \
         no more than {most} may be paid now"
    )]
    #[class(
        Denied,
        hint = "wait until it is over, which is some minutes after it was signed, or allow that \
                much: by --max or max_cents, and by treasuryPolicy.maxX402PaymentCents"
    )]
    OpenDearer {
        /// The payment.
        id: PaymentId,
        /// Its amount.
        amount: MicroUsdc,
        /// Highest allowed amount.
        most: Microcents,
    },
    /// Spending within an hour or a day is unknown.
    #[error(
        "the clock since boot cannot be read, so nothing can be counted within an hour or a day"
    )]
    #[class(Internal)]
    NoTime,
    /// Not all ledgers answered in time.
    #[error("the ledgers did not answer in time")]
    #[class(Transient, hint = "look at the books in a while")]
    Late,
    /// A request could not be made.
    #[error(transparent)]
    Net(#[from] NetError),
    /// A payment to another cloud, of another wallet or on another chain is open.
    #[error("the payment {id} to {origin}, from {payer} on chain {chain}, is not over")]
    #[class(User, hint = "buy there first, which goes on with it")]
    Elsewhere {
        /// The payment.
        id: PaymentId,
        /// Whom it is for.
        origin: String,
        /// Address of the payer.
        payer: Address,
        /// The chain's id.
        chain: u64,
    },
    /// The payment was sent, and what became of it is unknown.
    #[error("what became of the payment {id} is not known yet")]
    #[class(from, hint = "{NOTHING_TWICE}")]
    Unknown {
        /// The payment.
        id: PaymentId,
        /// Cause.
        #[source]
        source: CloudClientError,
    },
    /// The purchase broke down on the way; the next look goes on with it.
    #[error("the purchase was cut short, and is gone on with the next time")]
    #[class(Internal)]
    Cut,
    /// The purchase, or another one, takes longer than was waited for.
    #[error("a purchase is still under way")]
    #[class(Transient, hint = "look at the balances in a while")]
    UnderWay,
    /// The books hold more than can be counted.
    #[error(transparent)]
    #[class(Internal)]
    Money(#[from] MoneyError),
    /// The header of a payment cannot be written.
    #[error("the payment cannot be written as JSON")]
    #[class(Internal)]
    Encode(#[source] serde_json::Error),
    /// The cloud could not be asked.
    #[error(transparent)]
    Cloud(#[from] CloudClientError),
    /// The chain could not be read, so the balance is unknown.
    #[error("the chain cannot be read, and what is unknown buys nothing")]
    Chain(#[from] ChainError),
    /// The signer did not sign.
    #[error(transparent)]
    Signer(#[from] SignerClientError),
    /// The purchase could not be written down.
    #[error(transparent)]
    Store(#[from] StoreError),
}

//! Why credits were not bought, or why that is not known yet.

use alloy_primitives::Address;
use automaton_client::CloudClientError;
use automaton_core::error::{Classified, ErrorClass};
use automaton_core::id::PaymentId;
use automaton_core::money::{MicroUsdc, MoneyError};
use automaton_core::time::Span;
use automaton_core::wire::cloud::TIERS_USD;
use automaton_net::NetError;
use automaton_store::StoreError;
use automaton_wallet::x402::{OfferParseError, OfferRefusal};
use automaton_wallet::{ChainError, SignerClientError};

/// A purchase that was not made, or of which it is not known.
#[derive(Debug, thiserror::Error)]
pub enum TreasuryError {
    /// There is no such tier.
    #[error("credits are sold for {TIERS_USD:?} US dollars, not for {0}")]
    NoTier(u32),
    /// The wallet holds too little.
    #[error("the wallet holds {have}, and the credits cost {price}")]
    TooLittle {
        /// What it holds.
        have: MicroUsdc,
        /// What they cost.
        price: MicroUsdc,
    },
    /// The last purchase was too short a while ago.
    #[error("a purchase was begun a moment ago; the next one has to wait for {wait}")]
    TooSoon {
        /// How much longer.
        wait: Span,
    },
    /// What was paid for did not come.
    #[error("credits were paid for and are no more than before; no more are bought by themselves")]
    Useless,
    /// What is asked for cannot be read.
    #[error("the demand for payment cannot be read")]
    Unreadable(#[source] OfferParseError),
    /// What is asked for is not what was wanted; nothing was signed.
    #[error("the demand for payment is refused, and nothing was signed: {0}")]
    Refused(OfferRefusal),
    /// Whoever was paid did not take it.
    #[error("the payment {id} was not taken: {said}")]
    NotTaken {
        /// The payment.
        id: PaymentId,
        /// What is said of it.
        said: String,
    },
    /// A limit of the creator's forbids it; nothing was written down as a payment.
    #[error("it is refused ({code}): {reason}")]
    Denied {
        /// The code of the rule.
        code: &'static str,
        /// What the rule found.
        reason: String,
    },
    /// The creator is asked first.
    #[error("the payment {id} waits for the creator's approval: {reason}")]
    Asked {
        /// The payment.
        id: PaymentId,
        /// Why.
        reason: String,
    },
    /// The cloud did not do the transfer, and nothing has moved.
    #[error("the cloud did not do the transfer {id}: {said}")]
    NotDone {
        /// The payment.
        id: PaymentId,
        /// What the cloud says.
        said: String,
    },
    /// There is no key to the account that a transfer is from.
    #[error("the transfer {id} is from an account with {origin}, to which there is no key here")]
    NoAccount {
        /// The payment.
        id: PaymentId,
        /// The cloud.
        origin: String,
    },
    /// A request was paid for and not answered.
    #[error("what became of the payment {id} is not known: its request was not answered")]
    NoReply {
        /// The payment.
        id: PaymentId,
        /// Why.
        #[source]
        source: NetError,
    },
    /// A request was paid for, and its answer is lost.
    #[error("the request was paid for by the payment {id}, and its answer is lost")]
    AnswerLost {
        /// The payment.
        id: PaymentId,
    },
    /// What was spent within an hour or a day cannot be told.
    #[error(
        "the clock since boot cannot be read, so nothing can be counted within an hour or a day"
    )]
    NoTime,
    /// Not all ledgers answered in time.
    #[error("the ledgers did not answer in time")]
    Late,
    /// A request could not be made.
    #[error(transparent)]
    Net(#[from] NetError),
    /// A payment to another cloud, of another wallet or on another chain is open.
    #[error("the payment {id} to {origin}, from {payer} on chain {chain}, is not over")]
    Elsewhere {
        /// The payment.
        id: PaymentId,
        /// Whom it is for.
        origin: String,
        /// Who pays.
        payer: Address,
        /// The chain's id.
        chain: u64,
    },
    /// The payment was sent, and what became of it is unknown.
    #[error("what became of the payment {id} is not known yet")]
    Unknown {
        /// The payment.
        id: PaymentId,
        /// Why.
        #[source]
        source: CloudClientError,
    },
    /// The purchase broke down on the way; the next look goes on with it.
    #[error("the purchase was cut short, and is gone on with the next time")]
    Cut,
    /// The purchase, or another one, takes longer than was waited for.
    #[error("a purchase is still under way")]
    UnderWay,
    /// The books hold more than can be counted.
    #[error(transparent)]
    Money(#[from] MoneyError),
    /// The header of a payment cannot be written.
    #[error("the payment cannot be written as JSON")]
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

impl Classified for TreasuryError {
    fn kind(&self) -> ErrorClass {
        match self {
            Self::NoTier(_)
            | Self::TooLittle { .. }
            | Self::TooSoon { .. }
            | Self::NoAccount { .. }
            | Self::Elsewhere { .. } => ErrorClass::User,
            Self::Denied { .. } | Self::Asked { .. } => ErrorClass::Denied,
            Self::Refused(OfferRefusal::TooMuch { .. }) => ErrorClass::Denied,
            Self::Unreadable(_)
            | Self::Refused(_)
            | Self::NotTaken { .. }
            | Self::NotDone { .. }
            | Self::AnswerLost { .. }
            | Self::Useless => ErrorClass::Upstream,
            Self::NoReply { source, .. } | Self::Net(source) => source.kind(),
            Self::Unknown { source, .. } => source.kind(),
            Self::UnderWay | Self::Late => ErrorClass::Transient,
            Self::Encode(_) | Self::Cut | Self::Money(_) | Self::NoTime => ErrorClass::Internal,
            Self::Cloud(error) => error.kind(),
            Self::Chain(error) => error.kind(),
            Self::Signer(error) => error.kind(),
            Self::Store(error) => error.kind(),
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::TooLittle { .. } => "send USDC to the wallet, or buy a smaller tier",
            Self::TooSoon { .. } => "see what the last purchase brought before the next one",
            Self::Useless => {
                "see that the API key is of this wallet's account: `automaton provision` makes one"
            }
            Self::Unknown { .. } | Self::NotTaken { .. } | Self::NoReply { .. } => {
                "nothing is paid twice: the same payment is asked about, and sent again while it \
                 is valid, the next time that the same is wanted"
            }
            Self::AnswerLost { .. } => "asking for the same again pays again",
            Self::Late => "look at the books in a while",
            Self::Denied { .. } => "the creator's `treasuryPolicy` in automaton.json says how much",
            Self::Asked { .. } => "`automaton approvals list` shows it; approve or deny it there",
            Self::NotDone { .. } => "see that the address is a wallet with an account there",
            Self::NoAccount { .. } => "provision a key with that cloud, or wait until it is back",
            Self::Net(error) => return error.hint(),
            Self::Elsewhere { .. } => "buy there first, which goes on with it",
            Self::Refused(_) => "see that it is the right server; nobody else is paid",
            Self::Cloud(error) => return error.hint(),
            Self::Chain(error) => return error.hint(),
            Self::Signer(error) => return error.hint(),
            Self::Store(error) => return error.hint(),
            Self::UnderWay => "look at the balances in a while",
            Self::NoTier(_)
            | Self::Unreadable(_)
            | Self::Encode(_)
            | Self::Cut
            | Self::NoTime
            | Self::Money(_) => return None,
        };
        Some(hint.to_owned())
    }
}

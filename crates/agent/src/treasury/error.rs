//! Why credits were not bought, or why that is not known yet.

use alloy_primitives::Address;
use automaton_client::ClientError;
use automaton_core::error::{Classified, Kind};
use automaton_core::id::IntentId;
use automaton_core::money::{MicroUsdc, MoneyError};
use automaton_core::time::Span;
use automaton_core::wire::cloud::TIERS_USD;
use automaton_store::StoreError;
use automaton_wallet::x402::{Refusal, Unreadable};
use automaton_wallet::{ChainError, PurseError};

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
    #[error("the cloud's demand for payment cannot be read")]
    Unreadable(#[source] Unreadable),
    /// What is asked for is not what was wanted; nothing was signed.
    #[error("the cloud's demand is refused, and nothing was signed: {0}")]
    Refused(Refusal),
    /// The cloud did not take the payment.
    #[error("the cloud did not take the payment {id}: {said}")]
    NotTaken {
        /// The payment.
        id: IntentId,
        /// What the cloud says.
        said: String,
    },
    /// A payment to another cloud, of another wallet or on another chain is open.
    #[error("the payment {id} to {origin}, from {payer} on chain {chain}, is not over")]
    Elsewhere {
        /// The payment.
        id: IntentId,
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
        id: IntentId,
        /// Why.
        #[source]
        source: ClientError,
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
    Cloud(#[from] ClientError),
    /// The chain could not be read, so the balance is unknown.
    #[error("the chain cannot be read, and what is unknown buys nothing")]
    Chain(#[from] ChainError),
    /// The signer did not sign.
    #[error(transparent)]
    Purse(#[from] PurseError),
    /// The purchase could not be written down.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Classified for TreasuryError {
    fn kind(&self) -> Kind {
        match self {
            Self::NoTier(_)
            | Self::TooLittle { .. }
            | Self::TooSoon { .. }
            | Self::Elsewhere { .. } => Kind::User,
            Self::Unreadable(_) | Self::Refused(_) | Self::NotTaken { .. } | Self::Useless => {
                Kind::Upstream
            }
            Self::Unknown { source, .. } => source.kind(),
            Self::UnderWay => Kind::Transient,
            Self::Encode(_) | Self::Cut | Self::Money(_) => Kind::Internal,
            Self::Cloud(error) => error.kind(),
            Self::Chain(error) => error.kind(),
            Self::Purse(error) => error.kind(),
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
            Self::Unknown { .. } | Self::NotTaken { .. } => {
                "nothing is lost: the same payment is asked about, and sent again while it is \
                 valid, the next time that credits are bought"
            }
            Self::Elsewhere { .. } => "buy there first, which goes on with it",
            Self::Refused(_) => "see that the cloud's address is the right one",
            Self::Cloud(error) => return error.hint(),
            Self::Chain(error) => return error.hint(),
            Self::Purse(error) => return error.hint(),
            Self::Store(error) => return error.hint(),
            Self::UnderWay => "look at the balances in a while",
            Self::NoTier(_)
            | Self::Unreadable(_)
            | Self::Encode(_)
            | Self::Cut
            | Self::Money(_) => return None,
        };
        Some(hint.to_owned())
    }
}

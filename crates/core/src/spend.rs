//! Pure: a payment, from the intent to its end.
//!
//! ```text
//! proposed ──signature stored──▶ signed ──about to be sent──▶ submitted ──▶ settled
//!    │                             │                              │
//!    └──▶ failed                   └────────▶ expired ◀───────────┘
//! ```
//!
//! A payment is a row before it is anything else. Until its signature is stored
//! nobody else can have it; from then on only the chain says that it is over:
//! used, it is settled; unused beyond its deadline, it is expired. A lost reply
//! leaves it submitted, and must never lead to a second signature.

use alloy_primitives::{Address, B256};
use serde::{Deserialize, Serialize};

use crate::id::IntentId;
use crate::money::MicroUsdc;
use crate::time::Timestamp;

/// Where a payment stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpendState {
    /// Written down; nothing is signed that anybody else could have.
    Proposed,
    /// The signature is stored; it was not sent.
    Signed,
    /// It was sent, or is about to be; what became of it is not known.
    Submitted,
    /// The money has moved.
    Settled,
    /// It was given up before anything was signed.
    Failed,
    /// It was never used and is void now.
    Expired,
}

impl SpendState {
    /// Every state.
    pub const ALL: [Self; 6] =
        [Self::Proposed, Self::Signed, Self::Submitted, Self::Settled, Self::Failed, Self::Expired];

    /// The state's name in the database.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Proposed => "proposed",
            Self::Signed => "signed",
            Self::Submitted => "submitted",
            Self::Settled => "settled",
            Self::Failed => "failed",
            Self::Expired => "expired",
        }
    }

    /// Whether a payment may go from this state to the next.
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        matches!(
            (self, next),
            (Self::Proposed, Self::Signed | Self::Failed)
                | (Self::Signed, Self::Submitted | Self::Settled | Self::Expired)
                | (Self::Submitted, Self::Settled | Self::Expired)
        )
    }

    /// Whether nothing can become of it any more.
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Settled | Self::Failed | Self::Expired)
    }
}

/// A payment that is intended: credits, from a cloud.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSpend {
    /// Who asked to be paid: the cloud's origin.
    pub origin: String,
    /// The price of the tier, in US dollars.
    pub usd: u32,
    /// The chain's id, by EIP-155.
    pub chain: u64,
    /// The token.
    pub asset: Address,
    /// The payer.
    pub payer: Address,
    /// The payee.
    pub payee: Address,
    /// The amount.
    pub amount: MicroUsdc,
}

/// What a signature leaves behind: enough to send the same bytes again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedSpend {
    /// The header that pays.
    pub header: String,
    /// Its value.
    pub value: String,
    /// The authorization's nonce.
    pub nonce: B256,
    /// When the authorization ends to be valid.
    pub valid_before: Timestamp,
}

/// A payment on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spend {
    /// Its id, from which the nonce is made.
    pub id: IntentId,
    /// What was intended.
    pub spend: NewSpend,
    /// Where it stands.
    pub state: SpendState,
    /// What was signed.
    pub signed: Option<SignedSpend>,
    /// The transaction, where it is known.
    pub transaction: Option<String>,
    /// Why it failed.
    pub reason: Option<String>,
    /// When it was written down.
    pub at: Timestamp,
    /// When it last came a step further.
    pub changed_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_stays_over_and_a_signature_is_never_forgotten() {
        for from in SpendState::ALL {
            for to in SpendState::ALL {
                assert!(!(from.is_over() && from.may_become(to)), "{from:?} to {to:?}");
            }
            let signed = matches!(from, SpendState::Signed | SpendState::Submitted);
            assert!(!(signed && from.may_become(SpendState::Failed)), "only the chain ends it");
            assert!(!(signed && from.may_become(SpendState::Proposed)));
        }
    }
}

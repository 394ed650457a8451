//! Pure: a payment, from the intent to its end.
//!
//! ```text
//!              ┌────────▶ failed ◀───────────────┐ (credits only)
//!              │            ▲                    │
//! proposed ──▶ approved ──▶ signed ──▶ submitted ◀──▶ unknown
//!                             │            │            │
//!                             └────────────┴──▶ settled, expired
//! ```
//!
//! A payment is a row before it is anything else. Until its signature is stored
//! nobody else can have it; from then on only the chain says that it is over:
//! used, it is settled; unused beyond its deadline, it is expired. Credits are
//! moved by the cloud's ledger, which needs no signature of ours: there the cloud
//! says what became of it, under a key that makes it one transfer. A lost reply
//! leaves a payment unknown, and must never lead to a second one.

use std::fmt;

use alloy_primitives::{Address, B256};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{CallId, PaymentId, TurnId};
use crate::money::{MicroUsdc, Microcents, MoneyError};
use crate::names::Names;
use crate::time::Timestamp;
use crate::trust::Label;

/// State of a payment. Its [`name`](Self::name) is the one in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Names)]
#[serde(rename_all = "snake_case")]
pub enum PaymentState {
    /// Written down; the creator is asked.
    Proposed,
    /// It may be made; nothing is signed that anybody else could have.
    Approved,
    /// The signature is stored; it was not sent.
    Signed,
    /// It was sent, or is about to be; no answer is here.
    Submitted,
    /// Its answer was lost, or was none: what became of it is not known.
    Unknown,
    /// The money has moved.
    Settled,
    /// It came to nothing, and nobody can use it.
    Failed,
    /// It was never used and is void now.
    Expired,
}

/// Means of a payment. Its [`name`](Self::name) is the one in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Names)]
#[serde(rename_all = "snake_case")]
pub enum Rail {
    /// An authorization over USDC, which the chain carries out.
    Usdc,
    /// A transfer in the cloud's ledger.
    Credits,
}

impl PaymentState {
    /// Returns true if a payment on this rail may change to the next state.
    #[must_use]
    pub const fn may_become(self, next: Self, rail: Rail) -> bool {
        use PaymentState::{
            Approved, Expired, Failed, Proposed, Settled, Signed, Submitted, Unknown,
        };
        match (self, next) {
            (Proposed, Approved | Failed)
            | (Approved, Failed)
            | (Submitted, Unknown | Settled)
            | (Unknown, Submitted | Settled) => true,
            (Approved, Signed)
            | (Signed, Submitted | Settled | Expired)
            | (Submitted | Unknown, Expired) => matches!(rail, Rail::Usdc),
            (Approved, Submitted) | (Submitted | Unknown, Failed) => matches!(rail, Rail::Credits),
            _ => false,
        }
    }

    /// Returns true if the state is final.
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Settled | Self::Failed | Self::Expired)
    }

    /// Returns true if the amount counts towards the windows. Failed and expired payments do not.
    #[must_use]
    pub const fn counts(self) -> bool {
        !matches!(self, Self::Failed | Self::Expired)
    }
}

/// Purpose of a payment. Each has ceilings of its own. Its [`name`](Self::name) is the one in the
/// database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Names)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Credits, from a cloud: USDC for the same worth in credits.
    TopUp,
    /// A request that costs something, by x402.
    X402,
    /// Credits for somebody else.
    Transfer,
}

/// Amount with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Money {
    /// USDC of a wallet.
    Usdc {
        /// The chain's id, by EIP-155.
        chain: u64,
        /// The token.
        asset: Address,
        /// The payer.
        payer: Address,
        /// The amount.
        amount: MicroUsdc,
    },
    /// Credits of the automaton's account.
    Credits {
        /// The amount.
        amount: Microcents,
    },
}

impl Money {
    /// Returns the rail that carries it.
    #[must_use]
    pub const fn rail(&self) -> Rail {
        match self {
            Self::Usdc { .. } => Rail::Usdc,
            Self::Credits { .. } => Rail::Credits,
        }
    }

    /// Returns its worth, with USDC at face value.
    ///
    /// # Errors
    /// [`MoneyError::Overflow`].
    pub fn worth(&self) -> Result<Microcents, MoneyError> {
        match self {
            Self::Usdc { amount, .. } => amount.face_value(),
            Self::Credits { amount } => Ok(*amount),
        }
    }

    /// The amount of USDC; none of credits.
    #[must_use]
    pub const fn usdc(&self) -> MicroUsdc {
        match self {
            Self::Usdc { amount, .. } => *amount,
            Self::Credits { .. } => MicroUsdc::ZERO,
        }
    }
}

/// On whose account a payment is made, and what it is for in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentReason {
    /// The turn in which it was asked for; where it is missing, that of the call.
    pub turn: Option<TurnId>,
    /// The call that asked for it.
    pub call: Option<CallId>,
    /// The goal that it serves.
    pub goal: Option<String>,
    /// The least trusted label of what it follows from.
    pub label: Label,
    /// Reason, in words.
    pub note: String,
}

impl PaymentReason {
    /// A payment that the runtime makes by itself.
    #[must_use]
    pub fn auto_topup(note: &str) -> Self {
        Self { turn: None, call: None, goal: None, label: Label::Own, note: note.to_owned() }
    }
}

/// A payment that is intended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPayment {
    /// Purpose.
    pub purpose: Purpose,
    /// Key of the request: at most one of two equal requests is open.
    pub request: String,
    /// Origin that asked for the payment, or that keeps the ledger.
    pub origin: String,
    /// Address of the recipient.
    pub payee: Address,
    /// Amount.
    pub money: Money,
    /// Reason.
    pub why: PaymentReason,
}

/// Everything needed to send the signed bytes again.
#[derive(Clone, PartialEq, Eq)]
pub struct SignedPayment {
    /// The header that pays.
    pub header: String,
    /// Its value.
    pub value: String,
    /// The authorization's nonce.
    pub nonce: B256,
    /// Time at which the authorization expires.
    pub valid_before: Timestamp,
}

impl fmt::Debug for SignedPayment {
    /// Hides the value, because its owner can take the money.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { header, nonce, valid_before, .. } = self;
        let mut shown = f.debug_struct("SignedPayment");
        shown.field("header", header).field("value", &"***").field("nonce", nonce);
        shown.field("valid_before", valid_before).finish()
    }
}

/// A payment on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    /// Its id, from which the nonce is made.
    pub id: PaymentId,
    /// Terms of the payment.
    pub terms: NewPayment,
    /// Current state.
    pub state: PaymentState,
    /// The signed payment.
    pub signed: Option<SignedPayment>,
    /// The transaction or the transfer, where it is known.
    pub transaction: Option<String>,
    /// Reason of a failure or a delay.
    pub reason: Option<String>,
    /// Time of the first record.
    pub at: Timestamp,
    /// Time of the latest change.
    pub changed_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_stays_over_and_a_signature_is_never_forgotten() {
        use PaymentState::{Approved, Expired, Failed, Signed, Submitted, Unknown};
        for rail in Rail::ALL {
            for from in PaymentState::ALL {
                for to in PaymentState::ALL {
                    let may = from.may_become(to, rail);
                    assert!(!(from.is_over() && may), "{from:?} to {to:?}");
                    assert!(!(to == PaymentState::Proposed && may), "{from:?} to {to:?}");
                    assert!(!(from == to && may), "{from:?}");
                }
                assert_eq!(
                    PaymentState::ALL.into_iter().any(|to| from.may_become(to, rail)),
                    !from.is_over() && (rail, from) != (Rail::Credits, Signed),
                    "{rail:?} {from:?}"
                );
            }
        }
        for from in [Signed, Submitted, Unknown] {
            assert!(!from.may_become(Failed, Rail::Usdc), "only the chain ends what was signed");
            assert!(from.may_become(Expired, Rail::Usdc));
        }
        assert!(!Approved.may_become(Submitted, Rail::Usdc), "nothing is sent unsigned");
        assert!(!Unknown.may_become(Expired, Rail::Credits), "a transfer has no deadline");
    }

    #[test]
    fn usdc_is_worth_its_face_value() {
        let amount = MicroUsdc::new(1_500_000);
        let address = Address::ZERO;
        let usdc = Money::Usdc { chain: 1, asset: address, payer: address, amount };
        assert_eq!(usdc.worth(), Microcents::from_cents(150));
        let most = Money::Usdc {
            chain: 1,
            asset: address,
            payer: address,
            amount: MicroUsdc::new(u64::MAX),
        };
        assert_eq!(most.worth(), Err(MoneyError::Overflow));
    }
}

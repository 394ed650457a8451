//! Pure: the closed list of everything that may be signed.
//!
//! Each variant is made by a constructor that checks its fields, and computes its own digest.
//! There must never be one that takes a digest, a message or typed data from outside. Another
//! kind of signature needs a new variant here, with its own rules.

mod agent_wallet;
mod registration;
mod sign_in;
mod statement;
mod transaction;
mod transfer;

use alloy_primitives::B256;

pub(crate) use agent_wallet::Consent;
pub use agent_wallet::{AGENT_WALLET_MAX, AgentWalletSet};
pub(crate) use registration::HashedRegistration;
pub use registration::RegistrationFields;
pub(crate) use sign_in::SignInMessage;
pub use sign_in::{Audience, SIGN_IN_MAX, SignInFields};
pub(crate) use statement::Statement;
pub use statement::{
    AuditHead, CONTENT_BYTES_MAX, RelaySend, STATEMENT_AGE_MAX, STATEMENT_STRAY_MAX,
};
pub use transaction::{
    Contract, GasRules, Selector, SignedTransaction, TransactionCall, TransactionIntent,
};
pub(crate) use transaction::{PermittedTransaction, UnsignedTransaction};
pub(crate) use transfer::ValidatedTransfer;
#[cfg(test)]
pub(crate) use transfer::usdc;
pub use transfer::{BEGINS_BEFORE_S, DEADLINE_MAX_S, PaymentIntent, nonce};

/// A payload that the key signs.
#[derive(Debug)]
pub(crate) enum Payload<'a> {
    /// EIP-3009 `TransferWithAuthorization`.
    Transfer(ValidatedTransfer),
    /// EIP-4361 sign-in.
    SignIn(SignInMessage),
    /// EIP-712 `HashedRegistration`.
    Register(HashedRegistration),
    /// EIP-191 text: relay, audit.
    Statement(Statement),
    /// EIP-712 `AgentWalletSet`.
    AgentWallet(Consent),
    /// EIP-1559 or legacy transaction to a listed contract.
    Transaction(&'a UnsignedTransaction<'a>),
}

impl Payload<'_> {
    /// Returns the 32 bytes that ECDSA signs.
    pub(crate) fn digest(&self) -> B256 {
        match self {
            Self::Transfer(transfer) => transfer.digest(),
            Self::SignIn(message) => message.digest(),
            Self::Register(register) => register.digest(),
            Self::Statement(statement) => statement.digest(),
            Self::AgentWallet(consent) => consent.digest(),
            Self::Transaction(transaction) => transaction.digest(),
        }
    }
}

//! Why the signer refuses, and why it cannot serve.
//!
//! A [`SignerRefusal`] goes to whoever asked; it names the field, the value and the
//! rule. A [`SignerError`] ends the process. Neither may ever hold a key, a
//! passphrase or a signature.

use std::io;

use automaton_core::error::{Classified, ErrorClass};
use automaton_sandbox::process::LockError;
use automaton_sandbox::{HardenError, VaultError};
use automaton_sqlite::{SqliteError, SqliteErrorKind};
use serde::{Deserialize, Serialize};

use crate::home::HomeError;
use crate::keystore::KeystoreError;
use crate::passphrase::PassphraseError;

/// The rule that refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignerRefusalCode {
    /// The line is no request.
    Malformed,
    /// The token or its chain is not among the known ones.
    Asset,
    /// The payee cannot be paid.
    Payee,
    /// The amount is no amount.
    Amount,
    /// The deadline is too far, or none.
    Deadline,
    /// More than a single payment may be.
    PerPayment,
    /// More than an hour's payments may be.
    PerHour,
    /// More than a day's payments may be.
    PerDay,
    /// More than a day's payments to one payee may be.
    PerPayee,
    /// More than all payments of a life may be.
    Lifetime,
    /// More payments than there may be.
    Count,
    /// The contract or its function is not among the known ones.
    Contract,
    /// The gas of a transaction, or what it offers for that.
    Gas,
    /// The account's number is higher than it can be.
    Nonce,
    /// The intent was signed before, with other content.
    Conflict,
    /// A sign-in to somebody who is not on the list.
    Audience,
    /// A field of a sign-in or of a registration.
    Field,
    /// The passphrase is wrong.
    Passphrase,
    /// What is asked needs the creator's proof, or a better one.
    Authority,
    /// The signer was started with rules that its creator has not accepted.
    Rules,
    /// The ledger cannot count, so nothing is signed.
    Ledger,
    /// The ledger's disk is full, so nothing is signed.
    NoRoom,
    /// The signature could not be made.
    Signature,
}

/// The signer did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("the signer refused: {reason}")]
#[serde(deny_unknown_fields)]
pub struct SignerRefusal {
    /// The rule.
    pub code: SignerRefusalCode,
    /// The field, the value and the rule, as a sentence.
    pub reason: String,
}

impl SignerRefusal {
    pub(crate) fn new(code: SignerRefusalCode, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into() }
    }
}

impl From<rusqlite::Error> for SignerRefusal {
    /// Without a count, no signature.
    fn from(error: rusqlite::Error) -> Self {
        let fault = SqliteErrorKind::of(&error);
        if fault == SqliteErrorKind::Full {
            let reason = "the signer's ledger has no room, and nothing is signed without its row";
            return Self::new(SignerRefusalCode::NoRoom, reason);
        }
        let hint = fault.hint().unwrap_or("Nothing was signed.".to_owned());
        Self::new(
            SignerRefusalCode::Ledger,
            format!("the ledger cannot be written ({error}). {hint}"),
        )
    }
}

impl Classified for SignerRefusal {
    fn kind(&self) -> ErrorClass {
        match self.code {
            SignerRefusalCode::Ledger
            | SignerRefusalCode::Signature
            | SignerRefusalCode::Conflict => ErrorClass::Internal,
            SignerRefusalCode::NoRoom => ErrorClass::Transient,
            SignerRefusalCode::Passphrase | SignerRefusalCode::Authority => ErrorClass::User,
            SignerRefusalCode::Rules => ErrorClass::Config,
            _ => ErrorClass::Denied,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self.code {
            SignerRefusalCode::PerPayment
            | SignerRefusalCode::PerHour
            | SignerRefusalCode::PerDay
            | SignerRefusalCode::PerPayee
            | SignerRefusalCode::Lifetime
            | SignerRefusalCode::Count => "The creator can raise it with `automaton limits set`.",
            SignerRefusalCode::Authority => {
                "Give --passphrase-file FILE, or with --signature HEX the creator's signature of \
                 what `automaton limits message` prints."
            }
            SignerRefusalCode::NoRoom => {
                "Free some disk space and ask again; nothing that was stored is lost."
            }
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

/// The signing process cannot begin or go on.
#[derive(Debug, thiserror::Error, Classified)]
pub enum SignerError {
    /// Its own process stays open to others.
    #[error(transparent)]
    Harden(#[from] HardenError),
    /// The key's memory or the system calls cannot be protected.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// Its home cannot be used.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// Another signer serves from this home.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// There is no passphrase.
    #[error(transparent)]
    Passphrase(#[from] PassphraseError),
    /// There is no key.
    #[error(transparent)]
    Keystore(#[from] KeystoreError),
    /// There is no ledger.
    #[error(transparent)]
    Ledger(#[from] SqliteError),
    /// The ledger cannot tell or take the ceilings.
    #[error(transparent)]
    Refused(#[from] SignerRefusal),
    /// The system refused something else.
    #[error("cannot {doing}")]
    #[class(Internal)]
    System {
        /// What was tried.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
}

//! Reasons why the signer refuses a request or cannot serve.
//!
//! A [`SignerRefusal`] goes to the client that asked. It names the field, the value and the rule.
//! A [`SignerError`] ends the process. Neither may ever hold a key, a passphrase or a signature.

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
    /// The line is not a valid request.
    Malformed,
    /// The token or its chain is not on the list.
    Asset,
    /// The payee cannot be paid.
    Payee,
    /// The amount is zero.
    Amount,
    /// The deadline is too far away or missing.
    Deadline,
    /// The ceiling of a single payment is exceeded.
    PerPayment,
    /// The ceiling of an hour is exceeded.
    PerHour,
    /// The ceiling of a day is exceeded.
    PerDay,
    /// The ceiling of one payee and day is exceeded.
    PerPayee,
    /// The ceiling of all payments ever is exceeded.
    Lifetime,
    /// The number of payments ever is reached.
    Count,
    /// The contract or its function is not on the list.
    Contract,
    /// The gas limit or the gas price of a transaction is out of range.
    Gas,
    /// The nonce is higher than the account can have.
    Nonce,
    /// The intent was signed before with other content.
    Conflict,
    /// The audience of a sign-in is not on the list.
    Audience,
    /// A field of a sign-in or registration is invalid.
    Field,
    /// The passphrase is wrong.
    Passphrase,
    /// The action needs a proof by the creator, or the proof is wrong.
    Authority,
    /// The signer was started with rules that its creator has not accepted.
    Rules,
    /// The ledger cannot be read or written, so nothing is signed.
    Ledger,
    /// The ledger's disk is full, so nothing is signed.
    NoRoom,
    /// The signature could not be made.
    Signature,
}

/// The signer refused a request.
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
    /// Every failure of the ledger is a refusal: without a count, nothing is signed.
    fn from(error: rusqlite::Error) -> Self {
        let fault = SqliteErrorKind::from_error(&error);
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

/// The signing process cannot start or continue.
#[derive(Debug, thiserror::Error, Classified)]
pub enum SignerError {
    /// The process could not be closed to other processes.
    #[error(transparent)]
    Harden(#[from] HardenError),
    /// The key's memory cannot be locked, or system calls cannot be restricted.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The home cannot be used.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// Another signer serves from this home.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The passphrase cannot be read.
    #[error(transparent)]
    Passphrase(#[from] PassphraseError),
    /// The keystore cannot be opened.
    #[error(transparent)]
    Keystore(#[from] KeystoreError),
    /// The ledger cannot be opened.
    #[error(transparent)]
    Ledger(#[from] SqliteError),
    /// The ledger cannot read or change its rules.
    #[error(transparent)]
    Refused(#[from] SignerRefusal),
    /// A system call failed.
    #[error("cannot {doing}")]
    #[class(Internal)]
    System {
        /// The action that failed.
        doing: String,
        /// The system's error.
        source: io::Error,
    },
}

//! What can go wrong in the cloud's database.
//!
//! Refusals that a client caused are outcomes of the use cases and not here.

use automaton_core::error::{Classified, ErrorClass};
use automaton_core::money::MoneyError;
use automaton_sqlite::SqliteError;

/// A use case could not be carried out; nothing of it was stored.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// The database could not be opened, or SQLite refused.
    #[error(transparent)]
    Database(#[from] SqliteError),
    /// An amount cannot be counted.
    #[error("the ledger cannot hold the amount")]
    Money(#[from] MoneyError),
    /// A posting would make an account negative that must not be.
    #[error("the ledger has too few credits for {what}")]
    Overdrawn {
        /// What was to be posted.
        what: &'static str,
    },
    /// A row that was named does not exist, or stands elsewhere.
    #[error("there is no {noun} {id} to be changed so")]
    Missing {
        /// What kind of thing.
        noun: &'static str,
        /// Its id.
        id: String,
    },
}

impl Classified for DbError {
    fn kind(&self) -> ErrorClass {
        match self {
            Self::Database(error) => error.kind(),
            Self::Money(_) | Self::Overdrawn { .. } | Self::Missing { .. } => ErrorClass::Internal,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Database(error) => error.hint(),
            _ => None,
        }
    }
}

/// Why a job stopped; which one it was is added where it was ordered.
pub(crate) type DbTxError = automaton_sqlite::WriteError<DbError>;

//! What can go wrong in the cloud's database.
//!
//! Refusals that a client caused are outcomes of the use cases and not here.

use automaton_core::error::{Classified, ErrorClass};
use automaton_core::money::MoneyError;
use automaton_sqlite::{SqliteError, SqliteErrorKind};

/// A use case could not be carried out; nothing of it was stored.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// The database could not be opened.
    #[error(transparent)]
    Open(#[from] SqliteError),
    /// The thread that writes could not be started.
    #[error("cannot start the thread that writes the cloud's database")]
    Spawn(#[source] std::io::Error),
    /// The thread that writes has ended.
    #[error("cannot {operation}: the thread that writes the cloud's database has ended")]
    WriterGone {
        /// What was asked of it.
        operation: &'static str,
    },
    /// SQLite refused.
    #[error("cannot {operation}")]
    Sql {
        /// What was tried.
        operation: &'static str,
        /// SQLite's error.
        source: rusqlite::Error,
    },
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
            Self::Open(error) => error.kind(),
            Self::Sql { source, .. } => SqliteErrorKind::of(source).kind(),
            Self::Spawn(_)
            | Self::WriterGone { .. }
            | Self::Money(_)
            | Self::Overdrawn { .. }
            | Self::Missing { .. } => ErrorClass::Internal,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Open(error) => error.hint(),
            Self::Sql { source, .. } => SqliteErrorKind::of(source).hint().map(str::to_owned),
            Self::WriterGone { .. } => {
                Some("Start the cloud again; what was stored is safe.".to_owned())
            }
            _ => None,
        }
    }
}

/// Why a job stopped; which one it was is added where it was ordered.
#[derive(Debug, derive_more::From)]
pub(crate) enum DbTxError {
    Sql(rusqlite::Error),
    Refused(DbError),
}

impl From<MoneyError> for DbTxError {
    fn from(error: MoneyError) -> Self {
        Self::Refused(error.into())
    }
}

impl DbTxError {
    pub(crate) fn during(self, operation: &'static str) -> DbError {
        match self {
            Self::Refused(error) => error,
            Self::Sql(source) => DbError::Sql { operation, source },
        }
    }
}

//! Errors of the cloud's database.
//!
//! Refusals that a client caused are outcomes of the use cases and not here.

use automaton_core::error::Classified;
use automaton_core::money::MoneyError;
use automaton_sqlite::SqliteError;

/// A use case could not be carried out; nothing of it was stored.
#[derive(Debug, thiserror::Error, Classified)]
pub enum DbError {
    /// The database could not be opened, or SQLite refused.
    #[error(transparent)]
    Database(#[from] SqliteError),
    /// An amount cannot be counted.
    #[error("the ledger cannot hold the amount")]
    #[class(Internal)]
    Money(#[from] MoneyError),
    /// A posting would make an account negative that must not be.
    #[error("the ledger has too few credits for {what}")]
    #[class(Internal)]
    Overdrawn {
        /// The posting.
        what: &'static str,
    },
    /// A row that was named does not exist, or stands elsewhere.
    #[error("there is no {noun} {id} to be changed so")]
    #[class(Internal)]
    Missing {
        /// The kind of row.
        noun: &'static str,
        /// Its id.
        id: String,
    },
}

/// The error inside a transaction. The operation's name is added by the caller.
pub(crate) type DbTxError = automaton_sqlite::WriteError<DbError>;

//! What can go wrong in the store, each with its remedy.
//!
//! Errors of SQLite are sorted by what a user can do about them; refusals of the
//! store's own rules name the row they are about. `Display` never repeats its
//! source.

use automaton_core::error::{Classified, ErrorClass};
use automaton_core::money::MoneyError;
use automaton_core::state::AgentState;
use automaton_sqlite::{SqliteError, SqliteErrorKind};

/// An operation of the store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database could not be opened.
    #[error(transparent)]
    Open(#[from] SqliteError),
    /// The thread that writes could not be started.
    #[error("cannot start the store's writer thread")]
    Spawn(#[source] std::io::Error),
    /// The thread that writes has ended: it was closed, or it panicked.
    #[error("cannot {operation}: the store's writer thread has ended")]
    WriterGone {
        /// What was asked of it.
        operation: &'static str,
    },
    /// SQLite failed. A reason that is not spelt out is a defect of ours or a
    /// database that somebody edited.
    #[error("cannot {operation}{}", spelt_out(.source))]
    Sql {
        /// What was tried.
        operation: &'static str,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// A value cannot be written as JSON.
    #[error("cannot write {what} as JSON")]
    Json {
        /// The value.
        what: &'static str,
        /// Why not.
        source: serde_json::Error,
    },
    /// An amount cannot be counted.
    #[error("an amount cannot be booked")]
    Amount(#[source] MoneyError),
    /// Nobody was born in this database.
    #[error("no automaton was born here yet")]
    Unborn,
    /// The table of states has no such transition.
    #[error("an automaton that is {from} cannot become {to}")]
    IllegalTransition {
        /// The state before.
        from: AgentState,
        /// The wanted state.
        to: AgentState,
    },
    /// The state changed before it could be changed.
    #[error("the automaton is {found}, not {expected}")]
    LostRace {
        /// The state it should have had.
        expected: AgentState,
        /// The state it has.
        found: AgentState,
    },
    /// A row that was named does not exist.
    #[error("there is no {noun} {id}")]
    Missing {
        /// What kind of thing.
        noun: &'static str,
        /// Its id or name.
        id: String,
    },
    /// What was asked does not fit what is recorded.
    #[error("the {noun} {id} {why}")]
    Unfit {
        /// What kind of thing is in the way.
        noun: &'static str,
        /// Its id or name.
        id: String,
        /// Where it stands, as the rest of the sentence.
        why: String,
    },
    /// The message is longer than a message may be.
    #[error("the message has {bytes} bytes; at most {most} are accepted")]
    MessageTooLong {
        /// Its length.
        bytes: usize,
        /// The longest that is accepted from its sender.
        most: usize,
    },
    /// Too many rows of a kind are waiting.
    #[error("there are {limit} {noun} already; no more are taken")]
    Full {
        /// What kind of thing.
        noun: &'static str,
        /// How many there may be.
        limit: u32,
    },
}

impl Classified for StoreError {
    fn kind(&self) -> ErrorClass {
        match self {
            Self::Open(error) => error.kind(),
            Self::Sql { source, .. } => SqliteErrorKind::of(source).kind(),
            Self::LostRace { .. } => ErrorClass::Transient,
            Self::Unborn | Self::MessageTooLong { .. } | Self::Amount(_) => ErrorClass::User,
            Self::Full { .. } => ErrorClass::Denied,
            Self::Spawn(_)
            | Self::WriterGone { .. }
            | Self::Json { .. }
            | Self::IllegalTransition { .. }
            | Self::Missing { .. }
            | Self::Unfit { .. } => ErrorClass::Internal,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Open(error) => error.hint(),
            Self::Sql { source, .. } => SqliteErrorKind::of(source).hint().map(str::to_owned),
            Self::WriterGone { .. } => {
                Some("Start the automaton again; what was stored is safe.".to_owned())
            }
            Self::Unborn => Some("Start the automaton once; that gives birth to it.".to_owned()),
            Self::MessageTooLong { .. } => {
                Some("Put the text into a file of the workspace and send its name.".to_owned())
            }
            Self::Full { .. } => Some("Wait until the automaton has caught up.".to_owned()),
            _ => None,
        }
    }
}

/// Why a piece of work in the store stopped: SQLite failed, or a rule of the
/// store refused. Which operation it was is added where the work was ordered.
#[derive(Debug)]
pub(crate) enum TxError {
    Sql(rusqlite::Error),
    Refused(StoreError),
}

impl From<rusqlite::Error> for TxError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for TxError {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl TxError {
    /// The error of the operation that was stopped.
    pub(crate) fn during(self, operation: &'static str) -> StoreError {
        match self {
            Self::Refused(error) => error,
            Self::Sql(source) => StoreError::Sql { operation, source },
        }
    }
}

/// The reason, where a user can do something about it.
fn spelt_out(source: &rusqlite::Error) -> &'static str {
    match SqliteErrorKind::of(source) {
        SqliteErrorKind::Full => ": the disk is full",
        SqliteErrorKind::Busy => ": another program holds the database",
        SqliteErrorKind::Damaged => ": the database is damaged",
        SqliteErrorKind::Io => ": the database file cannot be read or written",
        SqliteErrorKind::Constraint | SqliteErrorKind::Other => "",
    }
}

/// The refusal for a row that does not exist.
pub(crate) fn missing(noun: &'static str, id: &dyn ToString) -> TxError {
    TxError::Refused(StoreError::Missing { noun, id: id.to_string() })
}

/// The refusal for what does not fit what is recorded.
pub(crate) fn unfit(noun: &'static str, id: &dyn ToString, why: impl Into<String>) -> TxError {
    TxError::Refused(StoreError::Unfit { noun, id: id.to_string(), why: why.into() })
}

/// The refusal for a repetition that differs.
pub(crate) fn conflict(noun: &'static str, id: &dyn ToString) -> TxError {
    unfit(noun, id, "was already done differently")
}

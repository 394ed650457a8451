//! Errors of the store, each with its remedy.
//!
//! Refusals of the store's own rules name the row they are about. `Display` never repeats
//! its source.

use automaton_core::error::Classified;
use automaton_core::money::MoneyError;
use automaton_core::state::AgentState;
use automaton_sqlite::SqliteError;

/// An operation of the store failed.
#[derive(Debug, thiserror::Error, Classified)]
pub enum StoreError {
    /// The database could not be opened, written or read.
    #[error(transparent)]
    Database(#[from] SqliteError),
    /// A value cannot be written as JSON.
    #[error("cannot write {what} as JSON")]
    #[class(Internal)]
    Json {
        /// The value.
        what: &'static str,
        /// Cause.
        source: serde_json::Error,
    },
    /// An amount cannot be counted.
    #[error("an amount cannot be booked")]
    #[class(User)]
    Amount(#[source] MoneyError),
    /// Nobody was born in this database.
    #[error("no automaton was born here yet")]
    #[class(User, hint = "Start the automaton once; that gives birth to it.")]
    Unborn,
    /// The table of states has no such transition.
    #[error("an automaton that is {from} cannot become {to}")]
    #[class(Internal)]
    IllegalTransition {
        /// The state before.
        from: AgentState,
        /// The wanted state.
        to: AgentState,
    },
    /// The state changed before it could be changed.
    #[error("the automaton is {found}, not {expected}")]
    #[class(Transient)]
    LostRace {
        /// The state it should have had.
        expected: AgentState,
        /// The state it has.
        found: AgentState,
    },
    /// A row that was named does not exist.
    #[error("there is no {noun} {id}")]
    #[class(Internal)]
    Missing {
        /// Kind of the object.
        noun: &'static str,
        /// Its id or name.
        id: String,
    },
    /// The request contradicts the record.
    #[error("the {noun} {id} {why}")]
    #[class(Internal)]
    Unfit {
        /// Kind of the object in the way.
        noun: &'static str,
        /// Its id or name.
        id: String,
        /// Its state, as the rest of the sentence.
        why: String,
    },
    /// The message is longer than a message may be.
    #[error("the message has {bytes} bytes; at most {most} are accepted")]
    #[class(User, hint = "Put the text into a file of the workspace and send its name.")]
    MessageTooLong {
        /// Its length.
        bytes: usize,
        /// The longest that is accepted from its sender.
        most: usize,
    },
    /// Too many rows of a kind are waiting.
    #[error("there are {limit} {noun} already; no more are taken")]
    #[class(Denied, hint = "Wait until the automaton has caught up.")]
    Full {
        /// Kind of the object.
        noun: &'static str,
        /// Limit.
        limit: u32,
    },
}

/// Reason for which a transaction stopped.
pub(crate) type TxError = automaton_sqlite::WriteError<StoreError>;

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

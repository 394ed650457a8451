//! What can go wrong in the store, each with its remedy.
//!
//! Errors of SQLite are sorted by what a user can do about them; refusals of the
//! store's own rules name the row they are about. `Display` never repeats its
//! source.

use automaton_core::error::{Classified, Kind};
use automaton_core::id::{CallId, SessionId, TurnId};
use automaton_core::message::MESSAGE_BYTES_MAX;
use automaton_core::record::{CallStatus, TurnStatus};
use automaton_core::state::AgentState;
use automaton_sqlite::{Fault, SqliteError};

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
    /// The disk is full.
    #[error("cannot {operation}: the disk is full")]
    DiskFull {
        /// What was tried.
        operation: &'static str,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// Another process holds the database.
    #[error("cannot {operation}: another program holds the database")]
    Busy {
        /// What was tried.
        operation: &'static str,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// The database is damaged.
    #[error("cannot {operation}: the database is damaged")]
    Damaged {
        /// What was tried.
        operation: &'static str,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// The file cannot be read or written.
    #[error("cannot {operation}: the database file cannot be read or written")]
    Unwritable {
        /// What was tried.
        operation: &'static str,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// SQLite refused for another reason, which is a defect of ours or a
    /// database that somebody edited.
    #[error("cannot {operation}")]
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
    /// What is repeated differs from what was done.
    #[error("{noun} {id} was already done differently")]
    Conflict {
        /// What kind of thing.
        noun: &'static str,
        /// Its id.
        id: String,
    },
    /// A wake cycle is open already.
    #[error("the wake cycle {0} is still open")]
    SessionStillOpen(SessionId),
    /// The wake cycle has ended.
    #[error("the wake cycle {0} has ended")]
    SessionEnded(SessionId),
    /// A turn of the cycle is neither committed nor abandoned.
    #[error("the turn {0} is not finished")]
    TurnUnfinished(TurnId),
    /// The turn does not stand where the operation needs it.
    #[error("the turn {turn} is {found}, not {wanted}")]
    TurnStanding {
        /// The turn.
        turn: TurnId,
        /// Where it stands.
        found: TurnStatus,
        /// Where it should.
        wanted: TurnStatus,
    },
    /// A judged call contradicts itself.
    #[error("the judgement of the call {call} is malformed: {why}")]
    BadJudgement {
        /// The call.
        call: CallId,
        /// What contradicts.
        why: &'static str,
    },
    /// A call cannot go from where it stands to where it should.
    #[error("the call {call} is {found} and cannot become {wanted}")]
    CallStanding {
        /// The call.
        call: CallId,
        /// Where it stands.
        found: CallStatus,
        /// Where it should go.
        wanted: CallStatus,
    },
    /// A turn cannot be committed while a call may still run.
    #[error("the turn {turn} has {count} unfinished calls")]
    CallsUnfinished {
        /// The turn.
        turn: TurnId,
        /// How many.
        count: u32,
    },
    /// The message is longer than a message may be.
    #[error("the message has {bytes} bytes; at most {MESSAGE_BYTES_MAX} are accepted")]
    MessageTooLong {
        /// Its length.
        bytes: usize,
    },
    /// Too many rows of a kind are waiting.
    #[error("there are {limit} {noun} already; no more are taken")]
    Full {
        /// What kind of thing.
        noun: &'static str,
        /// How many there may be.
        limit: u32,
    },
    /// Somebody else holds the task by now, or nobody.
    #[error("the lease of the heartbeat task '{task}' was lost")]
    LeaseLost {
        /// The task.
        task: String,
    },
}

impl Classified for StoreError {
    fn kind(&self) -> Kind {
        match self {
            Self::Open(error) => error.kind(),
            Self::Busy { .. } | Self::LostRace { .. } => Kind::Transient,
            Self::Unborn | Self::MessageTooLong { .. } => Kind::User,
            Self::Full { .. } => Kind::Denied,
            Self::Spawn(_)
            | Self::WriterGone { .. }
            | Self::DiskFull { .. }
            | Self::Damaged { .. }
            | Self::Unwritable { .. }
            | Self::Sql { .. }
            | Self::Json { .. }
            | Self::IllegalTransition { .. }
            | Self::Missing { .. }
            | Self::Conflict { .. }
            | Self::SessionStillOpen(_)
            | Self::SessionEnded(_)
            | Self::TurnUnfinished(_)
            | Self::TurnStanding { .. }
            | Self::BadJudgement { .. }
            | Self::CallStanding { .. }
            | Self::CallsUnfinished { .. }
            | Self::LeaseLost { .. } => Kind::Internal,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Open(error) => error.hint(),
            Self::DiskFull { source, .. }
            | Self::Busy { source, .. }
            | Self::Damaged { source, .. }
            | Self::Unwritable { source, .. } => Fault::of(source).hint().map(str::to_owned),
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
pub(crate) enum Halt {
    Sql(rusqlite::Error),
    Refused(StoreError),
}

impl From<rusqlite::Error> for Halt {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for Halt {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl Halt {
    /// The error of the operation that was stopped.
    pub(crate) fn during(self, operation: &'static str) -> StoreError {
        let source = match self {
            Self::Refused(error) => return error,
            Self::Sql(source) => source,
        };
        match Fault::of(&source) {
            Fault::Full => StoreError::DiskFull { operation, source },
            Fault::Busy => StoreError::Busy { operation, source },
            Fault::Damaged => StoreError::Damaged { operation, source },
            Fault::Io => StoreError::Unwritable { operation, source },
            Fault::Constraint | Fault::Other => StoreError::Sql { operation, source },
        }
    }
}

/// The refusal for a row that does not exist.
pub(crate) fn missing(noun: &'static str, id: &dyn ToString) -> StoreError {
    StoreError::Missing { noun, id: id.to_string() }
}

/// The refusal for a repetition that differs.
pub(crate) fn conflict(noun: &'static str, id: &dyn ToString) -> StoreError {
    StoreError::Conflict { noun, id: id.to_string() }
}

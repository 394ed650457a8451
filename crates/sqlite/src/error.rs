//! Errors of a database file, each with its remedy.
//!
//! `Display` names the file and the operation, and the cause follows as the source. A message
//! must never tell a user to delete a database that may contain an automaton's history.

use std::path::PathBuf;

use automaton_core::error::Classified;
use automaton_core::money::MoneyError;
use rusqlite::ErrorCode;

/// A database could not be opened, migrated or copied, or an operation on it failed.
#[derive(Debug, thiserror::Error, Classified)]
pub enum SqliteError {
    /// The file is missing, and it was to be opened for reading only.
    #[error("there is no database at {path}")]
    #[class(User, hint = "Start the automaton once; that makes its database.")]
    Missing {
        /// The database.
        path: PathBuf,
    },
    /// The file is missing, but its write-ahead log is there.
    #[error("{path} is missing, but its log {path}-wal is there")]
    #[class(
        Internal,
        hint = "Put the database back beside its log, or move the log away to begin anew."
    )]
    Orphaned {
        /// The database.
        path: PathBuf,
    },
    /// The file cannot be created, read or protected.
    #[error("cannot {verb} the database {path}")]
    #[class(Internal, hint = "Check that the directory exists and belongs to you.")]
    File {
        /// The failed action.
        verb: &'static str,
        /// The database.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// SQLite failed at another action.
    #[error("cannot {verb} the database {path}")]
    #[class(kind = SqliteErrorKind::from_error(source).kind(), hint = SqliteErrorKind::from_error(source).hint())]
    Sql {
        /// The failed action.
        verb: &'static str,
        /// The database.
        path: PathBuf,
        /// The cause.
        source: rusqlite::Error,
    },
    /// The file is not a SQLite database.
    #[error("{path} is not a database")]
    #[class(Config, hint = "Check the path. The file was left as it is.")]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The file is a SQLite database of another program.
    #[error("{path} is a database of another program")]
    #[class(Config, hint = "Check the path. The file was left as it is.")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The database is damaged.
    #[error("the database {path} is damaged: {detail}")]
    #[class(
        Internal,
        hint = "The file was left as it is. Restore a backup in its place, or rescue what can be \
                read with `sqlite3 FILE .recover`."
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The first finding of the check.
        detail: String,
    },
    /// A newer program wrote the database.
    #[error("the database {path} has version {found}; this program knows versions up to {known}")]
    #[class(User, hint = "Use the newer program that wrote it. The file was left as it is.")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest version known here.
        known: u32,
    },
    /// A program from before the first release wrote the database, in a form that is no longer
    /// read.
    #[error(
        "the database {path} has the old form {version}, from before the first release, which \
         this program cannot read"
    )]
    #[class(User, hint = match carried {
        None => format!(
            "To begin anew, move {path} into another folder, with {path}-wal and {path}-shm if \
             they are there, and start again. To read it, use the old program. The file was left \
             as it is.",
            path = path.display()
        ),
        Some(carried) => format!(
            "Start it once with the old program that writes version {carried}; this one takes \
             that over. Do not delete it: what it counted would be forgotten. The file was left \
             as it is."
        ),
    })]
    OldForm {
        /// The file.
        path: PathBuf,
        /// Its version in the old form.
        version: u32,
        /// The old version that would be carried over, if there is one.
        carried: Option<u32>,
    },
    /// An older program wrote the database, and it was to be opened for reading only.
    #[error("the database {path} has version {found}; this program reads version {known}")]
    #[class(User, hint = "Start the automaton once with this program; that migrates it.")]
    Older {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The version known here.
        known: u32,
    },
    /// A migration failed. The database keeps the version before it.
    #[error("cannot migrate the database {path} to version {version} ({name})")]
    #[class(kind = SqliteErrorKind::from_error(source).kind(), hint = SqliteErrorKind::from_error(source).hint())]
    Migrate {
        /// The file.
        path: PathBuf,
        /// The version that was not reached.
        version: u32,
        /// The migration's name.
        name: &'static str,
        /// The cause.
        source: rusqlite::Error,
    },
    /// The writer thread could not be started.
    #[error("cannot start the thread that writes the database")]
    #[class(Internal)]
    Spawn(#[source] std::io::Error),
    /// The writer has ended: it was closed, or a job panicked.
    #[error("cannot {operation}: the thread that writes the database has ended")]
    #[class(Internal, hint = "Start it again; what was stored is safe.")]
    WriterGone {
        /// The requested operation.
        operation: &'static str,
    },
    /// An operation on an open database failed. A cause without an explanation is a defect of
    /// this program or a manually edited database.
    #[error("cannot {operation}{}", SqliteErrorKind::from_error(.source))]
    #[class(kind = SqliteErrorKind::from_error(source).kind(), hint = SqliteErrorKind::from_error(source).hint())]
    Operation {
        /// The failed operation.
        operation: &'static str,
        /// The cause.
        source: rusqlite::Error,
    },
}

/// The reason why work in a transaction stopped: SQLite failed, or a rule of the database's owner
/// refused. The caller adds the operation.
#[derive(Debug)]
pub enum WriteError<E> {
    /// SQLite failed.
    Sql(rusqlite::Error),
    /// A rule refused.
    Refused(E),
}

impl<E> From<rusqlite::Error> for WriteError<E> {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl<E: From<SqliteError>> From<E> for WriteError<E> {
    fn from(error: E) -> Self {
        Self::Refused(error)
    }
}

/// In a ledger, an amount that overflows is a refusal.
impl<E: From<MoneyError>> From<MoneyError> for WriteError<E> {
    fn from(error: MoneyError) -> Self {
        Self::Refused(error.into())
    }
}

impl<E: From<SqliteError>> WriteError<E> {
    /// Returns the error of the stopped operation. `operation` completes "cannot …".
    pub fn during(self, operation: &'static str) -> E {
        match self {
            Self::Refused(error) => error,
            Self::Sql(source) => SqliteError::Operation { operation, source }.into(),
        }
    }
}

/// The kinds of SQLite failures that a user can resolve. Displayed as the end of a sentence, or
/// as nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Classified)]
pub enum SqliteErrorKind {
    /// The disk is full.
    #[error(": the disk is full")]
    #[class(Internal, hint = "Free some disk space; nothing that was stored is lost.")]
    Full,
    /// Another process holds the database for too long.
    #[error(": another program holds the database")]
    #[class(Transient, hint = "Another program holds the database; end it or try again.")]
    Busy,
    /// The database is damaged, or not one.
    #[error(": the database is damaged")]
    #[class(
        Internal,
        hint = "The database file is damaged. Stop, keep a copy, and restore a backup or rescue it \
                with `sqlite3 FILE .recover`."
    )]
    Damaged,
    /// The file or its directory cannot be written, or the device fails.
    #[error(": the database file cannot be read or written")]
    #[class(
        Internal,
        hint = "Check that the disk works and that the file and its directory are yours."
    )]
    Io,
    /// A constraint of the schema refused a row.
    #[error("")]
    #[class(Internal)]
    Constraint,
    /// Anything else.
    #[error("")]
    #[class(Internal)]
    Other,
}

impl SqliteErrorKind {
    /// Returns the kind of a SQLite error.
    #[must_use]
    pub fn from_error(error: &rusqlite::Error) -> Self {
        // The shared memory of the log could not grow.
        let shared = rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
        if error.sqlite_error().is_some_and(|error| error.extended_code == shared) {
            return Self::Full;
        }
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged,
            Some(
                ErrorCode::SystemIoFailure
                | ErrorCode::ReadOnly
                | ErrorCode::CannotOpen
                | ErrorCode::PermissionDenied,
            ) => Self::Io,
            Some(ErrorCode::ConstraintViolation) => Self::Constraint,
            Some(_) | None => Self::Other,
        }
    }
}

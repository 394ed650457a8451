//! Errors of a schedule, by the place where it was written.

use std::io;
use std::path::PathBuf;

use automaton_core::error::Classified;

use super::schedule::ScheduleError;

/// A schedule cannot be used.
#[derive(Debug, thiserror::Error, Classified)]
pub enum HeartbeatError {
    /// The file cannot be read.
    #[error("cannot read {path}")]
    #[class(Config, hint = "make {} readable for the automaton's user", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// The file is not what is expected.
    #[error("{path} is no heartbeat.yml: {reason}")]
    #[class(Config, hint = "correct the line; docs/heartbeat.md tells what may be there")]
    Yaml {
        /// The file.
        path: PathBuf,
        /// Problem, with the line.
        reason: String,
    },
    /// A value of the file is out of range.
    #[error("{path}, line {line}: {key} is {value}, and must be {rule}")]
    #[class(Config, hint = "correct the line; docs/heartbeat.md tells what may be there")]
    Value {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
        /// The value's name.
        key: &'static str,
        /// Written value.
        value: String,
        /// Allowed values.
        rule: String,
    },
    /// The schedule of an entry of the file cannot be used.
    #[error("{path}, line {line}: the entry '{name}' cannot run")]
    #[class(Config, hint = "correct the line; docs/heartbeat.md tells what may be there")]
    Entry {
        /// The file.
        path: PathBuf,
        /// The line of the entry's name.
        line: u64,
        /// The entry.
        name: String,
        /// Cause.
        #[source]
        source: ScheduleError,
    },
    /// A row of the schedule cannot be used.
    #[error("the task '{name}' cannot run")]
    #[class(Internal, hint = "give the task another schedule")]
    Row {
        /// The row.
        name: String,
        /// Cause.
        #[source]
        source: ScheduleError,
    },
}

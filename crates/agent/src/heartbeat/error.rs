//! What can be wrong with a schedule, by where it was written.

use std::io;
use std::path::PathBuf;

use automaton_core::error::{Classified, ErrorClass};

use super::schedule::ScheduleError;

/// A schedule cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HeartbeatError {
    /// The file cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The file is not what is expected.
    #[error("{path} is no heartbeat.yml: {reason}")]
    Yaml {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the line.
        reason: String,
    },
    /// A value of the file is out of range.
    #[error("{path}, line {line}: {key} is {value}, and must be {rule}")]
    Value {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
        /// The value's name.
        key: &'static str,
        /// What was written.
        value: String,
        /// What may be.
        rule: &'static str,
    },
    /// The schedule of an entry of the file cannot be used.
    #[error("{path}, line {line}: the entry '{name}' cannot run")]
    Entry {
        /// The file.
        path: PathBuf,
        /// The line of the entry's name.
        line: u64,
        /// The entry.
        name: String,
        /// Why not.
        #[source]
        source: ScheduleError,
    },
    /// A row of the schedule cannot be used.
    #[error("the task '{name}' cannot run")]
    Row {
        /// The row.
        name: String,
        /// Why not.
        #[source]
        source: ScheduleError,
    },
}

impl Classified for HeartbeatError {
    fn kind(&self) -> ErrorClass {
        match self {
            Self::Read { .. } | Self::Yaml { .. } | Self::Value { .. } | Self::Entry { .. } => {
                ErrorClass::Config
            }
            Self::Row { .. } => ErrorClass::Internal,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Read { path, .. } => {
                Some(format!("make {} readable for the automaton's user", path.display()))
            }
            Self::Yaml { .. } | Self::Value { .. } | Self::Entry { .. } => {
                Some("correct the line; docs/heartbeat.md tells what may be there".to_owned())
            }
            Self::Row { .. } => Some("give the task another schedule".to_owned()),
        }
    }
}

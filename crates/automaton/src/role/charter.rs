//! What a supervisor tells the agent's process, and what it hears.
//!
//! The charter is one line of JSON on the agent's standard input: no argument
//! and no variable of the environment, since others could read those, and it
//! may hold the key to a model. The agent's standard output holds one
//! [`Line`] of JSON a line.

use std::path::PathBuf;

use automaton_core::error::Kind;
use automaton_core::event::Stamped;
use serde::{Deserialize, Serialize};

use crate::config::resolve::Resolved;
use crate::error::{Failure, Told};

/// The name by which the agent's process is called.
pub(crate) const ARG0: &str = "automaton-agent";

/// The descriptor of the lifeline to the supervisor.
pub(crate) const LIFELINE: i32 = 3;

/// The longest line of either side, in bytes. A thought may be long, and its
/// characters may each take six bytes as JSON.
pub(crate) const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Everything an agent is told at its start.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Charter {
    /// The configuration as it holds.
    pub(crate) resolved: Resolved,
    /// Our own executable, which is the sandbox's helper too.
    pub(crate) executable: PathBuf,
    /// How far it goes.
    pub(crate) going: Going,
    /// A first message of the creator, stored once.
    pub(crate) ask: Option<Ask>,
    /// A crash to rehearse, `POINT[:N]`.
    pub(crate) fault: Option<String>,
}

/// How far and how fast one start goes.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Going {
    /// End by itself after so many committed turns.
    pub(crate) turns_max: Option<u32>,
    /// Wait at most so many milliseconds of each sleep.
    pub(crate) sleep_cap_ms: Option<i64>,
}

/// A message that is stored at the start.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Ask {
    /// The message.
    pub(crate) text: String,
    /// The same key is stored once, however often the agent is started again.
    pub(crate) key: String,
}

/// One line of an agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Line {
    /// It cannot go on, and ends.
    Fatal {
        /// Why.
        fatal: Fatal,
    },
    /// Something happened.
    Event(Stamped),
}

/// Why an agent cannot go on.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Fatal {
    kind: Kind,
    error: String,
    hint: Option<String>,
}

impl From<&Told> for Fatal {
    fn from(told: &Told) -> Self {
        let hint = told.remedy().map(str::to_owned);
        Self { kind: told.kind(), error: told.line(), hint }
    }
}

impl From<Fatal> for Failure {
    fn from(fatal: Fatal) -> Self {
        let failure = Self::new(fatal.kind, fatal.error);
        match fatal.hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

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
    /// End by itself after so many committed turns, and wait a moment of each
    /// sleep only.
    pub(crate) turns_max: Option<u32>,
    /// A first message of the creator, stored once.
    pub(crate) ask: Option<Ask>,
    /// A crash to rehearse, `POINT[:N]`.
    pub(crate) fault: Option<String>,
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
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    /// It cannot go on, and ends.
    Fatal {
        /// Who has to act.
        kind: Kind,
        /// The sentence and its causes.
        error: String,
        /// The remedy.
        remedy: Option<String>,
    },
    /// Something happened.
    Event(Stamped),
}

//! What people and scripts see.
//!
//! Data goes to stdout, talk to stderr. Meaning never depends on colour, and
//! text that somebody else wrote never reaches a terminal with its control
//! characters.

pub(crate) mod console;
mod money;
pub(crate) mod pretty;
pub(crate) mod text;

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use crate::config::env::Environment;
use crate::error::Failure;

/// How a command answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// For scripts: one JSON document, or one JSON object a line.
    Json,
}

impl Format {
    /// Answers with a value, or with the same in words.
    ///
    /// # Errors
    /// As [`line()`].
    pub(crate) fn answer(
        self,
        value: &impl Serialize,
        words: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        match self {
            Self::Text => line(&words()),
            Self::Json => json(value),
        }
    }
}

/// Whether text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    /// It is not.
    Plain,
    /// With the escape sequences of ANSI terminals.
    Ansi,
}

impl Paint {
    /// Colour only in a terminal, and only where nobody asked for none.
    pub(crate) fn of_stdout(environment: &Environment) -> Self {
        let wanted = environment.no_color.is_none() && io::stdout().is_terminal();
        if wanted { Self::Ansi } else { Self::Plain }
    }
}

/// Writes one line of data to stdout, at once.
///
/// # Errors
/// When stdout cannot be written; a reader that went away is no failure.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(|error| Failure::output(&error))
}

/// Writes one value as a line of JSON to stdout.
///
/// # Errors
/// As [`line()`].
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value)
        .map_err(|error| Failure::internal("cannot write the answer as JSON", &error))?;
    line(&text)
}

/// Says something to the person, on stderr.
pub(crate) fn say(text: &str) {
    // silent-ok: without a stderr there is nobody to say it to.
    writeln!(io::stderr().lock(), "{text}").ok();
}

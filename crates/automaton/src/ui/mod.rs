//! Output for people and scripts.
//!
//! Data goes to stdout, talk to stderr. Meaning never depends on colour, and
//! text that somebody else wrote never reaches a terminal with its control
//! characters.

pub(crate) mod console;
mod money;
pub(crate) mod phrases;
pub mod pretty;
pub(crate) mod snapshots;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod units;
pub(crate) mod when;
pub(crate) mod words;
pub(crate) mod wrap;

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use automaton_sandbox::terminal_columns;
use serde::Serialize;

use crate::config::env::Environment;
use crate::error::CliError;
use when::WallClock;

/// True if anything was written to stdout as data.
static ANSWERED: AtomicBool = AtomicBool::new(false);

/// View of a person.
#[derive(Debug, Clone)]
pub(crate) struct Viewport {
    /// Display of times.
    pub(crate) when: WallClock,
    /// The user's own folder, which is called `~`.
    pub(crate) user_home: Option<String>,
    window: LineWidth,
}

/// Width at which lines are wrapped.
#[derive(Debug, Clone, Copy)]
enum LineWidth {
    /// The window that stdout is shown in, as wide as it is at that moment; where it is
    /// shown in none, so many columns, or lines without an end.
    Stdout(Option<usize>),
    /// The same of stderr.
    Stderr(Option<usize>),
    /// So many columns, or lines without an end.
    Fixed(Option<usize>),
}

impl Default for Viewport {
    fn default() -> Self {
        Self { when: WallClock::utc(), user_home: None, window: LineWidth::Fixed(None) }
    }
}

impl Viewport {
    /// Returns the view of stdout.
    pub(crate) fn of_stdout(environment: &Environment, when: WallClock) -> Self {
        // silent-ok: a folder whose name is no text is shown as the system has it.
        let user_home = environment.home.as_ref().and_then(|home| home.to_str());
        let window = LineWidth::Stdout(environment.columns);
        Self { when, user_home: user_home.map(str::to_owned), window }
    }

    /// The same for what is written to stderr.
    pub(crate) fn of_stderr(self) -> Self {
        let LineWidth::Stdout(columns) = self.window else { return self };
        Self { window: LineWidth::Stderr(columns), ..self }
    }

    #[cfg(test)]
    pub(crate) const fn fixed(mut self, columns: usize) -> Self {
        self.window = LineWidth::Fixed(Some(columns));
        self
    }

    /// Columns of the window; nothing where lines have no end.
    pub(crate) fn width(&self) -> Option<usize> {
        match self.window {
            LineWidth::Stdout(columns) => terminal_columns(io::stdout()).or(columns),
            LineWidth::Stderr(columns) => terminal_columns(io::stderr()).or(columns),
            LineWidth::Fixed(columns) => columns,
        }
    }
}

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// For scripts: one JSON document, or one JSON object a line.
    Json,
}

impl Format {
    /// With `--json`, or without.
    #[must_use]
    pub const fn of(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }

    /// Answers with a value, or with the same in words.
    ///
    /// # Errors
    /// When stdout cannot be written; a reader that went away is no failure.
    pub fn answer(
        self,
        value: &impl Serialize,
        words: impl FnOnce() -> String,
    ) -> Result<(), CliError> {
        match self {
            Self::Text => line(&words()),
            Self::Json => json(value),
        }
    }
}

/// Use of colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColorMode {
    /// It is not.
    Plain,
    /// With the escape sequences of ANSI terminals.
    Ansi,
}

impl ColorMode {
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
pub(crate) fn line(text: &str) -> Result<(), CliError> {
    ANSWERED.store(true, Ordering::Relaxed);
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(|error| CliError::output(&error))
}

/// Writes one value as a line of JSON to stdout.
///
/// # Errors
/// As [`line()`].
pub(crate) fn json(value: &impl Serialize) -> Result<(), CliError> {
    let text = serde_json::to_string(value)
        .map_err(|error| CliError::internal("cannot write the answer as JSON", &error))?;
    line(&text)
}

/// Returns another party's text as it may be written: to a terminal without control sequences,
/// and byte for byte to anything else.
pub(crate) fn fit<'a>(to: &impl IsTerminal, bytes: &'a [u8]) -> Cow<'a, [u8]> {
    if to.is_terminal() { harmless(bytes) } else { Cow::Borrowed(bytes) }
}

fn harmless(bytes: &[u8]) -> Cow<'_, [u8]> {
    Cow::Owned(text::plain(&String::from_utf8_lossy(bytes)).into_bytes())
}

/// Returns true if nothing was written to stdout yet. Then a failure is the whole answer.
pub(crate) fn nothing_answered() -> bool {
    !ANSWERED.load(Ordering::Relaxed)
}

/// Says something to the person, on stderr, in lines that fit the window.
pub fn say(text: &str) {
    let text = wrap::hanging(text, terminal_columns(io::stderr()));
    // silent-ok: without a stderr there is nobody to say it to.
    writeln!(io::stderr().lock(), "{text}").ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_steers_no_terminal_and_is_itself_elsewhere() {
        let evil = "ok\u{1b}]0;title\u{7}\u{1b}[2J\u{202e}\u{200b}\r\nnext\n".as_bytes();
        assert_eq!(*harmless(evil), *b"ok]0;title[2J\nnext\n");
        assert_eq!(*harmless(b"a\xff\x9bb"), *"a\u{fffd}\u{fffd}b".as_bytes());
        let file = tempfile::tempfile().unwrap();
        assert_eq!(*fit(&file, evil), *evil);
    }
}

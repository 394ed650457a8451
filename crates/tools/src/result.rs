//! Pure: how results are cut to size, and the number that marks them in a prompt.
//!
//! A *notice* is a line of the runtime's own that stands in brackets: what is left out, where
//! the whole is, how to read on. Must never cut without one, and never cut one.
//! The marks around a text, and what may stand between them, are the guard's
//! (`policy::guard`).

mod excerpt;

use std::fmt::{self, Write as _};

pub use excerpt::shorten;
pub(crate) use excerpt::{Excerpt, HeadShare};

/// Room for the sentence that says what is missing.
const NOTE_CHARS: usize = 48;

/// The text with its middle cut out when it has more characters than allowed.
/// The end of an output matters as much as its beginning: that is where errors
/// are.
#[must_use]
pub fn cap(text: &str, chars_max: usize) -> String {
    let total = text.chars().count();
    if total <= chars_max {
        return text.to_owned();
    }
    let kept = chars_max.saturating_sub(NOTE_CHARS);
    let head = kept.div_ceil(2);
    let tail = kept / 2;
    let at = |chars: usize| text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    let note = format!("\n[{} characters omitted]\n", total - kept);
    let note: String = note.chars().take(chars_max).collect();
    format!("{}{note}{}", &text[..at(head)], &text[at(total - tail)..])
}

/// A number that whoever wrote a text could not know when writing it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameNonce(String);

impl FrameNonce {
    /// The end of an id: 40 random bits that were drawn for just this result or
    /// message. The same each time that it is shown.
    #[must_use]
    pub fn from_id(id: impl fmt::Display) -> Self {
        const CHARS: usize = 8;
        let id = id.to_string();
        let start = id.char_indices().rev().nth(CHARS - 1).map_or(0, |(at, _)| at);
        Self(id[start..].to_owned())
    }

    /// The number as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Adds a line to a result.
pub(crate) fn add_line(text: &mut String, line: fmt::Arguments<'_>) {
    // silent-ok: writing to a String cannot fail.
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests;

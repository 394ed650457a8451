//! Pure: how results are cut to size and shown to the model.
//!
//! What others wrote stands between marks that hold a number they could not
//! know, and nothing in it may look like such a mark or like a control token of
//! a model's chat template. Must never lose the label of a text, and never cut
//! without saying so.

use std::fmt::{self, Write as _};

use automaton_core::trust::{Label, Source};

/// Longest result that the model is shown, in characters.
pub const CHARS_MAX: usize = 10_000;

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
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    let at = |chars: usize| text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    let note = format!("\n[{} characters omitted]\n", total - kept);
    let note: String = note.chars().take(chars_max).collect();
    format!("{}{note}{}", &text[..at(head)], &text[at(total - tail)..])
}

/// A number that whoever wrote a text could not know when writing it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nonce(String);

impl Nonce {
    /// The end of an id: 40 random bits that were drawn for just this result or
    /// message. The same each time that it is shown.
    #[must_use]
    pub fn of(id: impl fmt::Display) -> Self {
        const CHARS: usize = 8;
        let id = id.to_string();
        let start = id.char_indices().rev().nth(CHARS - 1).map_or(0, |(at, _)| at);
        Self(id[start..].to_owned())
    }
}

/// A text as it stands in a prompt. What the creator and the automaton wrote
/// stands by itself; what others wrote stands between marks with its origin.
#[must_use]
pub fn frame(text: &str, label: Label, source: &Source, nonce: &Nonce) -> String {
    let text = neutralise(text);
    match label {
        Label::Creator | Label::Own => text,
        Label::Tool | Label::Peer | Label::Web => {
            let kept = |c: &char| c.is_ascii_alphanumeric() || " ._:/@-".contains(*c);
            let source: String = source.as_str().chars().filter(kept).take(60).collect();
            let Nonce(nonce) = nonce;
            format!("[data {nonce} {label} {source}]\n{text}\n[/data {nonce}]")
        }
    }
}

/// Beginnings of what a chat template or a frame of ours is made of, in lower
/// case. A blank after the first character makes each of them plain text.
const MARKS: [&str; 26] = [
    "[data ",
    "[/data",
    "<|",
    "<｜",
    "[inst]",
    "[/inst]",
    "<<sys>>",
    "<</sys>>",
    "<s>",
    "</s>",
    "<bos>",
    "<eos>",
    "<pad>",
    "<unk>",
    "<system",
    "</system",
    "<tool_call",
    "</tool_call",
    "<tool_response",
    "</tool_response",
    "<function",
    "</function",
    "<think",
    "</think",
    "<start_of_turn",
    "<end_of_turn",
];

/// The text without characters that cannot be seen, and without anything that
/// a model could take for a control token or for a frame.
#[must_use]
pub fn neutralise(text: &str) -> String {
    // First what cannot be seen, since it could hide a mark from the second step.
    let visible: String = text.chars().filter(|c| !is_invisible(*c)).collect();
    let mut plain = String::with_capacity(visible.len());
    for (at, c) in visible.char_indices() {
        plain.push(c);
        if matches!(c, '<' | '[') && MARKS.iter().any(|mark| begins_with(&visible[at..], mark)) {
            plain.push(' ');
        }
    }
    plain
}

/// Whether a text begins with a mark, in whatever case.
fn begins_with(text: &str, mark: &str) -> bool {
    text.get(..mark.len()).is_some_and(|start| start.eq_ignore_ascii_case(mark))
}

/// Control characters other than line end and tab, and characters that have no
/// width or turn the direction of writing.
fn is_invisible(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}' => true,
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{e0000}'..='\u{e007f}' | '\u{fff9}'..='\u{fffb}' => true,
        c => c.is_control(),
    }
}

/// Adds a line to a result.
pub(crate) fn add_line(text: &mut String, line: fmt::Arguments<'_>) {
    // silent-ok: writing to a String cannot fail.
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests;

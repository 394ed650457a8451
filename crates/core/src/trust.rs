//! Pure: where a text came from, carried by its type.
//!
//! A [`Label`] says who wrote a text. [`Untrusted`] holds a text that somebody
//! else wrote: it has no `Deref`, no `Display` and no `Serialize`, so it cannot
//! reach a prompt, a command or a log by accident. It leaves only as
//! [`Labelled`] (with its label) or through a sanitiser that is named at the
//! call. A label must never be raised on the way.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Who wrote a text, most trusted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Label {
    /// The creator.
    Creator,
    /// The automaton itself: its model, its memory of its own thoughts, its runtime.
    #[serde(rename = "self")]
    Own,
    /// The output of a tool that ran on the automaton's own files.
    Tool,
    /// Another agent.
    Peer,
    /// A page or service of the net.
    Web,
}

crate::names! {
    /// The label's name in the database and on the wire.
    Label {
        Creator => "creator", Own => "self", Tool => "tool", Peer => "peer", Web => "web",
    }
}

impl Label {
    /// The less trusted of two labels: what a text made of both is worth.
    #[must_use]
    pub fn meet(self, other: Self) -> Self {
        self.max(other)
    }
}

/// A text is no label.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no label of trust")]
pub struct UnknownLabel(String);

impl FromStr for Label {
    type Err = UnknownLabel;

    fn from_str(text: &str) -> Result<Self, UnknownLabel> {
        Self::by_name(text).ok_or_else(|| UnknownLabel(text.chars().take(40).collect()))
    }
}

/// The particular sender behind a label: an address, a tool, a host.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, derive_more::Display,
)]
#[serde(transparent)]
pub struct Source(String);

impl Source {
    /// Longest source that is kept, in bytes.
    pub const BYTES_MAX: usize = 200;

    /// A source by name. Control characters are dropped and the length is
    /// limited, since it is shown to people and models.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let mut kept: String = name.chars().filter(|c| !c.is_control()).collect();
        kept.truncate(kept.floor_char_boundary(Self::BYTES_MAX));
        Self(kept)
    }

    /// The source's name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A value that somebody else wrote.
///
/// ```compile_fail
/// # use automaton_core::trust::*;
/// let text = Untrusted::new(Label::Peer, Source::new("0xabc"), String::from("hi"));
/// println!("{text}"); // no Display
/// ```
///
/// ```compile_fail
/// # use automaton_core::trust::*;
/// let text = Untrusted::new(Label::Peer, Source::new("0xabc"), String::from("hi"));
/// let _len = text.len(); // no Deref
/// ```
///
/// ```compile_fail
/// # use automaton_core::trust::*;
/// fn write<T: serde::Serialize>(_: &T) {}
/// write(&Untrusted::new(Label::Peer, Source::new("0xabc"), String::from("hi"))); // no Serialize
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Untrusted<T> {
    label: Label,
    source: Source,
    value: T,
}

impl<T> Untrusted<T> {
    /// Wraps a value with its origin.
    #[must_use]
    pub const fn new(label: Label, source: Source, value: T) -> Self {
        Self { label, source, value }
    }

    /// Who wrote it.
    #[must_use]
    pub const fn label(&self) -> Label {
        self.label
    }

    /// The particular sender.
    #[must_use]
    pub const fn source(&self) -> &Source {
        &self.source
    }

    /// Leaves the wrapper through a sanitiser, which sees value and origin and
    /// whose result is safe for the sink it was written for.
    pub fn through<U>(self, sanitiser: impl FnOnce(T, Label, &Source) -> U) -> U {
        sanitiser(self.value, self.label, &self.source)
    }
}

impl Untrusted<String> {
    /// The text together with its origin, for the database and for `--json`.
    #[must_use]
    pub fn into_labelled(self) -> Labelled {
        Labelled { label: self.label, source: self.source, text: self.value }
    }
}

impl<T> fmt::Debug for Untrusted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Untrusted({} from {})", self.label, self.source)
    }
}

/// A text with its origin, as it is stored and shown. Reading one back gives
/// [`Untrusted`] again, see [`Labelled::distrust`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Labelled {
    /// Who wrote it.
    pub label: Label,
    /// The particular sender.
    pub source: Source,
    /// The text, exactly as it came.
    pub text: String,
}

impl Labelled {
    /// A text with its origin.
    #[must_use]
    pub fn new(label: Label, source: &str, text: impl Into<String>) -> Self {
        Self { label, source: Source::new(source), text: text.into() }
    }

    /// Wraps the text again.
    #[must_use]
    pub fn distrust(self) -> Untrusted<String> {
        Untrusted::new(self.label, self.source, self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_label_survives_its_name_and_the_meet_is_the_less_trusted() {
        for label in Label::ALL {
            assert_eq!(label.name().parse(), Ok(label));
            assert_eq!(serde_json::to_value(label).unwrap(), label.name());
        }
        assert_eq!(Label::Creator.meet(Label::Web), Label::Web);
        assert_eq!(Label::Tool.meet(Label::Own), Label::Tool);
    }

    #[test]
    fn a_source_is_bounded_and_has_no_control_characters() {
        assert_eq!(Source::new("a\nb\u{7}c").as_str(), "abc");
        assert!(Source::new(&"ü".repeat(500)).as_str().len() <= Source::BYTES_MAX);
    }
}

//! Pure: where a text came from, carried by its type.
//!
//! A [`Label`] says who wrote a text. Whatever a tool found and whatever somebody said
//! travels as [`Labelled`], from where it came in to the record and the prompt. A label
//! must never be raised on the way.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::Names;
use crate::text::visible;

/// Author of a text, most trusted first. Its [`name`](Self::name) is the one in the database and
/// on the wire.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Names,
)]
#[serde(rename_all = "snake_case")]
pub enum Label {
    /// The creator.
    Creator,
    /// The automaton itself: its model, its memory of its own thoughts, its runtime.
    #[serde(rename = "self")]
    #[names(rename = "self")]
    Own,
    /// The output of a tool that ran on the automaton's own files.
    Tool,
    /// Another agent.
    Peer,
    /// A page or service of the net.
    Web,
}

impl Label {
    /// The less trusted of two labels: what a text made of both is worth.
    #[must_use]
    pub fn meet(self, other: Self) -> Self {
        self.max(other)
    }
}

/// The particular sender behind a label: an address, a tool, a host.
#[derive(
    Debug,
    Clone,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    derive_more::Display,
)]
#[serde(transparent)]
pub struct Source(String);

impl Source {
    /// Longest source that is kept, in bytes.
    pub const BYTES_MAX: usize = 200;

    /// A source by name. What is not seen is dropped and the length is limited,
    /// since it is shown to people and models.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let mut kept: String = visible(name).chars().filter(|c| !c.is_control()).collect();
        kept.truncate(kept.floor_char_boundary(Self::BYTES_MAX));
        Self(kept)
    }

    /// The source's name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A text with its origin, as it is stored and shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Labelled {
    /// Author.
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

    /// Returns the words by which a text is found that somebody else wrote: who it was, and of
    /// which kind. Of the creator and of the automaton itself there is too much for that to say
    /// anything, but for a name.
    #[must_use]
    pub fn origin_words(&self) -> String {
        let kind = match self.label {
            Label::Creator | Label::Own => "",
            Label::Tool => "tool",
            Label::Peer => "agent peer",
            Label::Web => "web page site",
        };
        match self.source.as_str() {
            "creator" | "agent" => kind.to_owned(),
            source => format!("{source} {kind}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_label_survives_its_name_and_the_meet_is_the_less_trusted() {
        for label in Label::ALL {
            assert_eq!(Label::by_name(label.name()), Some(label));
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

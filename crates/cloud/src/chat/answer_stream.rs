//! What is heard of an answer, whoever gives it: passed on to the recording,
//! and weighed for the bill on the way.
//!
//! It must never show the end of an answer, which comes after the charge.

use automaton_core::wire::chat::ChatUsage;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Recording;
use crate::billing::price::Metering;

/// The marker at the end of a stream.
pub(super) const DONE: &str = "[DONE]";

/// An answer as it comes.
pub(super) struct AnswerStream<'a> {
    recording: &'a Recording,
    /// Whether a piece that only has the usage is passed on.
    wants_usage: bool,
    /// What the upstream counted.
    pub(super) usage: Option<ChatUsage>,
    /// Bytes of what was generated.
    pub(super) bytes: usize,
    /// An answer in one piece.
    pub(super) document: Option<Bytes>,
}

/// What of an answer, or of a piece of one, concerns the bill.
#[derive(Deserialize)]
struct UsageChunk {
    #[serde(default)]
    choices: Vec<UsageChoice>,
    usage: Option<ChatUsage>,
}

#[derive(Deserialize)]
struct UsageChoice {
    #[serde(alias = "delta")]
    message: Option<UsageText>,
}

#[derive(Deserialize)]
struct UsageText {
    content: Option<Box<RawValue>>,
    tool_calls: Option<Box<RawValue>>,
}

impl UsageChunk {
    /// Bytes of what was generated.
    fn bytes(&self) -> usize {
        let texts = self.choices.iter().filter_map(|choice| choice.message.as_ref());
        let parts = texts.flat_map(|text| [&text.content, &text.tool_calls]);
        parts.flatten().map(|raw| raw.get().len()).sum()
    }
}

impl<'a> AnswerStream<'a> {
    pub(super) const fn new(recording: &'a Recording, wants_usage: bool) -> Self {
        Self { recording, wants_usage, usage: None, bytes: 0, document: None }
    }

    /// A stream begins, though nothing of it has come.
    pub(super) fn begin(&self) {
        self.recording.begin(Metering::Reported);
    }

    /// A piece of a stream.
    pub(super) fn event(&mut self, data: &str) {
        self.begin();
        // silent-ok: a piece that we cannot read is passed on all the same.
        let seen: Option<UsageChunk> = serde_json::from_str(data).ok();
        let only_usage =
            seen.as_ref().is_some_and(|seen| seen.choices.is_empty() && seen.usage.is_some());
        if let Some(seen) = seen {
            self.bytes += seen.bytes();
            self.usage = seen.usage.or(self.usage);
        }
        if self.wants_usage || !only_usage {
            self.recording.push(Bytes::from(format!("data: {data}\n\n")));
        }
    }

    /// A whole answer.
    ///
    /// # Errors
    /// When it is none.
    pub(super) fn document(&mut self, body: Bytes) -> Result<(), serde_json::Error> {
        let seen: UsageChunk = serde_json::from_slice(&body)?;
        (self.bytes, self.usage, self.document) = (seen.bytes(), seen.usage, Some(body));
        Ok(())
    }
}

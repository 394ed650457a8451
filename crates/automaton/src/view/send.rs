//! Views of what the creator tells a running automaton.

use automaton_core::id::MessageId;
use automaton_core::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

/// The output of `send`; with `--wait` it follows the events.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum SendOutput {
    /// A message that was stored.
    Stored(StoredMessageView),
    /// A message that was answered.
    Answered(AnsweredMessageView),
    /// A message that was not answered while the command waited.
    Unanswered(UnansweredMessageView),
}

/// A message that was stored.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct StoredMessageView {
    /// Its id.
    pub(crate) message: MessageId,
    /// True if the automaton runs.
    pub(crate) running: bool,
    /// The time at which it is read, in words.
    pub(crate) next: String,
    /// The file of the workspace that holds it, where the model is shown its ends only.
    pub(crate) file: Option<String>,
}

/// A message that was answered.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct AnsweredMessageView {
    /// Its id.
    pub(crate) message: MessageId,
    /// The file of the workspace that holds it, where the model is shown its ends only.
    pub(crate) file: Option<String>,
    /// The answer.
    pub(crate) answer: AnswerView,
}

/// An answer of the automaton.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct AnswerView {
    /// Its id.
    pub(crate) id: MessageId,
    /// Its text.
    pub(crate) text: String,
    /// Time at which it was stored, in milliseconds since 1970.
    pub(crate) at: Timestamp,
}

/// A message that was not answered while the command waited.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct UnansweredMessageView {
    /// Its id.
    pub(crate) message: MessageId,
    /// `null`.
    pub(crate) answer: (),
    /// Reason, in words.
    pub(crate) reason: String,
}

/// A wake that was asked for.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub(crate) struct WokenView {
    /// True.
    pub(crate) woken: bool,
}

/// A stop that was asked for.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub(crate) struct StoppingView {
    /// True.
    pub(crate) stopping: bool,
}

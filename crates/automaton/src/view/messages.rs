//! Views of the messages between the creator and the automaton.

use automaton_core::id::MessageId;
use automaton_core::time::Timestamp;
use automaton_core::trust::{Label, Source};
use automaton_store::{ConversationMessage, MessageStatus, OutboxMessage, Speaker};
use schemars::JsonSchema;
use serde::Serialize;

/// One message of the conversation.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct MessageView {
    /// Its id.
    pub(crate) id: MessageId,
    /// Speaker.
    pub(crate) from: SpeakerView,
    /// Origin of the text.
    pub(crate) label: Label,
    /// The particular sender.
    pub(crate) source: Source,
    /// The text.
    pub(crate) text: String,
    /// Time at which it was stored, in milliseconds since 1970.
    pub(crate) at: Timestamp,
    /// State of a message of the creator, under its older name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) standing: Option<MessageStatusView>,
    /// State of a message of the creator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<MessageStatusView>,
    /// The message that it answers, if it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reply_to: Option<MessageId>,
    /// The file of the workspace that holds the text, where the model is shown its ends only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
}

/// A side of the conversation.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SpeakerView {
    /// The creator.
    Creator,
    /// The automaton.
    Automaton,
}

impl From<Speaker> for SpeakerView {
    fn from(speaker: Speaker) -> Self {
        match speaker {
            Speaker::Creator => Self::Creator,
            Speaker::Automaton => Self::Automaton,
        }
    }
}

/// State of a message of the creator.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MessageStatusView {
    /// No turn has read it.
    Waiting,
    /// A turn reads it or has read it. The model is shown it until it is answered.
    Open,
    /// It is answered.
    Answered,
    /// The creator closed it.
    Closed,
    /// It was given up.
    Failed,
}

impl From<MessageStatus> for MessageStatusView {
    fn from(status: MessageStatus) -> Self {
        match status {
            MessageStatus::Waiting => Self::Waiting,
            MessageStatus::Open => Self::Open,
            MessageStatus::Answered => Self::Answered,
            MessageStatus::Closed => Self::Closed,
            MessageStatus::Failed => Self::Failed,
        }
    }
}

impl From<&ConversationMessage> for MessageView {
    fn from(row: &ConversationMessage) -> Self {
        let ConversationMessage { id, from, body, at, standing, reply_to, file } = row.clone();
        let status = standing.map(MessageStatusView::from);
        Self {
            id,
            from: from.into(),
            label: body.label,
            source: body.source,
            text: body.text,
            at,
            standing: status,
            status,
            reply_to,
            file,
        }
    }
}

/// A message with the id of its answer.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct MessageDetailsView {
    /// The message.
    pub(crate) message: MessageView,
    /// The message that answered it; `null` without one.
    pub(crate) answer: Option<MessageId>,
}

/// A message that was closed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct MessageClosedView {
    /// The message.
    pub(crate) message: MessageId,
    /// False if it was settled already.
    pub(crate) was_open: bool,
}

/// A message in a line of `chat`, beside the events.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum ChatOutput {
    /// An earlier message.
    Earlier(MessageView),
    /// A new message of the automaton.
    New(OutgoingMessageView),
}

/// A message of the automaton, as a conversation shows it at once.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct OutgoingMessageView {
    /// Its id.
    pub(crate) id: MessageId,
    /// Speaker.
    pub(crate) from: SpeakerView,
    /// The text.
    pub(crate) text: String,
    /// The message that it answers; `null` if it answers none.
    pub(crate) reply_to: Option<MessageId>,
    /// Time at which it was stored, in milliseconds since 1970.
    pub(crate) at: Timestamp,
}

impl From<&OutboxMessage> for OutgoingMessageView {
    fn from(row: &OutboxMessage) -> Self {
        Self {
            id: row.id,
            from: SpeakerView::Automaton,
            text: row.body.text.clone(),
            reply_to: row.reply_to,
            at: row.at,
        }
    }
}

//! The conversation with the creator: what both sides said, in one order.
//!
//! Only reads. Messages of others than the creator are no part of it.

use automaton_core::id::MessageId;
use automaton_core::message::{AnsweredBy, InboxState};
use automaton_core::time::Timestamp;
use automaton_core::trust::Labelled;
use rusqlite::{Connection, Row, params};
use serde::Serialize;

use crate::codec::{Sql, get, labelled, maybe};
use crate::error::{StoreError, TxError};
use crate::outbox::{self, OutboxMessage};
use crate::reader::Reader;
use crate::thread::{ConnectionExt, sql};

/// One message of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConversationMessage {
    /// Its id.
    pub id: MessageId,
    /// Speaker.
    pub from: Speaker,
    /// Text with its origin.
    #[serde(flatten)]
    pub body: Labelled,
    /// Time at which it was stored.
    pub at: Timestamp,
    /// State of a message of the creator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standing: Option<MessageStatus>,
    /// The message that it answers, if it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<MessageId>,
    /// The file of the workspace that holds it, where the model is shown its ends only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// A side of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// The creator.
    Creator,
    /// The automaton.
    Automaton,
}

/// State of a message of the creator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageStatus {
    /// No turn has read it.
    Waiting,
    /// A turn reads it or has, and the model is shown it until it is answered.
    Open,
    /// It is answered.
    Answered,
    /// The creator closed it.
    Closed,
    /// It was given up.
    Failed,
}

impl MessageStatus {
    const fn from_state(state: InboxState, answered_by: Option<AnsweredBy>) -> Self {
        match (answered_by, state) {
            (Some(AnsweredBy::Creator), _) => Self::Closed,
            (Some(AnsweredBy::Reply | AnsweredBy::Words), _) => Self::Answered,
            (None, InboxState::Failed) => Self::Failed,
            (None, InboxState::Received) => Self::Waiting,
            (None, InboxState::InProgress | InboxState::Processed) => Self::Open,
        }
    }
}

impl Reader {
    /// The newest messages of both sides, oldest first.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn conversation(&self, limit: u32) -> Result<Vec<ConversationMessage>, StoreError> {
        self.read("read the conversation", |connection| {
            let mut all = utterances(connection, None, limit)?;
            all.reverse();
            Ok(all)
        })
    }

    /// One message of the conversation.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn utterance(&self, id: MessageId) -> Result<Option<ConversationMessage>, StoreError> {
        self.read("read a message", |connection| Ok(utterances(connection, Some(id), 1)?.pop()))
    }

    /// Returns the answer to a message of the creator, if there is one that is still kept.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn answer_to(&self, id: MessageId) -> Result<Option<OutboxMessage>, StoreError> {
        self.read("read an answer", |connection| {
            Ok(connection.one(sql!("answer_to"), [Sql(id)], outbox::message)?)
        })
    }

    /// The number of the newest message to the creator; 0 when there is none.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn outbox_end(&self) -> Result<u64, StoreError> {
        self.read("read the outbox", |connection| {
            let newest = "SELECT coalesce(max(seq), 0) AS seq FROM outbox_messages";
            Ok(connection.one(newest, [], |row| get(row, "seq"))?.unwrap_or_default())
        })
    }
}

/// Newest first.
fn utterances(
    connection: &Connection,
    id: Option<MessageId>,
    limit: u32,
) -> Result<Vec<ConversationMessage>, TxError> {
    Ok(connection.all(sql!("conversation"), params![id.map(Sql), limit], utterance)?)
}

fn utterance(row: &Row<'_>) -> rusqlite::Result<ConversationMessage> {
    let state: Option<InboxState> = maybe(row, "state")?;
    let answered_by = maybe(row, "answered_by")?;
    Ok(ConversationMessage {
        id: get(row, "id")?,
        from: if state.is_some() { Speaker::Creator } else { Speaker::Automaton },
        body: labelled(row, "body")?,
        at: get(row, "at")?,
        standing: state.map(|state| MessageStatus::from_state(state, answered_by)),
        reply_to: maybe(row, "reply_to")?,
        file: row.get("file")?,
    })
}

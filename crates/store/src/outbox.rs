//! `outbox_messages`: what the automaton said to its creator.
//!
//! One call sends one message, however often it is repeated.

use automaton_core::id::{CallId, MessageId};
use automaton_core::message::MESSAGE_BYTES_MAX;
use automaton_core::time::Timestamp;
use automaton_core::trust::Labelled;
use rusqlite::{Connection, params};

use crate::Store;
use crate::codec::{As, get, labelled, maybe};
use crate::error::{Halt, StoreError, conflict};
use crate::thread::{Query, Tx, Write, sql};

/// A message that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxMessage {
    /// Its number in the outbox, from 1.
    pub seq: u64,
    /// Its id.
    pub id: MessageId,
    /// Who gets it.
    pub recipient: String,
    /// What it says, with its origin.
    pub body: Labelled,
    /// The message that it answers, if it says so.
    pub reply_to: Option<MessageId>,
    /// When it was stored.
    pub at: Timestamp,
}

impl Store {
    /// Stores a message to the creator. The same call again gives the same id.
    ///
    /// # Errors
    /// [`StoreError::MessageTooLong`]; [`StoreError::Unfit`] when the call
    /// sent something else before.
    pub async fn send_to_creator(
        &self,
        call: CallId,
        body: Labelled,
        reply_to: Option<MessageId>,
    ) -> Result<MessageId, StoreError> {
        let write = Write::new("send a message");
        self.write(write, move |tx| send(tx, call, &body, reply_to)).await
    }
}

fn send(
    tx: &Tx<'_>,
    call: CallId,
    body: &Labelled,
    reply_to: Option<MessageId>,
) -> Result<MessageId, Halt> {
    let bytes = body.text.len();
    if bytes > MESSAGE_BYTES_MAX {
        return Err(StoreError::MessageTooLong { bytes }.into());
    }
    let statement = "SELECT * FROM outbox_messages WHERE call = ?1";
    let sent =
        tx.one(statement, [As(call)], |row| Ok((get(row, "id")?, labelled(row, "body")?)))?;
    match sent {
        Some((id, before)) if before == *body => return Ok(id),
        Some(_) => return Err(conflict("message of the call", &call)),
        None => {}
    }
    let id: MessageId = tx.mint.id();
    let (label, source) = (As(body.label), body.source.as_str());
    tx.exec(
        sql!("outbox_insert"),
        params![As(id), As(call), body.text, label, source, reply_to.map(As), As(tx.now)],
    )?;
    Ok(id)
}

/// The messages after a number, oldest first.
pub(crate) fn since(
    connection: &Connection,
    after: u64,
    limit: u32,
) -> Result<Vec<OutboxMessage>, Halt> {
    let statement = "SELECT * FROM outbox_messages WHERE seq > ?1 ORDER BY seq LIMIT ?2";
    Ok(connection.all(statement, (As(after), limit), |row| {
        Ok(OutboxMessage {
            seq: get(row, "seq")?,
            id: get(row, "id")?,
            recipient: row.get("recipient")?,
            body: labelled(row, "body")?,
            reply_to: maybe(row, "reply_to")?,
            at: get(row, "at")?,
        })
    })?)
}

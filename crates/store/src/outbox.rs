//! `outbox_messages`: what the automaton said to its creator.
//!
//! One call, one turn that ends in words and one wake cycle that ends send one message
//! each, however often that is repeated. One that names an open message answers it.

use std::fmt::Display;

use automaton_core::id::{CallId, MessageId, TurnId};
use automaton_core::message::{AnsweredBy, MESSAGE_BYTES_MAX};
use automaton_core::time::Timestamp;
use automaton_core::trust::Labelled;
use rusqlite::{Connection, Row, params};

use crate::codec::{Sql, get, labelled, maybe};
use crate::error::{StoreError, TxError, conflict};
use crate::thread::{ConnectionExt, Tx, WriteOptions, sql};
use crate::{Store, open};

/// A message that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxMessage {
    /// Its number in the outbox, from 1.
    pub seq: u64,
    /// Its id.
    pub id: MessageId,
    /// Text with its origin.
    pub body: Labelled,
    /// The message that it answers, if it says so.
    pub reply_to: Option<MessageId>,
    /// Time at which it was stored.
    pub at: Timestamp,
}

impl Store {
    /// Stores a message to the creator, and closes the open one that it names. The same
    /// call again gives the same id.
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
        let write = WriteOptions::new("send a message");
        self.write(write, move |tx| {
            let id = send(tx, &call, &body, reply_to)?;
            if let Some(answered) = reply_to {
                open::close(tx, answered, AnsweredBy::Reply)?;
            }
            Ok(id)
        })
        .await
    }

    /// Tells the creator something, as a message: how a wake cycle ended, by its session, or
    /// what was done without one. The same cause again gives the same id.
    ///
    /// # Errors
    /// As [`Store::send_to_creator`].
    pub async fn tell_creator(
        &self,
        cause: impl Display + Send + 'static,
        body: Labelled,
    ) -> Result<MessageId, StoreError> {
        self.write(WriteOptions::new("send a message"), move |tx| send(tx, &cause, &body, None))
            .await
    }
}

/// Sends a message to the creator; the same cause again gives the same id.
pub(crate) fn send(
    tx: &Tx<'_>,
    cause: &impl Display,
    body: &Labelled,
    reply_to: Option<MessageId>,
) -> Result<MessageId, TxError> {
    let bytes = body.text.len();
    if bytes > MESSAGE_BYTES_MAX {
        return Err(StoreError::MessageTooLong { bytes, most: MESSAGE_BYTES_MAX }.into());
    }
    let statement = "SELECT * FROM outbox_messages WHERE cause = ?1";
    let cause = cause.to_string();
    let sent = tx.one(statement, [&cause], |row| Ok((get(row, "id")?, labelled(row, "body")?)))?;
    match sent {
        Some((id, before)) if before == *body => return Ok(id),
        Some(_) => return Err(conflict("message of", &cause)),
        None => {}
    }
    let id: MessageId = tx.ids.id();
    let label = Sql(body.label);
    let source = body.source.as_str();
    tx.exec(
        sql!("outbox_insert"),
        params![Sql(id), cause, body.text, label, source, reply_to.map(Sql), Sql(tx.now)],
    )?;
    Ok(id)
}

/// Note behind words that are longer than a message may be.
const CUT: &str = "\n[the rest is not in this message: `automaton turn last` shows all of it]";

/// Sends the words with which a turn ends its wake, as the answer to all that was read
/// and is still open, and gives what was sent; nothing where nothing is.
pub(crate) fn answer(
    tx: &Tx<'_>,
    turn: TurnId,
    mut body: Labelled,
) -> Result<Option<(MessageId, Labelled)>, TxError> {
    let open = open::read_by_turn(tx)?;
    let Some(newest) = open.last() else { return Ok(None) };
    if body.text.len() > MESSAGE_BYTES_MAX {
        let most = MESSAGE_BYTES_MAX - CUT.len();
        body.text.truncate(body.text.floor_char_boundary(most));
        body.text.push_str(CUT);
    }
    let sent = send(tx, &turn, &body, Some(*newest))?;
    for message in open {
        open::close(tx, message, AnsweredBy::Words)?;
    }
    Ok(Some((sent, body)))
}

/// The messages after a number, oldest first.
pub(crate) fn since(
    connection: &Connection,
    after: u64,
    limit: u32,
) -> Result<Vec<OutboxMessage>, TxError> {
    let statement = "SELECT * FROM outbox_messages WHERE seq > ?1 ORDER BY seq LIMIT ?2";
    Ok(connection.all(statement, (Sql(after), limit), message)?)
}

pub(crate) fn message(row: &Row<'_>) -> rusqlite::Result<OutboxMessage> {
    Ok(OutboxMessage {
        seq: get(row, "seq")?,
        id: get(row, "id")?,
        body: labelled(row, "body")?,
        reply_to: maybe(row, "reply_to")?,
        at: get(row, "at")?,
    })
}

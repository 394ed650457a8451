//! `inbox_messages`, once more: what the creator said and waits for an answer.
//!
//! A message of the creator is open until a message of the automaton names it, a wake ends
//! in words, or the creator closes it. Nothing else may close one, and words close only
//! what a turn has read.

use automaton_core::id::MessageId;
use automaton_core::message::{AnsweredBy, InboxState};
use automaton_core::time::Timestamp;
use rusqlite::{Connection, Row, params};

use crate::codec::{Sql, get, maybe};
use crate::error::{StoreError, TxError, missing};
use crate::thread::{ConnectionExt, Tx, WriteOptions, sql};
use crate::{Reader, Store};

/// Open messages that are read at once; of more, the newest.
pub const OPEN_MESSAGES_MAX: u32 = 100;

/// A message of the creator that nobody has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenMessage {
    /// Its id.
    pub id: MessageId,
    /// Text.
    pub text: String,
    /// Time of arrival.
    pub at: Timestamp,
    /// True if a turn has it or has read it; else it waits.
    pub seen: bool,
    /// The number of that turn, as long as it is kept.
    pub seq: Option<u64>,
    /// The file of the workspace that holds it whole, where the prompt shows its ends only.
    pub file: Option<String>,
}

impl Store {
    /// Returns the creator's unanswered messages, oldest first; of more the newest
    /// [`OPEN_MESSAGES_MAX`].
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn open_messages(&self) -> Result<Vec<OpenMessage>, StoreError> {
        self.run("read the open messages", |tx| open_at(tx, None)).await
    }

    /// The creator wants no answer any more. One that waits will not be read. Whether it
    /// was open.
    ///
    /// # Errors
    /// [`StoreError::Missing`] when there is no such message.
    pub async fn close_message(&self, id: MessageId) -> Result<bool, StoreError> {
        let write = WriteOptions::new("close a message");
        self.write(write, move |tx| {
            let known = "SELECT id FROM inbox_messages WHERE id = ?1";
            let known: Option<MessageId> = tx.one(known, [Sql(id)], |row| get(row, "id"))?;
            known.ok_or_else(|| missing("message", &id))?;
            close(tx, id, AnsweredBy::Creator)
        })
        .await
    }

    /// Drops what the creator said and a turn has read, for whoever interrupted it: nobody
    /// answers it any more. A message that no turn has read stays. What was dropped, oldest
    /// first.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn drop_read_messages(&self) -> Result<Vec<(MessageId, String)>, StoreError> {
        let write = WriteOptions::new("drop the interrupted messages");
        self.write(write, move |tx| {
            let read = |row: &Row<'_>| Ok((get(row, "id")?, row.get("body")?));
            let mut dropped: Vec<(MessageId, String)> =
                tx.all(sql!("open_drop"), [Sql(tx.now)], read)?;
            dropped.sort_by_key(|(id, _)| *id);
            Ok(dropped)
        })
        .await
    }

    /// From now on the prompt shows the ends of a message, and the file that holds it.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn file_message(&self, id: MessageId, file: String) -> Result<(), StoreError> {
        let statement = "UPDATE inbox_messages SET file = ?2 WHERE id = ?1 AND file IS NULL";
        let write = WriteOptions::new("name the file of a message");
        self.write(write, move |tx| {
            tx.exec(statement, params![Sql(id), file])?;
            Ok(())
        })
        .await
    }
}

impl Reader {
    /// Returns the creator's messages that were unanswered at a time, or are now; oldest first,
    /// of more the newest [`OPEN_MESSAGES_MAX`].
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn open_messages(&self, then: Option<Timestamp>) -> Result<Vec<OpenMessage>, StoreError> {
        self.read("read the open messages", |connection| open_at(connection, then))
    }
}

pub(crate) fn open_at(
    connection: &Connection,
    then: Option<Timestamp>,
) -> Result<Vec<OpenMessage>, TxError> {
    let read = |row: &Row<'_>| {
        Ok(OpenMessage {
            id: get(row, "id")?,
            text: row.get("body")?,
            at: get(row, "received_at")?,
            seen: get::<InboxState>(row, "state")? != InboxState::Received,
            seq: maybe(row, "turn")?,
            file: row.get("file")?,
        })
    };
    let mut open = match then {
        Some(then) => {
            connection.all(sql!("open_messages"), params![Sql(then), OPEN_MESSAGES_MAX], read)?
        }
        None => connection.all(sql!("open_now"), [OPEN_MESSAGES_MAX], read)?,
    };
    open.reverse();
    Ok(open)
}

/// Closes a message; whether it was open.
pub(crate) fn close(tx: &Tx<'_>, id: MessageId, by: AnsweredBy) -> Result<bool, TxError> {
    Ok(tx.exec(sql!("open_close"), params![Sql(id), Sql(by), Sql(tx.now)])? > 0)
}

/// The messages that a committed turn has read and nobody has answered, oldest first; of
/// more than a prompt shows, the newest.
pub(crate) fn read_by_turn(tx: &Tx<'_>) -> Result<Vec<MessageId>, TxError> {
    Ok(tx.all(sql!("open_seen"), [OPEN_MESSAGES_MAX], |row| get(row, "id"))?)
}

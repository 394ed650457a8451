//! `digests`, and some columns of `automaton`: how much of the past the prompt shows.
//!
//! Turns before the first place are not shown, but summed up; those before the second are
//! shown with their results shortened, those before the third with their arguments
//! shortened. All only move forwards, and what is cut is summed up in the same
//! transaction, so that nothing is ever in neither.

use automaton_core::id::TurnId;
use automaton_core::record::SessionSummary;
use automaton_core::trust::Label;
use rusqlite::{Connection, params};

use crate::codec::{Sql, get};
use crate::error::{StoreError, TxError};
use crate::thread::{ConnectionExt, WriteOptions, sql};
use crate::{Reader, Store, summaries};

/// Sums that are kept, so that prompts of the record can be made again.
const DIGESTS_KEPT: u32 = 20;

/// Beginning of the history in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HistoryPosition {
    /// The number of the first turn that is shown.
    pub from: u64,
    /// The number of the first turn that is shown with its results whole.
    pub whole_from: u64,
    /// The number of the first turn that is shown with its arguments whole, too. One before
    /// `whole_from` means the same as that.
    pub arguments_from: u64,
    /// True if the model was told, since the last move, that the beginning will move.
    pub told: bool,
}

/// Summary of the turns before a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestRow {
    /// The number of the first turn that is not in it.
    pub upto: u64,
    /// The least trusted label of what it was made of.
    pub label: Label,
    /// The sum as JSON.
    pub body: String,
    /// Newest summaries by a model that are part of it.
    pub summaries: Vec<SessionSummary>,
}

impl Store {
    /// Returns the beginning of the prompt's history.
    ///
    /// # Errors
    /// [`StoreError::Unborn`] before the birth.
    pub async fn place(&self) -> Result<HistoryPosition, StoreError> {
        self.run("read where the history begins", |tx| place(tx)).await
    }

    /// The oldest turn that the prompt may show; none where there is none yet.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn first_shown(&self) -> Result<Option<TurnId>, StoreError> {
        self.run("read which turn is the first to be shown", |tx| {
            let statement = "SELECT id FROM turns \
                 WHERE seq >= (SELECT history_from FROM automaton) ORDER BY seq LIMIT 1";
            Ok(tx.one(statement, [], |row| get(row, "id"))?)
        })
        .await
    }

    /// The sum of the turns before the history.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn digest(&self) -> Result<Option<DigestRow>, StoreError> {
        self.run("read the sum of the older turns", |tx| digest(tx, None)).await
    }

    /// Moves the beginning of the history forwards, never back, with the sum of what is
    /// not shown any more.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn move_history(
        &self,
        place: HistoryPosition,
        digest: Option<DigestRow>,
    ) -> Result<(), StoreError> {
        self.write(WriteOptions::new("move the history"), move |tx| {
            let HistoryPosition { from, whole_from, arguments_from, told } = place;
            tx.exec(
                sql!("history_move"),
                params![Sql(from), Sql(whole_from), Sql(arguments_from), told],
            )?;
            if let Some(DigestRow { upto, label, body, .. }) = &digest {
                let params = params![Sql(*upto), body, Sql(*label), Sql(tx.now)];
                tx.exec(sql!("digest_insert"), params)?;
                let old = "DELETE FROM digests WHERE upto NOT IN \
                     (SELECT upto FROM digests ORDER BY upto DESC LIMIT ?1)";
                tx.exec(old, [DIGESTS_KEPT])?;
            }
            Ok(())
        })
        .await
    }
}

impl Reader {
    /// Returns the beginning of the prompt's history.
    ///
    /// # Errors
    /// [`StoreError::Unborn`] before the birth.
    pub fn place(&self) -> Result<HistoryPosition, StoreError> {
        self.read("read where the history begins", place)
    }

    /// The sum of the turns before one, or before the history; the newest at that time.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn digest(&self, before: Option<u64>) -> Result<Option<DigestRow>, StoreError> {
        self.read("read the sum of the older turns", |connection| digest(connection, before))
    }
}

pub(crate) fn place(connection: &Connection) -> Result<HistoryPosition, TxError> {
    let statement =
        "SELECT history_from, shortened_until, arguments_until, move_told FROM automaton";
    let found = connection.one(statement, [], |row| {
        Ok(HistoryPosition {
            from: get(row, "history_from")?,
            whole_from: get(row, "shortened_until")?,
            arguments_from: get(row, "arguments_until")?,
            told: row.get("move_told")?,
        })
    })?;
    found.ok_or_else(|| StoreError::Unborn.into())
}

pub(crate) fn digest(
    connection: &Connection,
    before: Option<u64>,
) -> Result<Option<DigestRow>, TxError> {
    let statement = "SELECT upto, label, body FROM digests WHERE upto <= ?1 \
         ORDER BY upto DESC LIMIT 1";
    let found = connection.one(statement, [Sql(before.unwrap_or(u64::MAX))], |row| {
        let upto = get(row, "upto")?;
        let label = get(row, "label")?;
        Ok(DigestRow { upto, label, body: row.get("body")?, summaries: Vec::new() })
    })?;
    let Some(found) = found else { return Ok(None) };
    Ok(Some(DigestRow { summaries: summaries::newest(connection, found.upto)?, ..found }))
}

//! `wake_events`: why the automaton should wake.
//!
//! Pending events are a set: an event that says the same as a pending one adds
//! nothing, but that what the creator says again is news. Each event is consumed by the session that was opened for it, in the
//! transaction that opens it, and pending once more when that session committed no turn.

use automaton_core::id::SessionId;
use automaton_core::record::{WakeCause, WakeSource};
use automaton_core::time::Timestamp;
use automaton_core::trust::Label;
use rusqlite::{Connection, params};

use crate::Store;
use crate::codec::{Sql, get, labelled};
use crate::error::{StoreError, TxError};
use crate::thread::{ConnectionExt, Tx, WriteOptions, sql};
use crate::{unattended_usage, vitals};

/// Different events that may be pending.
pub const WAKES_PENDING_MAX: u32 = 1000;

impl Store {
    /// Adds a cause to wake. What the creator says again counts from now on, and who is
    /// woken by the creator need not live cheaply any more.
    ///
    /// # Errors
    /// [`StoreError::Full`] when [`WAKES_PENDING_MAX`] different ones are pending.
    pub async fn push_wake(&self, cause: WakeCause) -> Result<(), StoreError> {
        self.write(WriteOptions::new("store a wake event"), move |tx| push(tx, &cause)).await
    }

    /// Returns true if a cause to wake came since the present sleep began, or the creator
    /// repeated one.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn has_news(&self) -> Result<bool, StoreError> {
        self.run("look for news", |tx| {
            Ok(tx.one(sql!("wake_news"), [], |row| row.get("news"))?.unwrap_or(false))
        })
        .await
    }

    /// The causes that no session has consumed, oldest first, with their times.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn pending_wakes(&self) -> Result<Vec<(Timestamp, WakeCause)>, StoreError> {
        self.run("read the wake events", |tx| pending(tx)).await
    }
}

pub(crate) fn push(tx: &Tx<'_>, cause: &WakeCause) -> Result<(), TxError> {
    let WakeCause { source, reason } = cause;
    if *source == WakeSource::Manual || reason.label == Label::Creator {
        unattended_usage::on_creator_call(tx)?;
    }
    if *source == WakeSource::Manual {
        vitals::leave_low_compute(tx)?;
    }
    let label = Sql(reason.label);
    let sender = reason.source.as_str();
    let params = params![Sql(*source), reason.text, label, sender, Sql(tx.now)];
    if tx.exec(sql!("wake_again"), params)? > 0 {
        return Ok(());
    }
    let statement = "SELECT count(*) AS count FROM wake_events WHERE session IS NULL";
    let count: u32 = tx.one(statement, [], |row| get(row, "count"))?.unwrap_or(0);
    if count >= WAKES_PENDING_MAX {
        return Err(StoreError::Full { noun: "wake events", limit: WAKES_PENDING_MAX }.into());
    }
    insert(tx, cause, None)
}

/// Consumes every pending event that says what one of the causes says. A cause
/// that was never pushed, such as a timer, is recorded as consumed.
pub(crate) fn consume(
    tx: &Tx<'_>,
    causes: &[WakeCause],
    session: SessionId,
) -> Result<(), TxError> {
    for cause in causes {
        let WakeCause { source, reason } = cause;
        let label = Sql(reason.label);
        let sender = reason.source.as_str();
        let consumed = tx.exec(
            sql!("wake_consume"),
            params![Sql(*source), reason.text, label, sender, Sql(session), Sql(tx.now)],
        )?;
        if consumed == 0 {
            insert(tx, cause, Some(session))?;
        }
    }
    Ok(())
}

/// Consumes the events of messages once none is left waiting: a message that a
/// turn claimed while the automaton was awake is nothing to wake for again.
pub(crate) fn consume_answered(tx: &Tx<'_>, session: SessionId) -> Result<(), TxError> {
    tx.exec(sql!("wake_consume_answered"), params![Sql(session), Sql(tx.now)])?;
    Ok(())
}

pub(crate) fn pending(connection: &Connection) -> Result<Vec<(Timestamp, WakeCause)>, TxError> {
    let statement = "SELECT * FROM wake_events WHERE session IS NULL ORDER BY seq";
    Ok(connection.all(statement, [], |row| {
        let cause = WakeCause { source: get(row, "cause")?, reason: labelled(row, "reason")? };
        Ok((get(row, "at")?, cause))
    })?)
}

/// Marks what is pending as older than the sleep that begins now.
pub(crate) fn begin_sleep(tx: &Tx<'_>) -> Result<(), TxError> {
    tx.exec(sql!("wake_waited"), [])?;
    Ok(())
}

/// Adds an event, as consumed when there is a session.
fn insert(tx: &Tx<'_>, cause: &WakeCause, session: Option<SessionId>) -> Result<(), TxError> {
    let WakeCause { source, reason } = cause;
    let label = Sql(reason.label);
    let sender = reason.source.as_str();
    let (session, at) = (session.map(Sql), session.map(|_| Sql(tx.now)));
    tx.exec(
        sql!("wake_insert"),
        params![Sql(*source), reason.text, label, sender, Sql(tx.now), session, at],
    )?;
    Ok(())
}

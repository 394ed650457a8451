//! `sessions`: one row a wake cycle, from the event that woke to the reason to stop.
//!
//! At most one session is open. Opening consumes the wake events and ends the
//! sleep, closing stores the next sleep: each in one transaction with the change
//! of state, so a crash finds the automaton either awake or asleep.

use automaton_core::faults::FaultPoint;
use automaton_core::id::{SessionId, TurnId};
use automaton_core::record::{SleepState, StopReason, WakeCause};
use automaton_core::state::AgentState;
use automaton_core::time::Timestamp;
use rusqlite::{Connection, params};

use crate::codec::{Sql, get, maybe};
use crate::error::{StoreError, TxError, conflict, missing, unfit};
use crate::thread::{ConnectionExt, Tx, WriteOptions, sql};
use crate::{Store, hibernation, life, unattended_usage, wakes};

/// A wake cycle that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedSession {
    /// Its id.
    pub id: SessionId,
    /// Reason for the end.
    pub reason: StopReason,
    /// Further note for the next prompt, in the runtime's words.
    pub note: Option<String>,
    /// Time of the end.
    pub ended_at: Timestamp,
    /// Turns it committed.
    pub turns: u32,
}

impl Store {
    /// Opens a session: consumes every pending wake event equal to one of the
    /// causes, ends the sleep or the hibernation, and makes the state `waking`. The dead
    /// are not woken: whoever funds them changes the state first.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] while another is open, [`StoreError::IllegalTransition`].
    pub async fn open_session(&self, causes: Vec<WakeCause>) -> Result<SessionId, StoreError> {
        let write = WriteOptions::new("open a wake cycle").reaches(FaultPoint::SessionOpened);
        self.write(write, move |tx| open(tx, &causes)).await
    }

    /// Closes a session. What one that committed no turn was woken for is pending
    /// again, since no turn was told of it; not so a call of the creator that was interrupted.
    /// With a sleep, that is stored and the state
    /// becomes `sleeping`; without one the state stays, as when the process is stopped.
    /// With [`StopReason::StopLoss`] it hibernates, for the reason in the note. Closing
    /// again for the same reason changes nothing.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] while a turn is open or judged, or when it was closed
    /// for another reason.
    pub async fn close_session(
        &self,
        session: SessionId,
        reason: StopReason,
        sleep: Option<SleepState>,
        note: Option<String>,
    ) -> Result<(), StoreError> {
        let write = WriteOptions::new("close the wake cycle").reaches(FaultPoint::SleepStored);
        let end = SessionEnd { reason, sleep, note };
        self.write(write, move |tx| close(tx, session, &end)).await
    }

    /// The session that ended last.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn last_session(&self) -> Result<Option<ClosedSession>, StoreError> {
        self.run("read the last wake cycle", |tx| last(tx)).await
    }
}

/// End of a session.
pub(crate) struct SessionEnd {
    pub(crate) reason: StopReason,
    pub(crate) sleep: Option<SleepState>,
    pub(crate) note: Option<String>,
}

fn open(tx: &Tx<'_>, causes: &[WakeCause]) -> Result<SessionId, TxError> {
    if let Some(session) = open_one(tx)? {
        return Err(unfit("wake cycle", &session, "is still open"));
    }
    match life::state(tx)? {
        AgentState::Waking => {}
        from @ AgentState::Dead => {
            return Err(StoreError::IllegalTransition { from, to: AgentState::Waking }.into());
        }
        from => {
            if from == AgentState::Hibernating {
                hibernation::end(tx)?;
            }
            life::transition(tx, from, AgentState::Waking, "a wake cycle begins")?;
        }
    }
    let session: SessionId = tx.ids.id();
    let insert = "INSERT INTO sessions (id, opened_at) VALUES (?1, ?2)";
    tx.exec(insert, params![Sql(session), Sql(tx.now)])?;
    wakes::consume(tx, causes, session)?;
    life::set_sleep(tx, None)?;
    Ok(session)
}

pub(crate) fn close(tx: &Tx<'_>, session: SessionId, end: &SessionEnd) -> Result<(), TxError> {
    if let Some(reason) = ended(tx, session)? {
        let same = reason == end.reason;
        return if same { Ok(()) } else { Err(conflict("wake cycle", &session)) };
    }
    let unfinished: Option<TurnId> =
        tx.one(sql!("session_unfinished_turn"), [Sql(session)], |row| get(row, "id"))?;
    if let Some(turn) = unfinished {
        return Err(unfit("turn", &turn, "is not finished"));
    }
    tx.exec(sql!("session_close"), params![Sql(session), Sql(tx.now), Sql(end.reason), end.note])?;
    tx.exec(sql!("wake_give_back"), [Sql(session)])?;
    if end.reason == StopReason::Envelope {
        unattended_usage::on_rest(tx)?;
    }
    let hibernates = end.reason == StopReason::StopLoss;
    if end.sleep.is_none() && !hibernates {
        return Ok(());
    }
    life::set_sleep(tx, end.sleep.filter(|_| !hibernates))?;
    wakes::begin_sleep(tx)?;
    let from = life::state(tx)?;
    life::transition(tx, from, AgentState::Sleeping, end.reason.sentence())?;
    if hibernates {
        let reason = end.note.as_deref().unwrap_or(end.reason.sentence());
        hibernation::begin(tx, reason)?;
        life::transition(tx, AgentState::Sleeping, AgentState::Hibernating, reason)?;
    }
    Ok(())
}

/// The session that is open, if any.
pub(crate) fn open_one(connection: &Connection) -> Result<Option<SessionId>, TxError> {
    let statement = "SELECT id FROM sessions WHERE ended_at IS NULL";
    Ok(connection.one(statement, [], |row| get(row, "id"))?)
}

/// Returns the reason for the end of a session; `None` while it is open.
pub(crate) fn ended(tx: &Tx<'_>, session: SessionId) -> Result<Option<StopReason>, TxError> {
    let statement = "SELECT reason FROM sessions WHERE id = ?1";
    let found = tx.one(statement, [Sql(session)], |row| maybe(row, "reason"))?;
    found.ok_or_else(|| missing("wake cycle", &session))
}

pub(crate) fn last(connection: &Connection) -> Result<Option<ClosedSession>, TxError> {
    let statement = "SELECT * FROM sessions WHERE ended_at IS NOT NULL ORDER BY seq DESC LIMIT 1";
    Ok(connection.one(statement, [], |row| {
        Ok(ClosedSession {
            id: get(row, "id")?,
            reason: get(row, "reason")?,
            note: row.get("note")?,
            ended_at: get(row, "ended_at")?,
            turns: get(row, "turns")?,
        })
    })?)
}

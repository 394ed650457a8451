//! `inbox_messages`: what others said, and which turn answers it.
//!
//! The states are those of [`InboxState`]. A message is claimed by a turn in the
//! transaction that opens the turn, and processed in the one that commits it. A
//! claim is stale when its turn was abandoned, or is still open when the lease
//! ends; such a turn is abandoned with its claims, so that what it may still say
//! finds no turn. A judged turn keeps its claims: it will be committed, now or by
//! recovery. A message must never be lost, and never answered by two turns.

use automaton_core::faults::FaultPoint;
use automaton_core::id::{MessageId, TurnId};
use automaton_core::message::{ATTEMPTS_MAX, InboxState, ReceivedMessage, message_bytes_max};
use automaton_core::record::{WakeCause, WakeSource};
use automaton_core::time::{Span, Timestamp};
use automaton_core::trust::{Label, Labelled};
use rusqlite::{Connection, params};
use serde::Serialize;

use crate::codec::{Sql, get, labelled};
use crate::error::{StoreError, TxError};
use crate::thread::{CommitDurability, ConnectionExt, Tx, WriteOptions, sql};
use crate::turns::FailureCause;
use crate::{Store, wakes};

/// Messages that may wait for an answer.
pub const INBOX_WAITING_MAX: u32 = 1000;

/// Claims of a message that may end with the death of the process. They are not
/// the message's failures, but one that always kills must not do so for ever.
pub const CRASHES_MAX: u32 = 10;

/// Time for which a turn may wait for its model before its claims are stale.
const CLAIM_LEASE: Span = Span::from_secs(3600);

/// Which messages a turn claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimOptions {
    /// Most messages.
    pub most: u32,
    /// Those of one label; without one, all.
    pub only: Option<Label>,
}

/// Messages by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct InboxCounts {
    /// Waiting.
    pub received: u64,
    /// Claimed by a turn.
    pub in_progress: u64,
    /// Answered.
    pub processed: u64,
    /// Given up.
    pub failed: u64,
}

impl Store {
    /// Stores a message and the event that wakes for it; both survive a power
    /// failure once this returns. `dedup` (at most 200 bytes) names a message
    /// across deliveries: one that is known gives the first one's id, and
    /// nothing is stored.
    ///
    /// # Errors
    /// [`StoreError::MessageTooLong`], or [`StoreError::Full`] when
    /// [`INBOX_WAITING_MAX`] messages wait.
    pub async fn receive(
        &self,
        body: Labelled,
        dedup: Option<&str>,
    ) -> Result<MessageId, StoreError> {
        let dedup = dedup.map(str::to_owned);
        let write = WriteOptions::new("store a message").sync(CommitDurability::Machine);
        let work = move |tx: &Tx<'_>| receive(tx, &body, dedup.as_deref());
        self.write(write.reaches(FaultPoint::MessageReceived), work).await
    }

    /// Label of the messages to claim; `None` claims all.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn message_body(&self, id: MessageId) -> Result<Option<Labelled>, StoreError> {
        self.run("read a message", move |tx| {
            let body = "SELECT body, label, source FROM inbox_messages WHERE id = ?1";
            Ok(tx.one(body, [Sql(id)], |row| labelled(row, "body"))?)
        })
        .await
    }

    /// Returns the number of messages in each state.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn inbox_counts(&self) -> Result<InboxCounts, StoreError> {
        self.run("count the messages", |tx| counts(tx)).await
    }

    /// Returns the number of waiting messages: those of one label, or all.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn messages_waiting(&self, only: Option<Label>) -> Result<u64, StoreError> {
        self.run("count the messages", move |tx| {
            let waiting = "SELECT count(*) AS count FROM inbox_messages \
                           WHERE state = 'received' AND (?1 IS NULL OR label = ?1)";
            let count = tx.one(waiting, [only.map(Sql)], |row| get(row, "count"))?;
            Ok(count.unwrap_or_default())
        })
        .await
    }

    /// Returns the number of waiting messages that no turn has read.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn messages_unread(&self) -> Result<u64, StoreError> {
        self.run("count the unread messages", |tx| {
            let unread = "SELECT count(*) AS count FROM inbox_messages \
                          WHERE state = 'received' AND claims = 0";
            Ok(tx.one(unread, [], |row| get(row, "count"))?.unwrap_or_default())
        })
        .await
    }
}

fn receive(tx: &Tx<'_>, body: &Labelled, dedup: Option<&str>) -> Result<MessageId, TxError> {
    let bytes = body.text.len();
    let most = message_bytes_max(body.label);
    if bytes > most {
        return Err(StoreError::MessageTooLong { bytes, most }.into());
    }
    let statement = "SELECT id FROM inbox_messages WHERE dedup = ?1";
    if let Some(known) = tx.one(statement, [dedup], |row| get(row, "id"))? {
        return Ok(known);
    }
    let waiting: u32 = tx.one(sql!("inbox_waiting"), [], |row| get(row, "count"))?.unwrap_or(0);
    if waiting >= INBOX_WAITING_MAX {
        return Err(StoreError::Full { noun: "waiting messages", limit: INBOX_WAITING_MAX }.into());
    }
    let id: MessageId = tx.ids.id();
    let label = Sql(body.label);
    let source = body.source.as_str();
    tx.exec(sql!("inbox_insert"), params![Sql(id), dedup, body.text, label, source, Sql(tx.now)])?;
    let reason = Labelled::new(body.label, source, "A message is waiting.");
    match wakes::push(tx, &WakeCause { source: WakeSource::Inbox, reason }) {
        // So many events are pending that the automaton wakes anyway.
        Err(TxError::Refused(StoreError::Full { .. })) => {}
        pushed => pushed?,
    }
    Ok(id)
}

/// Claims the oldest waiting messages for the turn of a number.
pub(crate) fn claim(
    tx: &Tx<'_>,
    turn: u64,
    claims: ClaimOptions,
) -> Result<Vec<ReceivedMessage>, TxError> {
    let lease_until = Sql(tx.now.after(CLAIM_LEASE));
    let ClaimOptions { most, only } = claims;
    let messages = tx.all(sql!("inbox_oldest"), params![most, only.map(Sql)], |row| {
        Ok(ReceivedMessage {
            id: get(row, "id")?,
            body: labelled(row, "body")?,
            at: get(row, "received_at")?,
            attempt: get::<u32>(row, "claims")?.saturating_add(1),
            file: row.get("file")?,
        })
    })?;
    for message in &messages {
        tx.exec(sql!("inbox_claim"), params![Sql(message.id), Sql(turn), lease_until])?;
    }
    Ok(messages)
}

/// Turns whose claims are stale.
pub(crate) fn stale_claimers(tx: &Tx<'_>) -> Result<Vec<TurnId>, TxError> {
    Ok(tx.all(sql!("inbox_stale_claimers"), [Sql(tx.now)], |row| get(row, "turn"))?)
}

/// Marks what a turn has claimed as answered by it.
pub(crate) fn process(tx: &Tx<'_>, turn: TurnId) -> Result<(), TxError> {
    tx.exec(sql!("inbox_process"), params![Sql(turn), Sql(tx.now)])?;
    Ok(())
}

/// Outcome for the messages of a turn.
#[derive(Debug, Default)]
pub(crate) struct RedeliveryOutcome {
    /// Messages that wait again.
    pub(crate) waiting: u32,
    /// Which were given up.
    pub(crate) given_up: Vec<MessageId>,
}

/// Gives the claimed messages of a turn back, or up.
pub(crate) fn give_back(
    tx: &Tx<'_>,
    turn: TurnId,
    why: FailureCause,
) -> Result<RedeliveryOutcome, TxError> {
    let mut returned = RedeliveryOutcome::default();
    let claimed = tx.all(sql!("inbox_claimed"), [Sql(turn)], |row| {
        Ok((get(row, "id")?, get::<u32>(row, "attempts")?, get::<u32>(row, "crashes")?))
    })?;
    for (id, attempts, crashes) in claimed {
        let attempts = attempts.saturating_add(u32::from(why == FailureCause::Message(id)));
        let crashes = crashes.saturating_add(u32::from(why == FailureCause::Crash));
        let next = after_failure(attempts, crashes);
        let ended_at = (next == InboxState::Failed).then_some(Sql(tx.now));
        let params = params![Sql(id), Sql(next), attempts, crashes, ended_at];
        tx.exec(sql!("inbox_give_back"), params)?;
        if next == InboxState::Failed {
            returned.given_up.push(id);
        } else {
            returned.waiting += 1;
        }
    }
    Ok(returned)
}

/// The state of a claimed message that was not answered.
fn after_failure(attempts: u32, crashes: u32) -> InboxState {
    if attempts >= ATTEMPTS_MAX || crashes >= CRASHES_MAX {
        InboxState::Failed
    } else {
        InboxState::Received
    }
}

pub(crate) fn counts(connection: &Connection) -> Result<InboxCounts, TxError> {
    let mut counts = InboxCounts::default();
    let rows = connection.all(sql!("inbox_counts"), [], |row| {
        Ok((get::<InboxState>(row, "state")?, get::<u64>(row, "count")?))
    })?;
    for (state, count) in rows {
        match state {
            InboxState::Received => counts.received = count,
            InboxState::InProgress => counts.in_progress = count,
            InboxState::Processed => counts.processed = count,
            InboxState::Failed => counts.failed = count,
        }
    }
    Ok(counts)
}

pub(crate) fn waiting(
    connection: &Connection,
    limit: u32,
) -> Result<Vec<(MessageId, Timestamp, Labelled)>, TxError> {
    Ok(connection.all(sql!("inbox_oldest"), params![limit, None::<&str>], |row| {
        Ok((get(row, "id")?, get(row, "received_at")?, labelled(row, "body")?))
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_one_that_the_table_of_states_knows() {
        assert!(InboxState::Received.may_become(InboxState::InProgress), "claim");
        assert!(InboxState::InProgress.may_become(InboxState::Processed), "process");
        for attempts in 0..=ATTEMPTS_MAX {
            for crashes in 0..=CRASHES_MAX {
                let next = after_failure(attempts, crashes);
                assert!(InboxState::InProgress.may_become(next), "{attempts} {crashes}");
                let spent = attempts == ATTEMPTS_MAX || crashes == CRASHES_MAX;
                assert_eq!(next == InboxState::Failed, spent, "{attempts} {crashes}");
            }
        }
    }
}

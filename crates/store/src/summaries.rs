//! `session_summaries`: what turns came to that no prompt shows any more, in a model's words.
//!
//! Each turn is summed up once, in its order, and what that cost is booked with it. A summary is
//! an event of the memory, too, so that it is found when it has no room in a prompt any more. It
//! must never be worth more than the least trusted text of what it sums up.

use automaton_core::id::{SessionId, TurnId};
use automaton_core::memory::{MemoryTier, NewMemory};
use automaton_core::record::{SessionSummary, TurnRecord, Usage};
use automaton_core::trust::{Label, Labelled};
use rusqlite::{Connection, params};

use crate::codec::{Sql, get};
use crate::costs::{self, CostReservation};
use crate::error::{StoreError, TxError};
use crate::thread::{ConnectionExt, WriteOptions, sql};
use crate::{Store, history, memory};

/// Summaries that are kept here; what was in older ones is in the memory.
const SUMMARIES_KEPT: u32 = 200;

/// Turns before the history that are looked at: who has long lived without summaries does not
/// have its whole life summed up.
const TURNS_BACK: u32 = 200;

/// The newest summaries that a prompt may show.
const SHOWN_MAX: u32 = 8;

/// Importance of a summary among the events, in percent.
const STRENGTH: u8 = 85;

/// Turns that no prompt shows and nothing sums up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnsummarizedTurns {
    /// The oldest of them, oldest first.
    pub turns: Vec<TurnRecord>,
    /// End of the summary before them, and the lowest label of its wake cycle.
    pub before: Option<(SessionId, Label)>,
}

/// Summary by a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSummary {
    /// The summary; its text is empty where the model's was of no use.
    pub summary: SessionSummary,
    /// The last turn that is in it, and its wake cycle.
    pub last: (SessionId, TurnId),
    /// Tokens of the turns as the model read them, as estimated.
    pub tokens_before: u32,
    /// Tokens of the text, as estimated.
    pub tokens_after: u32,
    /// Usage of the answer.
    pub usage: Usage,
}

impl Store {
    /// The oldest turns that no prompt shows and nothing sums up, at most so many.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn unsummarized(&self, most: u32) -> Result<UnsummarizedTurns, StoreError> {
        self.run("read the turns that are to be summed up", move |tx| {
            let turns = history::turns(tx, sql!("summary_turns"), [TURNS_BACK, most])?;
            let newest = "SELECT session, label FROM session_summaries ORDER BY upto DESC LIMIT 1";
            let before =
                tx.one(newest, [], |row| Ok((get(row, "session")?, get(row, "label")?)))?;
            Ok(UnsummarizedTurns { turns, before })
        })
        .await
    }

    /// Keeps a summary, remembers it as an event, and books what it cost.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn keep_summary(
        &self,
        asked: Option<CostReservation>,
        new: NewSummary,
    ) -> Result<(), StoreError> {
        self.write(WriteOptions::new("keep a summary"), move |tx| {
            let NewSummary { summary, last: (session, turn), usage, .. } = &new;
            let SessionSummary { from, upto, label, text } = summary;
            costs::settle(tx, asked.as_ref(), *turn, usage)?;
            let before = new.tokens_before;
            let after = new.tokens_after;
            let params = params![
                Sql(*upto),
                Sql(*from),
                Sql(*session),
                Sql(*label),
                text,
                usage.model,
                before,
                after,
                Sql(usage.cost),
                Sql(tx.now)
            ];
            tx.exec(sql!("summary_insert"), params)?;
            tx.exec(sql!("summaries_prune"), [SUMMARIES_KEPT])?;
            if text.is_empty() {
                return Ok(());
            }
            let source = format!("turns {from} to {}", upto.saturating_sub(1));
            let event = NewMemory {
                tier: MemoryTier::Episodic,
                kind: "summary".to_owned(),
                name: String::new(),
                body: Labelled::new(label.meet(Label::Own), &source, text.clone()),
                strength: STRENGTH,
                turn: Some(*turn),
                lasts: None,
            };
            memory::remember(tx, &event)?;
            Ok(())
        })
        .await
    }
}

/// The newest summaries of turns before one, oldest first.
pub(crate) fn newest(connection: &Connection, upto: u64) -> Result<Vec<SessionSummary>, TxError> {
    let mut found =
        connection.all(sql!("summaries_newest"), params![Sql(upto), SHOWN_MAX], |row| {
            Ok(SessionSummary {
                from: get(row, "from_turn")?,
                upto: get(row, "upto")?,
                label: get(row, "label")?,
                text: row.get("body")?,
            })
        })?;
    found.reverse();
    Ok(found)
}

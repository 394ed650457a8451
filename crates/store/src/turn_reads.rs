//! Reads for a turn in one transaction: the state of the wake with the end of the turn before,
//! and the input of prompt and judgement with the opening of the turn.
//!
//! Each read is a part that its own module has. What a turn read must never be used for the
//! next one.

use automaton_core::faults::FaultPoint;
use automaton_core::id::{MessageId, SessionId, TurnId};
use automaton_core::inference_budget::InferenceSpend;
use automaton_core::memory::{MemoryItem, MemoryMatches, MemoryQuery};
use automaton_core::pnl::{Losses, UnattendedUsage};
use automaton_core::record::{TurnInput, TurnRecord};
use automaton_core::soul::SoulVersion;
use automaton_core::state::AgentState;
use automaton_core::time::{DAY, Timestamp};
use automaton_core::trust::Labelled;
use automaton_core::vitals::Vitals;
use rusqlite::Connection;

use crate::error::{StoreError, TxError};
use crate::inbox::ClaimOptions;
use crate::thread::{Tx, WriteOptions};
use crate::{
    Approval, DigestRow, HistoryPosition, OpenMessage, RateLimit, Store, approvals, history,
    history_position, life, memory, open, origins, pnl, rates, soul, turns, unattended_usage,
    vitals,
};

/// Sums of a wake that are read besides its life, since sums over the ledger take time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WakeQuery {
    /// True to read the cost of model calls.
    pub costs: bool,
    /// True to read the losses.
    pub losses: bool,
}

/// State of a wake before a turn. Sums that were not requested are zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WakeSnapshot {
    /// True if the creator caused it.
    pub creators: bool,
    /// State of the automaton.
    pub state: AgentState,
    /// Its means.
    pub vitals: Vitals,
    /// Model calls since the creator last called.
    pub unattended: UnattendedUsage,
    /// Cost of model calls.
    pub spend: InferenceSpend,
    /// Losses since losses count.
    pub losses: Losses,
}

/// Input of a turn.
#[derive(Debug, Clone)]
pub struct TurnRequest {
    /// Its wake cycle.
    pub session: SessionId,
    /// Texts besides its messages.
    pub told: Vec<Labelled>,
    /// Which messages it claims, where no approved call is to be made first.
    pub claims: ClaimOptions,
    /// The number from which turns of the history are not known yet.
    pub history_from: u64,
    /// Messages to claim, if no approved call comes first.
    pub turns_max: u32,
    /// By what the memory is asked, for these inputs and open messages.
    pub recall: fn(&[TurnInput], &[OpenMessage]) -> MemoryQuery,
    /// The query whose matches are known; it is not asked again.
    pub recalled: Option<MemoryQuery>,
    /// Most turns of it that are read, the newest ones.
    pub limits: Vec<RateLimit>,
}

/// Limits to count.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TurnRecall {
    /// Memories for a turn.
    pub query: MemoryQuery,
    /// The query.
    pub matches: Option<MemoryMatches>,
    /// Candidates; `None` if the same query was made before.
    pub working: Vec<MemoryItem>,
    /// Since when events are in the history that the prompt shows.
    pub history_since: Option<Timestamp>,
}

/// A turn that was just opened, with all that it needs of the record.
#[derive(Debug, Clone)]
pub struct StartedTurn {
    /// Its id.
    pub id: TurnId,
    /// Its number in the automaton's life, from 1. Abandoned turns count.
    pub seq: u64,
    /// Texts that it answers: its inputs, and the claimed messages.
    pub inputs: Vec<TurnInput>,
    /// The oldest of these messages.
    pub first: Option<MessageId>,
    /// A call that the creator approved; then no message was claimed.
    pub approved: Option<Approval>,
    /// Beginning of the prompt's history.
    pub place: HistoryPosition,
    /// The sum of the turns before that.
    pub digest: Option<DigestRow>,
    /// The number from which the turns were read.
    pub turns_from: u64,
    /// The turns of the history from there on, oldest first.
    pub turns: Vec<TurnRecord>,
    /// The creator's unanswered messages, oldest first.
    pub open: Vec<OpenMessage>,
    /// Recalled memories.
    pub recall: TurnRecall,
    /// Its soul.
    pub soul: Option<SoulVersion>,
    /// Use of each limit within its window.
    pub uses: Vec<u32>,
    /// True if there is any text that neither the creator nor the automaton wrote.
    pub others_wrote: bool,
}

impl Store {
    /// Returns the state of the wake.
    ///
    /// # Errors
    /// [`StoreError::Unborn`], or when a sum cannot be counted.
    pub async fn wake_snapshot(&self, query: WakeQuery) -> Result<WakeSnapshot, StoreError> {
        let work = move |tx: &Tx<'_>| snapshot(tx, query, tx.now.before(DAY));
        self.run("read where the wake stands", work).await
    }

    /// Opens a turn: stale claims go back, what was approved or the oldest waiting messages
    /// are its own, and they and what it is told become its inputs. Gives all that it needs
    /// of the record.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] when the cycle has ended, [`StoreError::Missing`].
    pub async fn start_turn(&self, request: TurnRequest) -> Result<StartedTurn, StoreError> {
        let write = WriteOptions::new("open a turn").reaches(FaultPoint::TurnOpened);
        self.write(write, move |tx| start(tx, &request)).await
    }
}

pub(crate) fn snapshot(
    connection: &Connection,
    WakeQuery { costs, losses }: WakeQuery,
    day: Timestamp,
) -> Result<WakeSnapshot, TxError> {
    Ok(WakeSnapshot {
        creators: unattended_usage::creators(connection)?,
        state: life::state(connection)?,
        vitals: vitals::read(connection)?,
        unattended: match costs {
            true => unattended_usage::usage(connection)?,
            false => UnattendedUsage::default(),
        },
        spend: if costs { pnl::thinking(connection, day)? } else { InferenceSpend::default() },
        losses: if losses { pnl::losses(connection, day)? } else { Losses::default() },
    })
}

fn start(tx: &Tx<'_>, request: &TurnRequest) -> Result<StartedTurn, TxError> {
    let TurnRequest { session, told, claims, .. } = request;
    let approved = approvals::approved_call(tx)?;
    // A message is not answered by a turn in which no model reads it.
    let claims = match approved {
        Some(_) => ClaimOptions { most: 0, ..*claims },
        None => *claims,
    };
    let opened = turns::open(tx, *session, told, claims)?;
    let first = opened.messages.first().map(|message| message.id);
    let messages = opened.messages.into_iter().map(|message| TurnInput {
        said: message.body,
        message: Some(message.id),
        file: message.file,
    });
    let inputs: Vec<TurnInput> =
        told.iter().cloned().map(TurnInput::from).chain(messages).collect();
    let place = history_position::place(tx)?;
    let turns_from = place.from.max(request.history_from);
    let open = open::open_at(tx, None)?;
    Ok(StartedTurn {
        id: opened.id,
        seq: opened.seq,
        first,
        approved,
        place,
        digest: history_position::digest(tx, None)?,
        turns_from,
        turns: history::committed(tx, turns_from, request.turns_max)?,
        recall: recall(tx, request, place.from, (request.recall)(&inputs, &open))?,
        soul: soul::newest(tx)?,
        uses: rates::uses(tx, &request.limits, tx.now)?,
        others_wrote: origins::others_wrote(tx)?,
        inputs,
        open,
    })
}

/// Returns the memories for a turn whose history begins at this number.
fn recall(
    tx: &Tx<'_>,
    request: &TurnRequest,
    from: u64,
    query: MemoryQuery,
) -> Result<TurnRecall, TxError> {
    let matches = match request.recalled.as_ref() == Some(&query) {
        true => None,
        false => Some(memory::matches(tx, &query)?),
    };
    Ok(TurnRecall {
        matches,
        working: memory::working(tx)?,
        history_since: history::since(tx, from)?,
        query,
    })
}

//! What a turn is made of, read at once: where the wake stands, with the end of the turn
//! before, and all that a prompt and a judgement need, with the turn that opens.
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

/// What is read of a wake besides its life: sums over the ledger take their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WakeQuery {
    /// What thinking cost.
    pub costs: bool,
    /// What was lost.
    pub losses: bool,
}

/// Where a wake stands before a turn. What was not asked for is zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WakeSnapshot {
    /// Whether the creator caused it.
    pub creators: bool,
    /// What the automaton is doing.
    pub state: AgentState,
    /// What is known of its means.
    pub vitals: Vitals,
    /// What was thought since the creator last called.
    pub unattended: UnattendedUsage,
    /// What answers of models cost.
    pub spend: InferenceSpend,
    /// What was lost since losses count.
    pub losses: Losses,
}

/// What a turn begins with.
#[derive(Debug, Clone)]
pub struct TurnRequest {
    /// Its wake cycle.
    pub session: SessionId,
    /// What it is told besides its messages.
    pub told: Vec<Labelled>,
    /// Which messages it claims, where no approved call is to be made first.
    pub claims: ClaimOptions,
    /// The number from which turns of the history are not known yet.
    pub history_from: u64,
    /// How many turns of it are read at most, the newest ones.
    pub turns_max: u32,
    /// By what the memory is asked, for these inputs and open messages.
    pub recall: fn(&[TurnInput], &[OpenMessage]) -> MemoryQuery,
    /// The query whose matches are known; it is not asked again.
    pub recalled: Option<MemoryQuery>,
    /// What is limited.
    pub limits: Vec<RateLimit>,
}

/// What the memory has for a turn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TurnRecall {
    /// What it was asked.
    pub query: MemoryQuery,
    /// What may fit; none, where the same was asked before.
    pub matches: Option<MemoryMatches>,
    /// What is being done, whatever was asked.
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
    /// What it answers: what it was told, and the messages it has claimed.
    pub inputs: Vec<TurnInput>,
    /// The oldest of these messages.
    pub first: Option<MessageId>,
    /// A call that the creator approved; then no message was claimed.
    pub approved: Option<Approval>,
    /// Where the history of the prompt begins.
    pub place: HistoryPosition,
    /// The sum of the turns before that.
    pub digest: Option<DigestRow>,
    /// The number from which the turns were read.
    pub turns_from: u64,
    /// The turns of the history from there on, oldest first.
    pub turns: Vec<TurnRecord>,
    /// What the creator said and nobody has answered, oldest first.
    pub open: Vec<OpenMessage>,
    /// What was recalled for it.
    pub recall: TurnRecall,
    /// What it thinks of itself.
    pub soul: Option<SoulVersion>,
    /// How often each limit was used within its window.
    pub uses: Vec<u32>,
    /// Whether anybody but the creator and the automaton has written anything.
    pub others_wrote: bool,
}

impl Store {
    /// Where the wake stands.
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

/// What the memory has for a turn whose history begins at this number.
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

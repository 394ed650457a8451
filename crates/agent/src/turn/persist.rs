//! Stage 6: the turn is closed in one transaction, with the last outcome of its calls and
//! what it owes the memory.
//!
//! Words without a call end a wake. They go to the creator in the same transaction, as
//! the answer to what is open; nobody may wait for words that were said. What is told to
//! the world is told after the commit, never before.

use automaton_core::event::Event;
use automaton_core::id::MessageId;
use automaton_core::memory::NewMemory;
use automaton_core::money::Microcents;
use automaton_core::record::TurnRecord;
use automaton_core::trust::Labelled;
use automaton_store::WakeSnapshot;

use super::AgentContext;
use super::act::ExecutedTurn;
use super::finished::finished_event;
use super::memories::{self, RememberedTurn};
use crate::error::AgentError;
use crate::money;

/// A turn that is in the record.
pub(super) struct CommittedTurn {
    pub(super) acted: ExecutedTurn,
    /// Current state of the wake.
    pub(super) snapshot: WakeSnapshot,
}

/// Returns the event of a turn that recovery has committed.
pub(crate) fn committed_event(turn: TurnRecord) -> Event {
    Event::TurnCommitted {
        turn: turn.id,
        seq: turn.seq,
        session: turn.session,
        thought: turn.thought,
        calls: u32::try_from(turn.calls.len()).unwrap_or(u32::MAX),
        cost: turn.usage.map_or(Microcents::ZERO, |usage| usage.cost),
    }
}

/// Returns the event of a message to the creator.
pub(crate) fn sent((message, body): (MessageId, Labelled)) -> Event {
    Event::MessageSent { message, recipient: "creator".to_owned(), body }
}

/// Commits the turn.
pub(super) async fn persist(
    ctx: &AgentContext,
    acted: ExecutedTurn,
) -> Result<CommittedTurn, AgentError> {
    let ends = acted.unstored().to_vec();
    let claimed = &acted.judged.claimed;
    let calls = acted.ended.len() + acted.judged.settled.len();
    let leaves = remembered(&acted);
    let next = money::wake_query(ctx);
    let (answer, snapshot) = ctx.deps.store.finish_turn(claimed.turn, ends, leaves, next).await?;
    let events = acted.unstored().iter().filter_map(|call| finished_event(claimed.turn, call));
    events.for_each(|event| ctx.deps.emit(event));
    ctx.deps.emit(Event::TurnCommitted {
        turn: claimed.turn,
        seq: claimed.seq,
        session: claimed.wake.session,
        thought: acted.judged.thought.clone(),
        calls: u32::try_from(calls).unwrap_or(u32::MAX),
        cost: acted.judged.usage.cost,
    });
    // As it is delivered: what is too long for a message is cut there.
    answer.into_iter().for_each(|answer| ctx.deps.emit(sent(answer)));
    Ok(CommittedTurn { acted, snapshot })
}

/// Returns what is remembered of the turn.
fn remembered(acted: &ExecutedTurn) -> Vec<NewMemory> {
    let claimed = &acted.judged.claimed;
    let settled = &acted.judged.settled;
    memories::remember(&RememberedTurn {
        id: claimed.turn,
        inputs: &claimed.inputs,
        thought: &acted.judged.thought,
        calls: acted.ended.iter().chain(settled).collect(),
        tools: &claimed.tools.set,
        sleep_note: acted.sleep().and_then(|wish| wish.note.as_deref()),
    })
}

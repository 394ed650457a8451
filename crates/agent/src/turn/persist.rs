//! Stage 6: the turn is closed in one transaction.
//!
//! From here on its messages are answered, once and for all. What is told to
//! the world is told after the commit, never before.

use automaton_core::event::Event;
use automaton_core::money::Microcents;
use automaton_core::record::TurnRecord;

use super::Body;
use super::act::Acted;
use crate::error::AgentError;

/// A turn that is in the record.
pub(super) struct Committed {
    pub(super) acted: Acted,
}

/// What is told of a turn that recovery has committed.
pub(crate) fn told(turn: TurnRecord) -> Event {
    Event::TurnCommitted {
        turn: turn.id,
        seq: turn.seq,
        session: turn.session,
        thought: turn.thought,
        calls: u32::try_from(turn.calls.len()).unwrap_or(u32::MAX),
        cost: turn.usage.map_or(Microcents::ZERO, |usage| usage.cost),
    }
}

/// Commits the turn.
pub(super) async fn persist(body: &Body, acted: Acted) -> Result<Committed, AgentError> {
    let claimed = &acted.judged.claimed;
    body.deps.store.commit_turn(claimed.turn).await?;
    let calls = acted.ended.len() + acted.judged.settled.len();
    body.deps.emit(Event::TurnCommitted {
        turn: claimed.turn,
        seq: claimed.seq,
        session: claimed.wake.session,
        thought: acted.judged.thought.clone(),
        calls: u32::try_from(calls).unwrap_or(u32::MAX),
        cost: acted.judged.usage.cost,
    });
    Ok(Committed { acted })
}

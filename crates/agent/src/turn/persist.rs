//! Stage 6: the turn is closed in one transaction.
//!
//! Words without a call end a wake. They go to the creator in the same transaction, as
//! the answer to what is open; nobody may wait for words that were said. What is told to
//! the world is told after the commit, never before.

use automaton_core::event::Event;
use automaton_core::money::Microcents;
use automaton_core::record::TurnRecord;
use automaton_core::trust::{Label, Labelled};

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
    let calls = acted.ended.len() + acted.judged.settled.len();
    let words = last_words(&acted, calls);
    let answer = body.deps.store.commit_turn_saying(claimed.turn, words.clone()).await?;
    body.deps.emit(Event::TurnCommitted {
        turn: claimed.turn,
        seq: claimed.seq,
        session: claimed.wake.session,
        thought: acted.judged.thought.clone(),
        calls: u32::try_from(calls).unwrap_or(u32::MAX),
        cost: acted.judged.usage.cost,
    });
    if let Some((message, body_of_it)) = answer.zip(words) {
        let recipient = "creator".to_owned();
        body.deps.emit(Event::MessageSent { message, recipient, body: body_of_it });
    }
    Ok(Committed { acted })
}

/// What the turn says, where that ends its wake.
fn last_words(acted: &Acted, calls: usize) -> Option<Labelled> {
    let (judged, text) = (&acted.judged, acted.judged.thought.trim());
    // What it hands over at a limit is no answer: that goes on, and with it what is open.
    let ends =
        calls == 0 && !text.is_empty() && judged.fault.is_none() && !judged.claimed.wake.last;
    // What it says now it may have from what it has read.
    let voice = Label::Own.meet(judged.claimed.label).meet(judged.claimed.wake.heard);
    ends.then(|| Labelled::new(voice, "agent", text))
}

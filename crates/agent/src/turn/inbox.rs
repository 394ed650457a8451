//! Stage 1: a turn is opened and claims the messages that it will answer.
//!
//! What a turn answers is stored with the turn, so that history can show it for
//! ever. A message must never be claimed without being stored as an input.

use automaton_core::event::Event;
use automaton_core::id::{MessageId, TurnId};
use automaton_core::trust::{Label, Labelled};

use super::{Body, TurnError, Wake};
use crate::prompt::input_label;

/// A turn with its inputs.
#[derive(Debug)]
pub(super) struct Claimed {
    pub(super) turn: TurnId,
    pub(super) seq: u64,
    pub(super) wake: Wake,
    /// Everything that the turn answers, with its origin.
    pub(super) inputs: Vec<Labelled>,
    /// The least trusted label of all inputs.
    pub(super) label: Label,
    /// The oldest of the messages that it answers.
    pub(super) first: Option<MessageId>,
}

/// Opens the turn.
pub(super) async fn claim(body: &Body, mut wake: Wake) -> Result<Claimed, TurnError> {
    let opened =
        body.deps.store.open_turn(wake.session, wake.told.clone(), wake.claim.most()).await?;
    let (turn, seq, session) = (opened.id, opened.seq, wake.session);
    body.deps.emit(Event::TurnStarted { turn, seq, session });
    let first = opened.messages.first().map(|message| message.id);
    let messages = opened.messages.into_iter().map(|message| message.body.into_labelled());
    let inputs: Vec<Labelled> = wake.told.iter().cloned().chain(messages).collect();
    let label = input_label(&inputs);
    wake.heard = wake.heard.meet(label);
    Ok(Claimed { turn, seq, wake, inputs, label, first })
}

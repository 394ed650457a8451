//! Stage 3: the model is asked.
//!
//! Nothing is written here but what the answer cost: a crash before it is judged
//! costs the answer and nothing else. The end of the process waits for a model only
//! where the answer is being paid for, and only for a moment.

use std::time::Duration;

use automaton_core::event::Event;
use automaton_core::faults::FaultPoint;
use automaton_core::id::TurnId;
use automaton_core::tool::ToolName;
use automaton_inference::{Ask, InferenceError, Reply, Sink};
use automaton_store::{Noted, StoreError};

use super::context::Prompted;
use super::inbox::Claimed;
use super::{Body, TurnError};
use crate::deps::Deps;
use crate::tasks::ending;

/// How long the end of the process waits for an answer that costs something.
const LAST_ANSWER_WITHIN: Duration = Duration::from_secs(8);

/// A turn with the model's answer.
#[derive(Debug)]
pub(super) struct Thought {
    pub(super) claimed: Claimed,
    pub(super) reply: Reply,
}

/// Asks the model.
pub(super) async fn ask(body: &Body, prompted: Prompted) -> Result<Thought, TurnError> {
    let Prompted { claimed, prompt, left_out } = prompted;
    let ask = Ask {
        messages: prompt.messages,
        tools: body.tools.clone(),
        left_out: left_out.clone(),
        max_tokens: prompt.answer_tokens,
        seed: body.settings.sampling.seed,
        temperature_milli: body.settings.sampling.temperature_milli,
    };
    let sink = Deltas { deps: &body.deps, turn: claimed.turn };
    let noted = if body.deps.treasury.is_some() { Noted::Yes } else { Noted::No };
    if noted == Noted::Yes {
        body.deps.store.note_asked().await?;
    }
    let mut asking = body.deps.provider.complete(&ask, &sink);
    let answered = tokio::select! {
        biased;
        // Cancel-safe: a dropped answer is asked for again.
        () = ending(&body.shutdown) => {
            if noted == Noted::Yes
                && let Ok(late) = tokio::time::timeout(LAST_ANSWER_WITHIN, asking).await
            {
                count(body, &late, noted).await?;
            }
            return Err(TurnError::Shutdown);
        }
        answered = &mut asking => answered,
    };
    drop(asking);
    // Paid for from here on, whatever becomes of the turn.
    count(body, &answered, noted).await?;
    let reply = answered.map_err(TurnError::Inference)?;
    body.deps.faults.reach(FaultPoint::ThoughtReceived);
    tell(body, claimed.turn, &reply, &left_out);
    Ok(Thought { claimed, reply })
}

/// Counts an answer, or that a question was refused.
async fn count(
    body: &Body,
    answered: &Result<Reply, InferenceError>,
    noted: Noted,
) -> Result<(), StoreError> {
    match answered {
        Ok(reply) => body.deps.store.count_answer(&reply.usage, noted).await,
        Err(error) if noted == Noted::Yes && error.costs_nothing() => {
            body.deps.store.note_refused().await
        }
        Err(_) => Ok(()),
    }
}

fn tell(body: &Body, turn: TurnId, reply: &Reply, left_out: &[ToolName]) {
    let usage = &reply.usage;
    body.deps.emit(Event::InferenceCompleted {
        turn,
        model: usage.model.clone(),
        prompt_tokens: usage.prompt_tokens,
        cached_tokens: usage.cached_tokens,
        completion_tokens: usage.completion_tokens,
        cost: usage.cost,
        first_token_ms: usage.first_token_ms,
        total_ms: usage.total_ms,
        left_out: left_out.iter().map(ToString::to_string).collect(),
    });
}

/// Shows the text as it comes.
struct Deltas<'a> {
    deps: &'a Deps,
    turn: TurnId,
}

impl Sink for Deltas<'_> {
    fn text(&self, piece: &str) {
        self.deps.emit(Event::ThoughtDelta { turn: self.turn, text: piece.to_owned() });
    }
}

//! Stage 3: the model is asked.
//!
//! Nothing is written here but what the answer cost: a crash before it is judged
//! costs the answer and nothing else. The end of the process does not wait for a model.

use automaton_core::event::Event;
use automaton_core::faults::FaultPoint;
use automaton_core::id::TurnId;
use automaton_core::tool::ToolName;
use automaton_inference::{Ask, Reply, Sink};

use super::context::Prompted;
use super::inbox::Claimed;
use super::{Body, TurnError};
use crate::deps::Deps;
use crate::tasks::ending;

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
    let reply = tokio::select! {
        biased;
        // Cancel-safe: a dropped answer is asked for again.
        () = ending(&body.shutdown) => return Err(TurnError::Shutdown),
        reply = body.deps.provider.complete(&ask, &sink) => reply.map_err(TurnError::Inference)?,
    };
    // Paid for from here on, whatever becomes of the turn.
    body.deps.store.count_answer(&reply.usage).await?;
    body.deps.faults.reach(FaultPoint::ThoughtReceived);
    tell(body, claimed.turn, &reply, &left_out);
    Ok(Thought { claimed, reply })
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

//! Stage 3: the model is asked.
//!
//! Nothing is written here but what the answer costs: at its worst before it is asked
//! for, and as it was when it is there. A crash before it is judged costs the answer
//! and nothing else. The end of the process waits for a model only where the answer is
//! being paid for, and only for a moment.

use std::time::Duration;

use automaton_core::event::Event;
use automaton_core::faults::FaultPoint;
use automaton_core::id::TurnId;
use automaton_core::money::Microcents;
use automaton_core::tool::ToolName;
use automaton_inference::{Ask, InferenceError, Reply, Sink};
use automaton_store::{Asked, NewAnswer, StoreError};

use super::context::Prompted;
use super::inbox::Claimed;
use super::{Body, TurnError};
use crate::deps::Deps;
use crate::money;
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
    let asked = book(body, claimed.turn, &ask).await?;
    let mut asking = body.deps.provider.complete(&ask, &sink);
    let answered = tokio::select! {
        biased;
        // Cancel-safe: a dropped answer is asked for again.
        () = ending(&body.shutdown) => {
            if asked.is_some()
                && let Ok(late) = tokio::time::timeout(LAST_ANSWER_WITHIN, asking).await
            {
                settle(body, claimed.turn, asked, &late).await?;
            }
            return Err(TurnError::Shutdown);
        }
        answered = &mut asking => answered,
    };
    drop(asking);
    // Paid for from here on, whatever becomes of the turn.
    settle(body, claimed.turn, asked, &answered).await?;
    let reply = answered.map_err(TurnError::Inference)?;
    body.deps.faults.reach(FaultPoint::ThoughtReceived);
    tell(body, claimed.turn, &reply, &left_out);
    Ok(Thought { claimed, reply })
}

/// Books the answer at the most that it can cost, unless it costs nothing.
async fn book(body: &Body, turn: TurnId, ask: &Ask) -> Result<Option<Asked>, TurnError> {
    let most = money::at_most(body.deps.provider.model(), ask)
        .map_err(|source| TurnError::Inference(InferenceError::Cost { source }))?;
    if most == Microcents::ZERO {
        return Ok(None);
    }
    let store = &body.deps.store;
    body.settings.budgets.fits(store.thinking_cost().await?, most)?;
    Ok(Some(store.book_answer(NewAnswer { turn, goal: None, most }).await?))
}

/// Counts an answer, or takes the booking of one that was refused back. One that was
/// not heard may have been charged, and stays booked.
async fn settle(
    body: &Body,
    turn: TurnId,
    asked: Option<Asked>,
    answered: &Result<Reply, InferenceError>,
) -> Result<(), StoreError> {
    match (answered, asked) {
        (Ok(reply), asked) => body.deps.store.answer_heard(asked, turn, &reply.usage).await,
        (Err(error), Some(asked)) if error.costs_nothing() => {
            body.deps.store.answer_refused(asked).await
        }
        (Err(_), _) => Ok(()),
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

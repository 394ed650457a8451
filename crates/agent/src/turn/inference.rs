//! Stage 3: the model is asked.
//!
//! Nothing is written here but what is asked with, and what the answer costs: at its
//! worst before it is asked for, and as it was when it is there. A crash before it is judged costs the answer
//! and nothing else. The end of the process waits for a model only where the answer is
//! being paid for, and only for a moment: what comes later is settled at the next start.

use std::sync::Arc;
use std::time::Duration;

use automaton_core::event::Event;
use automaton_core::faults::FaultPoint;
use automaton_core::id::TurnId;
use automaton_core::money::Microcents;
use automaton_core::record::Usage;
use automaton_core::tool::ToolName;
use automaton_inference::{Ask, Counted, Finish, InferenceError, ModelInfo, RawCall, Reply, Sink};
use automaton_store::{Approval, Asked, NewAnswer, StoreError, Subject};
use tracing::{Instrument as _, debug_span};

use super::context::Prompted;
use super::inbox::Claimed;
use super::{Body, TurnError, Wake};
use crate::deps::Deps;
use crate::money;
use crate::prompt;

/// What stands in the place of a model where the creator approved a call.
pub(crate) const GRANTED: &str = "approval";

/// How long the end of the process waits for an answer that costs something.
const LAST_ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// A turn with the model's answer.
#[derive(Debug)]
pub(super) struct Thought {
    pub(super) claimed: Claimed,
    pub(super) reply: Reply,
}

fn at_most(model: &ModelInfo, ask: &Ask) -> Result<Microcents, InferenceError> {
    money::at_most(model, ask).map_err(|source| InferenceError::Cost { source })
}

/// Whether what is left of the day and of the credits pays for an answer at its longest.
async fn has_room(body: &Body, wake: &Wake) -> Result<bool, TurnError> {
    let spent = body.deps.store.thinking_cost().await?;
    let credits = wake.balances.and_then(|balances| balances.credits);
    let day = body.settings.budgets.fits(spent, wake.most);
    Ok(day.is_ok() && credits.is_none_or(|credits| wake.most <= credits))
}

/// Asks the model.
pub(super) async fn ask(body: &Body, prompted: Prompted) -> Result<Thought, TurnError> {
    let Prompted { mut claimed, prompt, tools, left_out } = prompted;
    let kept = prompt::kept(&prompt);
    let reads = prompt.tokens();
    let (usual, max_tokens) = (prompt.answer_tokens, prompt.longest_tokens);
    let mut ask = Ask {
        messages: prompt.messages,
        // Whose last turn it is hands over, and does nothing else.
        tools: if claimed.wake.last { Arc::default() } else { tools },
        left_out: left_out.clone(),
        max_tokens,
        seed: body.settings.sampling.seed,
        temperature_milli: body.settings.sampling.temperature_milli,
        name: None,
    };
    let sink = Deltas { deps: &body.deps, turn: claimed.turn };
    let mind = body.deps.mind(claimed.wake.thinker);
    claimed.wake.most = at_most(mind.model(), &ask).map_err(TurnError::Inference)?;
    if ask.max_tokens > usual && !has_room(body, &claimed.wake).await? {
        ask.max_tokens = usual;
        claimed.wake.most = at_most(mind.model(), &ask).map_err(TurnError::Inference)?;
    }
    let asked = book(body, claimed.turn, claimed.wake.most).await?;
    ask.name = asked.as_ref().map(Asked::name);
    tell_asked(body, (claimed.turn, mind.model()), reads);
    let span = debug_span!("model", model = mind.model().id, messages = ask.messages.len());
    // What it is asked is kept while it thinks.
    let keeping = body.deps.store.keep_prompt(claimed.turn, kept);
    let asking = async { tokio::join!(mind.complete(&ask, &sink).instrument(span), keeping) };
    let mut asking = Box::pin(asking);
    let (answered, kept) = tokio::select! {
        biased;
        // Cancel-safe: a dropped answer is asked for again.
        () = body.halted() => {
            if asked.is_some()
                && let Ok((late, _)) = tokio::time::timeout(LAST_ANSWER_WITHIN, asking).await
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
    kept?;
    let window = mind.model().context_tokens;
    let reply = answered.map_err(|source| match source.is_too_long() {
        true => TurnError::TooLong { tokens: reads, window, source },
        false => TurnError::Inference(source),
    })?;
    body.deps.faults.reach(FaultPoint::ThoughtReceived);
    tell(body, claimed.turn, &reply, &left_out);
    Ok(Thought { claimed, reply })
}

/// What was approved, as if the model had just called it: it had, and nobody else may
/// change a word of it.
pub(super) fn granted(claimed: Claimed, granted: &Approval) -> Thought {
    let calls = match &granted.subject {
        Subject::Call { tool, arguments, .. } => {
            vec![RawCall { provider_id: None, tool: tool.clone(), arguments: arguments.clone() }]
        }
        Subject::Payment(_) => Vec::new(),
    };
    let usage = Usage { model: GRANTED.to_owned(), ..Usage::default() };
    let (text, finish, counted) = (String::new(), Finish::ToolCalls, Counted::Reported);
    Thought { claimed, reply: Reply { text, calls, finish, usage, counted } }
}

/// Books the answer at the most that it can cost, unless it costs nothing.
async fn book(body: &Body, turn: TurnId, most: Microcents) -> Result<Option<Asked>, TurnError> {
    if most == Microcents::ZERO {
        return Ok(None);
    }
    let store = &body.deps.store;
    body.settings.budgets.fits(store.thinking_cost().await?, most)?;
    let cloud = body.deps.treasury.as_ref().map(|treasury| treasury.cloud().to_owned());
    Ok(Some(store.book_answer(NewAnswer { turn, goal: None, most, cloud }).await?))
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

fn tell_asked(body: &Body, (turn, model): (TurnId, &ModelInfo), prompt_tokens: u32) {
    let model = model.id.clone();
    body.deps.emit(Event::InferenceStarted { turn, model, prompt_tokens });
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

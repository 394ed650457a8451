//! Stage 3: the model is asked.
//!
//! Nothing is written here but what the answer costs at its worst, before it is asked for.
//! What was asked, and what it cost, is written with the judgement: a crash before that
//! costs the answer, and what was booked for it is settled at the next start. The end of the
//! process waits for a model only where the answer is being paid for, and only for a moment.

use std::sync::Arc;
use std::time::Duration;

use automaton_core::event::Event;
use automaton_core::faults::FaultPoint;
use automaton_core::id::TurnId;
use automaton_core::money::Microcents;
use automaton_core::record::Usage;
use automaton_core::tool::ToolName;
use automaton_inference::{
    Completion, CompletionRequest, FinishReason, InferenceError, ModelInfo, Provider, RawCall,
    TokenCountSource, TokenSink,
};
use automaton_store::{
    AnswerEnd, Approval, ApprovalSubject, AskedAnswer, CostReservation, NewCostReservation,
};
use tracing::{Instrument as _, debug_span};

use super::context::PromptedTurn;
use super::inbox::ClaimedTurn;
use super::{AgentContext, TurnError, WakeContext};
use crate::deps::AgentDeps;
use crate::money;
use crate::prompt;

/// What stands in the place of a model where the creator approved a call.
pub(crate) const APPROVED_MODEL: &str = "approval";

/// How long the end of the process waits for an answer that costs something.
const LAST_ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// A turn with the model's answer.
#[derive(Debug)]
pub(super) struct AnsweredTurn {
    pub(super) claimed: ClaimedTurn,
    pub(super) reply: Completion,
    /// What was asked, where a model was.
    pub(super) asked: Option<AskedAnswer>,
}

fn at_most(model: &ModelInfo, ask: &CompletionRequest) -> Result<Microcents, InferenceError> {
    money::at_most(model, ask).map_err(|source| InferenceError::Cost { source })
}

/// Whether what is left of the day and of the credits pays for an answer at its longest.
fn has_room(ctx: &AgentContext, wake: &WakeContext) -> bool {
    let credits = wake.balances.and_then(|balances| balances.credits);
    let day = ctx.settings.budgets.fits(wake.day, wake.most);
    day.is_ok() && credits.is_none_or(|credits| wake.most <= credits)
}

/// Asks the model.
pub(super) async fn ask(
    ctx: &AgentContext,
    prompted: PromptedTurn,
) -> Result<AnsweredTurn, TurnError> {
    let PromptedTurn { mut claimed, prompt, tools, left_out } = prompted;
    let kept = prompt::prompt_row(&prompt);
    let reads = prompt.tokens();
    let (usual, max_tokens) = (prompt.answer_tokens, prompt.longest_tokens);
    let mut ask = CompletionRequest {
        messages: prompt.messages,
        // Whose last turn it is hands over, and does nothing else.
        tools: if claimed.wake.last { Arc::default() } else { tools },
        left_out: left_out.clone(),
        max_tokens,
        seed: ctx.settings.sampling.seed,
        temperature_milli: ctx.settings.sampling.temperature_milli,
        name: None,
    };
    let sink = DeltaSink { deps: &ctx.deps, turn: claimed.turn };
    let provider = ctx.deps.provider_for(claimed.wake.model_tier);
    claimed.wake.most = at_most(provider.model(), &ask).map_err(TurnError::Inference)?;
    if ask.max_tokens > usual && !has_room(ctx, &claimed.wake) {
        ask.max_tokens = usual;
        claimed.wake.most = at_most(provider.model(), &ask).map_err(TurnError::Inference)?;
    }
    let reservation = reserve_cost(ctx, claimed.turn, &claimed.wake).await?;
    ask.name = reservation.as_ref().map(CostReservation::name);
    tell_asked(ctx, claimed.turn, provider.model(), reads);
    let span = debug_span!("model", model = %provider.model().id, messages = ask.messages.len());
    let asked = AskedAnswer { prompt: kept, at: ctx.deps.ids.now(), reservation };
    let is_recorded = ctx.deps.treasury.is_some() && ask.name.is_some();
    let mut asking = Box::pin(heard(provider, &ask, &sink, is_recorded).instrument(span));
    let answered = tokio::select! {
        biased;
        // Cancel-safe: a dropped answer is asked for again.
        () = ctx.interrupted() => {
            let late = match &asked.reservation {
                Some(_) => tokio::time::timeout(LAST_ANSWER_WITHIN, asking).await.ok(),
                None => None,
            };
            let end = late.map_or(AnswerEnd::Unheard, end_of);
            ctx.deps.store.close_asked(claimed.turn, asked, end).await?;
            return Err(TurnError::Shutdown);
        }
        answered = &mut asking => answered,
    };
    drop(asking);
    let reply = match answered {
        Ok(reply) => reply,
        Err(source) => {
            let window = provider.model().context_tokens;
            let end = end_of_failed(&source);
            ctx.deps.store.close_asked(claimed.turn, asked, end).await?;
            return Err(match source.is_too_long() {
                true => TurnError::TooLong { tokens: reads, window, source },
                false => TurnError::Inference(source),
            });
        }
    };
    ctx.deps.faults.reach(FaultPoint::ThoughtReceived);
    tell(ctx, claimed.turn, &reply, &left_out);
    Ok(AnsweredTurn { claimed, reply, asked: Some(asked) })
}

/// The answer. One that a cloud has recorded under the name of its question, and that was lost on
/// the way here, is asked for once more by that name: it is charged once.
async fn heard(
    provider: &dyn Provider,
    ask: &CompletionRequest,
    sink: &dyn TokenSink,
    is_recorded: bool,
) -> Result<Completion, InferenceError> {
    match provider.complete(ask, sink).await {
        Err(lost) if is_recorded && !lost.costs_nothing() => {
            // What comes of the second says nothing of the first, which may have been charged.
            provider.complete(ask, sink).await.or(Err(lost))
        }
        answered => answered,
    }
}

/// What was approved, as if the model had just called it: it had, and nobody else may
/// change a word of it.
pub(super) fn approved_call(claimed: ClaimedTurn, approval: &Approval) -> AnsweredTurn {
    let calls = match &approval.subject {
        ApprovalSubject::Call { tool, arguments, .. } => {
            vec![RawCall { provider_id: None, tool: tool.clone(), arguments: arguments.clone() }]
        }
        ApprovalSubject::Payment(_) => Vec::new(),
    };
    let usage = Usage { model: APPROVED_MODEL.to_owned(), ..Usage::default() };
    let (text, finish, counted) =
        (String::new(), FinishReason::ToolCalls, TokenCountSource::Reported);
    let reply = Completion { text, calls, finish, usage, counted };
    AnsweredTurn { claimed, reply, asked: None }
}

/// Books the answer at the most that it can cost, unless it costs nothing.
async fn reserve_cost(
    ctx: &AgentContext,
    turn: TurnId,
    wake: &WakeContext,
) -> Result<Option<CostReservation>, TurnError> {
    let most = wake.most;
    if most == Microcents::ZERO {
        return Ok(None);
    }
    let store = &ctx.deps.store;
    ctx.settings.budgets.fits(wake.day, most)?;
    let cloud = ctx.deps.treasury.as_ref().map(|treasury| treasury.cloud().to_owned());
    Ok(Some(store.reserve_cost(NewCostReservation { turn, goal: None, most, cloud }).await?))
}

/// What is known of the cost of an answer that nobody waited for any more. One that was
/// not heard may have been charged.
fn end_of(answered: Result<Completion, InferenceError>) -> AnswerEnd {
    answered.map_or_else(|error| end_of_failed(&error), |reply| AnswerEnd::Heard(reply.usage))
}

fn end_of_failed(error: &InferenceError) -> AnswerEnd {
    if error.costs_nothing() { AnswerEnd::Refused } else { AnswerEnd::Unheard }
}

fn tell_asked(ctx: &AgentContext, turn: TurnId, model: &ModelInfo, prompt_tokens: u32) {
    let model = model.id.clone();
    ctx.deps.emit(Event::InferenceStarted { turn, model, prompt_tokens });
}

fn tell(ctx: &AgentContext, turn: TurnId, reply: &Completion, left_out: &[ToolName]) {
    let usage = &reply.usage;
    ctx.deps.emit(Event::InferenceCompleted {
        turn,
        model: usage.model.clone(),
        prompt_tokens: usage.prompt_tokens,
        cached_tokens: usage.cached_tokens,
        completion_tokens: usage.completion_tokens,
        cost: usage.cost,
        estimated: usage.estimated,
        first_token_ms: usage.first_token_ms,
        total_ms: usage.total_ms,
        left_out: left_out.iter().map(ToString::to_string).collect(),
    });
}

/// Shows the text as it comes.
struct DeltaSink<'a> {
    deps: &'a AgentDeps,
    turn: TurnId,
}

impl TokenSink for DeltaSink<'_> {
    fn text(&self, piece: &str) {
        self.deps.emit(Event::ThoughtDelta { turn: self.turn, text: piece.to_owned() });
    }
}

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
use automaton_inference::{
    Completion, CompletionRequest, FinishReason, InferenceError, ModelInfo, RawCall,
    TokenCountSource, TokenSink,
};
use automaton_store::{Approval, ApprovalSubject, CostReservation, NewCostReservation, StoreError};
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
}

fn at_most(model: &ModelInfo, ask: &CompletionRequest) -> Result<Microcents, InferenceError> {
    money::at_most(model, ask).map_err(|source| InferenceError::Cost { source })
}

/// Whether what is left of the day and of the credits pays for an answer at its longest.
async fn has_room(ctx: &AgentContext, wake: &WakeContext) -> Result<bool, TurnError> {
    let spent = ctx.deps.store.thinking_cost().await?;
    let credits = wake.balances.and_then(|balances| balances.credits);
    let day = ctx.settings.budgets.fits(spent, wake.most);
    Ok(day.is_ok() && credits.is_none_or(|credits| wake.most <= credits))
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
    if ask.max_tokens > usual && !has_room(ctx, &claimed.wake).await? {
        ask.max_tokens = usual;
        claimed.wake.most = at_most(provider.model(), &ask).map_err(TurnError::Inference)?;
    }
    let asked = reserve_cost(ctx, claimed.turn, claimed.wake.most).await?;
    ask.name = asked.as_ref().map(CostReservation::name);
    tell_asked(ctx, (claimed.turn, provider.model()), reads);
    let span = debug_span!("model", model = provider.model().id, messages = ask.messages.len());
    // What it is asked is kept while it thinks.
    let keeping = ctx.deps.store.keep_prompt(claimed.turn, kept);
    let asking = async { tokio::join!(provider.complete(&ask, &sink).instrument(span), keeping) };
    let mut asking = Box::pin(asking);
    let (answered, kept) = tokio::select! {
        biased;
        // Cancel-safe: a dropped answer is asked for again.
        () = ctx.interrupted() => {
            if asked.is_some()
                && let Ok((late, _)) = tokio::time::timeout(LAST_ANSWER_WITHIN, asking).await
            {
                settle_cost(ctx, claimed.turn, asked, &late).await?;
            }
            return Err(TurnError::Shutdown);
        }
        answered = &mut asking => answered,
    };
    drop(asking);
    // Paid for from here on, whatever becomes of the turn.
    settle_cost(ctx, claimed.turn, asked, &answered).await?;
    kept?;
    let window = provider.model().context_tokens;
    let reply = answered.map_err(|source| match source.is_too_long() {
        true => TurnError::TooLong { tokens: reads, window, source },
        false => TurnError::Inference(source),
    })?;
    ctx.deps.faults.reach(FaultPoint::ThoughtReceived);
    tell(ctx, claimed.turn, &reply, &left_out);
    Ok(AnsweredTurn { claimed, reply })
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
    AnsweredTurn { claimed, reply: Completion { text, calls, finish, usage, counted } }
}

/// Books the answer at the most that it can cost, unless it costs nothing.
async fn reserve_cost(
    ctx: &AgentContext,
    turn: TurnId,
    most: Microcents,
) -> Result<Option<CostReservation>, TurnError> {
    if most == Microcents::ZERO {
        return Ok(None);
    }
    let store = &ctx.deps.store;
    ctx.settings.budgets.fits(store.thinking_cost().await?, most)?;
    let cloud = ctx.deps.treasury.as_ref().map(|treasury| treasury.cloud().to_owned());
    Ok(Some(store.reserve_cost(NewCostReservation { turn, goal: None, most, cloud }).await?))
}

/// Counts an answer, or takes the booking of one that was refused back. One that was
/// not heard may have been charged, and stays booked.
async fn settle_cost(
    ctx: &AgentContext,
    turn: TurnId,
    asked: Option<CostReservation>,
    answered: &Result<Completion, InferenceError>,
) -> Result<(), StoreError> {
    match (answered, asked) {
        (Ok(reply), asked) => ctx.deps.store.settle_cost(asked, turn, &reply.usage).await,
        (Err(error), Some(asked)) if error.costs_nothing() => {
            ctx.deps.store.release_cost(asked).await
        }
        (Err(_), _) => Ok(()),
    }
}

fn tell_asked(ctx: &AgentContext, (turn, model): (TurnId, &ModelInfo), prompt_tokens: u32) {
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

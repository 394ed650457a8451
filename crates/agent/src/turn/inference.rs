//! Stage 3: the model is asked.
//!
//! Nothing is written here but what the answer costs at its worst, before it is asked for.
//! What was asked, and what it cost, is written with the judgement: a crash before that
//! costs the answer, and what was booked for it is settled at the next start. The end of the
//! process waits for a model only where the answer is being paid for, and only for a moment.
//! Where one does not answer, or may cost too much, the next one of the route is asked in the
//! same turn, and the record says why.

use std::sync::Arc;
use std::time::Duration;

use automaton_core::error::ErrorClass;
use automaton_core::event::Event;
use automaton_core::faults::FaultPoint;
use automaton_core::id::TurnId;
use automaton_core::inference_budget::{CeilingScope, OverCeiling};
use automaton_core::model::{InferenceTask, ModelChoice};
use automaton_core::money::Microcents;
use automaton_core::record::Usage;
use automaton_core::tier::SurvivalTier;
use automaton_core::time::Timestamp;
use automaton_core::tool::ToolName;
use automaton_inference::routing::RouteLimits;
use automaton_inference::{
    Completion, CompletionRequest, FinishReason, InferenceError, ModelIndex, ModelInfo, Provider,
    RawCall, TokenCountSource, TokenSink,
};
use automaton_store::{
    AnswerEnd, Approval, ApprovalSubject, AskedAnswer, CostReservation, PromptRow,
};
use tracing::{Instrument as _, debug_span};

use super::choice::ChoiceTrail;
use super::context::{self, PromptedTurn};
use super::inbox::ClaimedTurn;
use super::{AgentContext, TurnError, WakeContext};
use crate::deps::AgentDeps;
use crate::money;
use crate::prompt::{self, Prompt};

/// Name in place of a model for an approved call.
pub const APPROVED_MODEL: &str = "approval";

/// Task of a turn's model call.
const TASK: InferenceTask = InferenceTask::AgentTurn;

/// Time that the end of the process waits for an answer that costs something.
const LAST_ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// A turn with the model's answer.
#[derive(Debug)]
pub(super) struct AnsweredTurn {
    pub(super) claimed: ClaimedTurn,
    pub(super) reply: Completion,
    /// The request, if a model was asked.
    pub(super) asked: Option<AskedAnswer>,
}

/// Result of asking one model.
enum AnswerAttempt {
    Answered(Completion, AskedAnswer),
    /// It was not asked, since the rule of the tier wishes for something cheaper.
    Unwished(OverCeiling),
    /// It was not asked, since its answer may pass a ceiling.
    TooDear(OverCeiling),
    /// It was asked, and did not answer.
    Failed {
        error: TurnError,
        asked: (PromptRow, Timestamp),
    },
}

/// Reason for a missing answer, with the request, if a model was asked.
type Unanswered = (TurnError, Option<(PromptRow, Timestamp)>);

/// Asks the models of the route one after the other, until one answers. What one that failed may
/// have charged stays booked until it is known; nothing of it is charged for another.
pub(super) async fn ask(
    ctx: &AgentContext,
    mut claimed: ClaimedTurn,
) -> Result<AnsweredTurn, TurnError> {
    let route = ctx.deps.route(TASK, &claimed.wake.vitals);
    let mut choice = ChoiceTrail::begin(&ctx.deps.providers, &claimed.wake, TASK, &route);
    let mut failed: Option<Unanswered> = None;
    // A ceiling of the matrix keeps a cheaper model before a dearer one. It must not silence an
    // automaton that has no other.
    let wished = route.models.iter().map(|at| (*at, route.limits.per_call));
    let all = route.models.iter().map(|at| (*at, None)).filter(|_| route.limits.per_call.is_some());
    let mut tried: Vec<ModelIndex> = Vec::new();
    for (at, per_call) in wished.chain(all) {
        if tried.contains(&at) || !may_stand_in(ctx, at, failed.as_ref()) {
            continue;
        }
        if *ctx.interrupt.borrow() {
            return Err(TurnError::Shutdown);
        }
        (claimed.wake.model, claimed.per_call) = (at, per_call);
        let prompted = context::prompt(ctx, &mut claimed).await?;
        let limits = RouteLimits { per_call, ..route.limits };
        let instead = failed.as_ref().and_then(|(error, _)| choice.failure(error));
        match attempt(ctx, &mut claimed, prompted, limits, instead).await? {
            AnswerAttempt::Answered(reply, asked) => {
                ctx.deps.providers.note(at, None, ctx.deps.ids.now());
                choice.answered(at);
                tell(ctx, claimed.turn, &reply, &claimed.left_out);
                let asked = AskedAnswer { choice: Some(choice.end()), ..asked };
                return Ok(AnsweredTurn { claimed, reply, asked: Some(asked) });
            }
            AnswerAttempt::Unwished(over) => choice.too_dear(at, &over),
            AnswerAttempt::TooDear(over) => {
                tried.push(at);
                choice.too_dear(at, &over);
                failed = Some(likelier(failed, (TurnError::OverBudget(over), None)));
            }
            AnswerAttempt::Failed { error, asked } => {
                tried.push(at);
                choice.failed(at, &error);
                let goes_on = error.fails_over();
                failed = Some(likelier(failed, (error, Some(asked))));
                if !goes_on {
                    break;
                }
            }
        }
    }
    give_up(ctx, &claimed, choice.end(), failed).await
}

/// Returns true if a model may be asked after this failure of another. A weak model does not
/// replace a stronger one that may answer in a moment, or tomorrow.
fn may_stand_in(ctx: &AgentContext, at: ModelIndex, failed: Option<&Unanswered>) -> bool {
    let (model, usual) = (ctx.deps.model(at), ctx.deps.providers.usual());
    let is_weaker = model.weak && !usual.provider.model().weak;
    !is_weaker || failed.is_none_or(|(error, _)| error.is_lasting())
}

/// The failure that passes sooner, by which the turn is tried again; of equal ones the first, and
/// of ceilings the one of the cheaper model.
fn likelier(known: Option<Unanswered>, next: Unanswered) -> Unanswered {
    let Some(known) = known else { return next };
    let is_cheaper = match (&known.0, &next.0) {
        (TurnError::OverBudget(known), TurnError::OverBudget(next)) => next.most < known.most,
        _ => false,
    };
    if is_cheaper || next.0.passes_sooner_than(&known.0) { next } else { known }
}

/// The end of a turn that no model answered.
async fn give_up(
    ctx: &AgentContext,
    claimed: &ClaimedTurn,
    choice: ModelChoice,
    failed: Option<Unanswered>,
) -> Result<AnsweredTurn, TurnError> {
    let Some((error, asked)) = failed else { return Err(TurnError::NoModel) };
    if let Some((prompt, at)) = asked {
        let asked = AskedAnswer { prompt, at, reservation: None, choice: Some(choice) };
        ctx.deps.store.close_asked(claimed.turn, asked, AnswerEnd::Refused).await?;
    }
    Err(error)
}

/// The most that the answer can cost, and what it is estimated to cost.
fn costs(
    model: &ModelInfo,
    ask: &CompletionRequest,
    reads: u32,
) -> Result<[Microcents; 2], InferenceError> {
    let most = money::at_most(model, ask);
    let likely = model.prices.at_most(reads, ask.max_tokens);
    let both = most.and_then(|most| Ok([most, likely?]));
    both.map_err(|source| InferenceError::Cost { source })
}

/// Returns true if all ceilings and the credits leave room for the longest answer.
fn has_room(ctx: &AgentContext, wake: &WakeContext) -> bool {
    let credits = wake.balances.and_then(|balances| balances.credits);
    let fits = ctx.settings.budgets.ceilings.fits(&wake.spend, wake.most);
    fits.is_ok() && credits.is_none_or(|credits| wake.most <= credits)
}

/// Shortens the longest answer to what ceilings and credits pay for, and notes what it can cost at
/// most; what it is estimated to cost.
fn fit_answer(
    ctx: &AgentContext,
    wake: &mut WakeContext,
    model: &ModelInfo,
    ask: &mut CompletionRequest,
    (usual, reads, wished): (u32, u32, Option<Microcents>),
) -> Result<Microcents, InferenceError> {
    let mut likely;
    [wake.most, likely] = costs(model, ask, reads)?;
    if ask.max_tokens > usual && !has_room(ctx, wake) {
        ask.max_tokens = usual;
        [wake.most, likely] = costs(model, ask, reads)?;
    }
    let credits = wake.balances.and_then(|balances| balances.credits);
    let own = ctx.settings.budgets.ceilings.per_call;
    if let Some(most) = credits.into_iter().chain(own).min() {
        ask.max_tokens = money::paid_answer(model, ask, wake.most, most);
    }
    if let Some(wished) = wished {
        ask.max_tokens = money::paid_answer(model, ask, likely, wished);
    }
    [wake.most, likely] = costs(model, ask, reads)?;
    Ok(likely)
}

/// Asks one model.
async fn attempt(
    ctx: &AgentContext,
    claimed: &mut ClaimedTurn,
    prompted: PromptedTurn,
    limits: RouteLimits,
    instead: Option<String>,
) -> Result<AnswerAttempt, TurnError> {
    let PromptedTurn { prompt, tools, moved } = prompted;
    let kept = prompt::prompt_row(&prompt);
    let reads = prompt.tokens();
    let (usual, longest) = answer_lengths(&prompt, limits, &claimed.wake);
    let mut ask = CompletionRequest {
        messages: prompt.messages,
        // Whose last turn it is hands over, and does nothing else.
        tools: if claimed.wake.last { Arc::default() } else { tools },
        left_out: claimed.left_out.clone(),
        max_tokens: longest,
        seed: ctx.settings.sampling.seed,
        temperature_milli: ctx.settings.sampling.temperature_milli,
        name: None,
        silence: Some(limits.silence),
    };
    let provider = Arc::clone(&ctx.deps.providers.get(claimed.wake.model).provider);
    let fitted = fit_answer(
        ctx,
        &mut claimed.wake,
        provider.model(),
        &mut ask,
        (usual, reads, limits.per_call),
    );
    let likely = fitted.map_err(TurnError::Inference)?;
    if let Some(limit) = limits.per_call.filter(|limit| likely > *limit) {
        let (scope, spent) = (CeilingScope::Call, Microcents::ZERO);
        return Ok(AnswerAttempt::Unwished(OverCeiling { scope, spent, most: likely, limit }));
    }
    let (most, ceilings) = (claimed.wake.most, ctx.settings.budgets.ceilings);
    let reservation = match ctx.deps.reserve_cost(claimed.turn, most, ceilings).await? {
        Ok(reservation) => reservation,
        Err(over) => return Ok(AnswerAttempt::TooDear(over)),
    };
    if let Some(failure) = instead {
        tell_instead(ctx, &failure, claimed.wake.model);
    }
    ask.name = reservation.as_ref().map(CostReservation::name);
    tell_asked(ctx, claimed.turn, provider.model(), reads);
    let at = ctx.deps.ids.now();
    match listen(ctx, claimed.turn, &*provider, &ask).await {
        Heard::Answer(Ok(reply)) => {
            ctx.deps.faults.reach(FaultPoint::ThoughtReceived);
            let usual = ctx.deps.providers.usual();
            let (store, model) = (&ctx.deps.store, provider.model());
            PromptedTurn::keep_place(store, moved, model, usual.provider.model()).await?;
            let asked = AskedAnswer { prompt: kept, at, reservation, choice: None };
            Ok(AnswerAttempt::Answered(reply, asked))
        }
        Heard::Answer(Err(source)) => {
            if let (AnswerEnd::Refused, Some(asked)) = (end_of_failed(&source), reservation) {
                ctx.deps.store.release_cost(asked).await?;
            }
            ctx.deps.providers.note(claimed.wake.model, Some(&source), ctx.deps.ids.now());
            let error = failure_of(ctx, provider.model(), reads, source).await;
            Ok(AnswerAttempt::Failed { error, asked: (kept, at) })
        }
        Heard::Interrupted(end) => {
            let asked = AskedAnswer { prompt: kept, at, reservation, choice: None };
            ctx.deps.store.close_asked(claimed.turn, asked, end).await?;
            Err(TurnError::Shutdown)
        }
    }
}

/// Converts a model's failure into one of the turn. A smaller window of its server is remembered.
async fn failure_of(
    ctx: &AgentContext,
    model: &ModelInfo,
    reads: u32,
    source: InferenceError,
) -> TurnError {
    if !source.is_too_long() {
        return TurnError::Inference(source);
    }
    ctx.history_cache.lock().await.refuse(model, source.named_window());
    TurnError::TooLong { tokens: reads, window: model.context_tokens, source }
}

/// The tokens that an answer may have, usually and at most. A rule of the matrix shortens both,
/// and whoever is poor says no more than usual.
fn answer_lengths(prompt: &Prompt, limits: RouteLimits, wake: &WakeContext) -> (u32, u32) {
    let ruled = |tokens: u32| limits.max_tokens.map_or(tokens, |most| tokens.min(most));
    let usual = ruled(prompt.answer_tokens);
    match wake.vitals.effective_tier().is_some_and(SurvivalTier::is_poor) {
        true => (usual, usual),
        false => (usual, ruled(prompt.longest_tokens).max(usual)),
    }
}

/// Result of waiting for a model.
enum Heard {
    Answer(Result<Completion, InferenceError>),
    /// It was given up, since the process or the wake should end.
    Interrupted(AnswerEnd),
}

/// Waits for an answer, unless the process or the wake should end.
async fn listen(
    ctx: &AgentContext,
    turn: TurnId,
    provider: &dyn Provider,
    ask: &CompletionRequest,
) -> Heard {
    let sink = DeltaSink { deps: &ctx.deps, turn };
    let span = debug_span!("model", model = %provider.model().id, messages = ask.messages.len());
    let is_recorded = ctx.deps.treasury.is_some() && ask.name.is_some();
    let mut asking = Box::pin(heard(provider, ask, &sink, is_recorded).instrument(span));
    tokio::select! {
        biased;
        // Cancel-safe: a dropped answer is asked for again.
        () = ctx.interrupted() => {
            let late = match &ask.name {
                Some(_) => tokio::time::timeout(LAST_ANSWER_WITHIN, asking).await.ok(),
                None => None,
            };
            Heard::Interrupted(late.map_or(AnswerEnd::Unheard, end_of))
        }
        answered = &mut asking => Heard::Answer(answered),
    }
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

/// Returns the approved call as if the model had just made it. It did, and nobody else may change
/// it.
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

/// Returns the known cost of an answer that nobody awaited any more. An answer that was not
/// received may have been charged.
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
        unknown_end: usage.unknown_end.clone(),
        left_out: left_out.iter().map(ToString::to_string).collect(),
    });
}

/// Tells the creator that another model is asked, after what failed.
fn tell_instead(ctx: &AgentContext, failure: &str, at: ModelIndex) {
    let next = ctx.deps.providers.get(at);
    let (model, seller) = (&next.provider.model().id, &next.seller);
    let error = format!("{failure}; {model} of {seller} is asked instead");
    ctx.deps.emit(Event::ErrorReported { kind: ErrorClass::Transient, error, hint: None });
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

//! Stage 3: the model is asked.
//!
//! `metered` books what the answer costs at its worst before it is asked for; nothing else is
//! written here. The prompt and the cost are written with the judgement: a crash before that
//! loses the answer, and its reservation is settled at the next start. The end of the process
//! waits for a model only where the answer is being paid for, and only for a moment. If a model
//! does not answer, or may cost too much, the next one of the route is asked in the same turn,
//! and the record says why.

use std::sync::Arc;

use automaton_core::error::ErrorClass;
use automaton_core::event::Event;
use automaton_core::faults::FaultPoint;
use automaton_core::id::TurnId;
use automaton_core::inference_budget::OverCeiling;
use automaton_core::model::{InferenceTask, ModelChoice};
use automaton_core::money::{Microcents, MoneyError};
use automaton_core::record::Usage;
use automaton_core::tier::SurvivalTier;
use automaton_core::tool::ToolName;
use automaton_inference::routing::RouteLimits;
use automaton_inference::{
    Completion, CompletionRequest, FinishReason, InferenceError, ModelIndex, ModelInfo, RawCall,
    TokenCountSource, TokenSink,
};
use automaton_store::{
    Approval, ApprovalSubject, AskedAnswer, DigestRow, HistoryPosition, PromptRow,
};

use super::choice::ChoiceTrail;
use super::context::{self, PromptedTurn};
use super::inbox::ClaimedTurn;
use super::{AgentContext, WakeContext};
use crate::deps::AgentDeps;
use crate::metered::{
    AnswerCost, FailedRequest, MeteredModels, ModelRequest, NotAnswered, PaidAnswer, PricedRequest,
    SpendingLimits, Unanswered, Urgency,
};
use crate::money;
use crate::prompt::{self, Prompt};

/// Name in place of a model for an approved call.
pub const APPROVED_MODEL: &str = "approval";

/// Task of a turn's model call.
const TASK: InferenceTask = InferenceTask::AgentTurn;

/// A turn with the model's answer.
#[derive(Debug)]
pub(super) struct AnsweredTurn {
    pub(super) claimed: ClaimedTurn,
    pub(super) reply: Completion,
    /// The request, if a model was asked.
    pub(super) asked: Option<AskedAnswer>,
}

/// A turn as a request to its models.
struct InferenceRequest<'a> {
    ctx: &'a AgentContext,
    claimed: ClaimedTurn,
    choice: ChoiceTrail<'a>,
    sink: DeltaSink<'a>,
}

/// Record of one prompt of the turn.
struct SentPrompt {
    row: PromptRow,
    /// New beginning of the history, if the prompt moved it.
    moved: Option<(HistoryPosition, Option<DigestRow>)>,
}

impl ModelRequest for InferenceRequest<'_> {
    type Sent = SentPrompt;

    fn urgency(&self) -> Urgency {
        Urgency::Needed
    }

    fn turn(&self) -> TurnId {
        self.claimed.turn
    }

    async fn prepare(
        &mut self,
        model: ModelIndex,
        limits: RouteLimits,
    ) -> Result<PricedRequest<SentPrompt>, NotAnswered> {
        if *self.ctx.interrupt.borrow() {
            return Err(NotAnswered::Interrupted);
        }
        self.claimed.wake.model = model;
        self.claimed.per_call = limits.per_call;
        let prompted = context::prompt(self.ctx, &mut self.claimed).await?;
        let prepared = prepare(self.ctx, &mut self.claimed, prompted, limits);
        prepared.map_err(|source| NotAnswered::Inference(InferenceError::Cost { source }))
    }

    fn note_over_ceiling(&mut self, model: ModelIndex, over: &OverCeiling) {
        self.choice.too_dear(model, over);
    }

    fn note_start(&mut self, model: ModelIndex, tokens: u32, failed: Option<&NotAnswered>) {
        if let Some(failure) = failed.and_then(|error| self.choice.failure(error)) {
            tell_instead(self.ctx, &failure, model);
        }
        tell_asked(self.ctx, self.claimed.turn, &self.ctx.deps.model(model), tokens);
    }

    /// Notes the failure in the trail, and the window of a server that took no more.
    async fn note_failure(&mut self, model: ModelIndex, error: &NotAnswered) {
        if let NotAnswered::TooLong { source, .. } = error {
            let model = self.ctx.deps.model(model);
            self.ctx.history_cache.lock().await.refuse(&model, source.named_window());
        }
        self.choice.failed(model, error);
    }

    fn sink(&self) -> &dyn TokenSink {
        &self.sink
    }

    async fn interrupted(&self) {
        self.ctx.interrupted().await;
    }
}

/// Asks the models of the route one after the other, until one answers.
pub(super) async fn ask(
    ctx: &AgentContext,
    claimed: ClaimedTurn,
) -> Result<AnsweredTurn, NotAnswered> {
    let route = ctx.deps.route(TASK, &claimed.wake.vitals);
    let choice = ChoiceTrail::begin(&ctx.deps.providers, &claimed.wake, TASK, &route);
    let spending = SpendingLimits {
        ceilings: ctx.settings.budgets.ceilings,
        credits: claimed.wake.balances.and_then(|balances| balances.credits),
    };
    let sink = DeltaSink { deps: &ctx.deps, turn: claimed.turn };
    let mut request = InferenceRequest { ctx, claimed, choice, sink };
    let answered = MeteredModels::new(&ctx.deps).complete(&route, spending, &mut request).await;
    let InferenceRequest { claimed, mut choice, .. } = request;
    let paid = match answered {
        Ok(paid) => paid,
        Err(unanswered) => return give_up(ctx, claimed.turn, choice.end(), unanswered).await,
    };
    ctx.deps.faults.reach(FaultPoint::ThoughtReceived);
    let PaidAnswer { answer: reply, model, at, reservation, sent } = paid;
    let default_model = ctx.deps.providers.usual();
    let default_model = default_model.provider.model();
    let answering = ctx.deps.model(model);
    PromptedTurn::keep_place(&ctx.deps.store, sent.moved, &answering, default_model).await?;
    choice.answered(model);
    tell(ctx, claimed.turn, &reply, &claimed.left_out);
    let reservation = reservation.into_booked();
    let asked = AskedAnswer { prompt: sent.row, at, reservation, choice: Some(choice.end()) };
    Ok(AnsweredTurn { claimed, reply, asked: Some(asked) })
}

/// Ends a turn that no model answered. The record keeps its prompt, and its choice of a model
/// unless it was interrupted.
async fn give_up(
    ctx: &AgentContext,
    turn: TurnId,
    choice: ModelChoice,
    unanswered: Unanswered<SentPrompt>,
) -> Result<AnsweredTurn, NotAnswered> {
    let Unanswered { error, asked } = unanswered;
    if let Some(FailedRequest { sent, at, reservation, end }) = asked {
        let is_interrupted = matches!(error, NotAnswered::Interrupted);
        let choice = Some(choice).filter(|_| !is_interrupted);
        let asked = AskedAnswer { prompt: sent.row, at, reservation, choice };
        ctx.deps.store.close_asked(turn, asked, end).await?;
    }
    Err(error)
}

/// Returns true if all ceilings and the credits leave room for the longest answer.
fn has_room(ctx: &AgentContext, wake: &WakeContext) -> bool {
    let credits = wake.balances.and_then(|balances| balances.credits);
    let fits = ctx.settings.budgets.ceilings.fits(&wake.spend, wake.most);
    fits.is_ok() && credits.is_none_or(|credits| wake.most <= credits)
}

/// Shortens the longest answer to what ceilings and credits pay for, and notes what it can cost at
/// most.
fn fit_answer(
    ctx: &AgentContext,
    wake: &mut WakeContext,
    model: &ModelInfo,
    ask: &mut CompletionRequest,
    (usual, reads, wished): (u32, u32, Option<Microcents>),
) -> Result<AnswerCost, MoneyError> {
    let mut cost = AnswerCost::new(model, ask, reads)?;
    wake.most = cost.most;
    if ask.max_tokens > usual && !has_room(ctx, wake) {
        ask.max_tokens = usual;
        cost = AnswerCost::new(model, ask, reads)?;
    }
    let credits = wake.balances.and_then(|balances| balances.credits);
    let own = ctx.settings.budgets.ceilings.per_call;
    if let Some(most) = credits.into_iter().chain(own).min() {
        ask.max_tokens = money::paid_answer(model, ask, cost.most, most);
    }
    if let Some(wished) = wished {
        ask.max_tokens = money::paid_answer(model, ask, cost.likely, wished);
    }
    cost = AnswerCost::new(model, ask, reads)?;
    wake.most = cost.most;
    Ok(cost)
}

/// Builds the request for the model of the turn.
fn prepare(
    ctx: &AgentContext,
    claimed: &mut ClaimedTurn,
    prompted: PromptedTurn,
    limits: RouteLimits,
) -> Result<PricedRequest<SentPrompt>, MoneyError> {
    let PromptedTurn { prompt, tools, moved } = prompted;
    let sent = SentPrompt { row: prompt::prompt_row(&prompt), moved };
    let tokens = prompt.tokens();
    let (usual, longest) = answer_lengths(&prompt, limits, &claimed.wake);
    let mut ask = CompletionRequest {
        messages: prompt.messages,
        // The final turn of a wake gets no tools.
        tools: if claimed.wake.last { Arc::default() } else { tools },
        left_out: claimed.left_out.clone(),
        max_tokens: longest,
        seed: ctx.settings.sampling.seed,
        temperature_milli: ctx.settings.sampling.temperature_milli,
        name: None,
        silence: Some(limits.silence),
    };
    let model = ctx.deps.model(claimed.wake.model);
    let lengths = (usual, tokens, limits.per_call);
    let cost = fit_answer(ctx, &mut claimed.wake, &model, &mut ask, lengths)?;
    Ok(PricedRequest { ask, tokens, cost, sent })
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
    let text = String::new();
    let finish = FinishReason::ToolCalls;
    let counted = TokenCountSource::Reported;
    let reply = Completion { text, calls, finish, usage, counted };
    AnsweredTurn { claimed, reply, asked: None }
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
    let model = &next.provider.model().id;
    let seller = &next.seller;
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

//! Paid answers: each request to a model is routed, booked, sent and settled here.
//!
//! One request goes through these steps:
//!
//! 1. The models of the route are tried in order; [`ModelRequest::prepare`] builds the request
//!    for each.
//! 2. The highest cost is booked under every ceiling, on disk, before anything is sent.
//! 3. The request is sent under the name of its reservation. An answer that is lost on its way
//!    is requested once more by that name, and is charged once.
//! 4. The health of the model is noted.
//! 5. A refusal that costs nothing releases the booking. A failure that may have been charged
//!    leaves it booked. An answer comes with its [`Reservation`], which the caller settles, often
//!    in one transaction with the rows that the answer causes.
//!
//! Nothing here may send a request that is not booked, or release one that may have been charged.

mod error;
mod reservation;
#[cfg(test)]
mod tests;

use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use automaton_core::id::{IdGenerator, TurnId};
use automaton_core::inference_budget::{CeilingScope, InferenceCeilings, OverCeiling};
use automaton_core::money::{Microcents, MoneyError};
use automaton_core::time::Timestamp;
use automaton_inference::routing::RouteLimits;
use automaton_inference::{
    Completion, CompletionRequest, InferenceError, ModelIndex, ModelInfo, NoTokenSink, Provider,
    ProviderRegistry, Route, TokenSink,
};
use automaton_store::{AnswerEnd, CostReservation, NewCostReservation, Store, StoreError};
use tracing::{Instrument as _, debug_span};

pub(crate) use self::error::NotAnswered;
pub(crate) use self::reservation::{OnLostAnswer, Reservation};
use crate::deps::AgentDeps;
use crate::money;
use crate::treasury::Treasury;

/// Time that an interrupted request waits for an answer that is being paid for.
const LAST_ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// Importance of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// The agent cannot go on without it. If every model is above the soft limit of the tier, the
    /// limit is waived; a lost answer is requested again by its name.
    Needed,
    /// It can wait for better times. The soft limit and the credits hold; a lost answer is not
    /// requested again.
    Optional,
}

/// Limits of the money for one answer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SpendingLimits {
    pub(crate) ceilings: InferenceCeilings,
    /// Credits that are left, if known. Only an optional answer must fit them.
    pub(crate) credits: Option<Microcents>,
}

/// Cost of an answer that was not given yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AnswerCost {
    /// Highest cost.
    pub(crate) most: Microcents,
    /// Estimated cost, if the answer has its full length.
    pub(crate) likely: Microcents,
}

impl AnswerCost {
    /// Computes the cost of a request whose prompt has about `tokens` tokens.
    ///
    /// # Errors
    /// [`MoneyError::Overflow`].
    pub(crate) fn new(
        model: &ModelInfo,
        ask: &CompletionRequest,
        tokens: u32,
    ) -> Result<Self, MoneyError> {
        let most = money::at_most(model, ask)?;
        let likely = model.prices.at_most(tokens, ask.max_tokens)?;
        Ok(Self { most, likely })
    }
}

/// A request as one model gets it.
#[derive(Debug)]
pub(crate) struct PricedRequest<S> {
    pub(crate) ask: CompletionRequest,
    /// Estimated tokens of the prompt.
    pub(crate) tokens: u32,
    pub(crate) cost: AnswerCost,
    /// Record of the caller about this prompt. It comes back with the outcome.
    pub(crate) sent: S,
}

/// A request that is built anew for each model that is tried.
pub(crate) trait ModelRequest {
    /// Record of the caller about one prompt.
    type Sent;

    /// Returns the importance of the answer.
    fn urgency(&self) -> Urgency;

    /// Returns the turn to which the cost is booked.
    fn turn(&self) -> TurnId;

    /// Builds the request for a model. An error ends the whole request.
    fn prepare(
        &mut self,
        model: ModelIndex,
        limits: RouteLimits,
    ) -> impl Future<Output = Result<PricedRequest<Self::Sent>, NotAnswered>> + Send;

    /// Notes that a model was not asked because its answer may cost too much.
    fn note_over_ceiling(&mut self, _model: ModelIndex, _over: &OverCeiling) {}

    /// Notes that a model is asked now; `failed` is the most recoverable failure before it.
    fn note_start(&mut self, _model: ModelIndex, _tokens: u32, _failed: Option<&NotAnswered>) {}

    /// Notes that a model was asked and failed.
    fn note_failure(
        &mut self,
        _model: ModelIndex,
        _error: &NotAnswered,
    ) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Returns the receiver of the answer's pieces.
    fn sink(&self) -> &dyn TokenSink {
        &NoTokenSink
    }

    /// Returns when the request should be given up. Cancel-safe.
    fn interrupted(&self) -> impl Future<Output = ()> + Send {
        pending()
    }
}

/// An answer with its reservation, which is still to be settled.
pub(crate) struct PaidAnswer<S> {
    pub(crate) answer: Completion,
    pub(crate) model: ModelIndex,
    /// Time of the request.
    pub(crate) at: Timestamp,
    pub(crate) reservation: Reservation,
    pub(crate) sent: S,
}

/// A request that no model answered.
#[derive(Debug)]
pub(crate) struct Unanswered<S> {
    /// The most recoverable failure.
    pub(crate) error: NotAnswered,
    /// The request of that failure, if one was sent.
    pub(crate) asked: Option<FailedRequest<S>>,
}

/// A request that was sent and has no answer.
#[derive(Debug)]
pub(crate) struct FailedRequest<S> {
    pub(crate) sent: S,
    /// Time of the request.
    pub(crate) at: Timestamp,
    /// Reservation that is still to be closed, by `end`.
    pub(crate) reservation: Option<CostReservation>,
    pub(crate) end: AnswerEnd,
}

impl<S> From<NotAnswered> for Unanswered<S> {
    fn from(error: NotAnswered) -> Self {
        Self { error, asked: None }
    }
}

impl<S> From<StoreError> for Unanswered<S> {
    fn from(error: StoreError) -> Self {
        NotAnswered::from(error).into()
    }
}

/// Outcome of trying one model.
enum ModelAttempt<S> {
    Answered(PaidAnswer<S>),
    /// It was not asked: the tier wants a cheaper answer.
    OverSoftLimit(OverCeiling),
    /// It was not asked: the answer may pass a ceiling.
    OverCeiling(OverCeiling),
    Failed(Unanswered<S>),
}

/// Outcome of sending one request.
enum SendOutcome {
    Ended(Result<Completion, InferenceError>),
    Interrupted(AnswerEnd),
}

/// The models of an automaton, whose answers are paid for.
#[derive(Clone, Copy)]
pub(crate) struct MeteredModels<'a> {
    store: &'a Store,
    providers: &'a ProviderRegistry,
    ids: &'a IdGenerator,
    /// The cloud that sells the answers and records them by name, if one does.
    cloud: Option<&'a str>,
}

impl<'a> MeteredModels<'a> {
    /// Creates the metered models of an automaton.
    pub(crate) fn new(deps: &'a AgentDeps) -> Self {
        let cloud = deps.treasury.as_deref().map(Treasury::cloud);
        Self { store: &deps.store, providers: &deps.providers, ids: &deps.ids, cloud }
    }

    /// Sends a request to the models of a route, one after the other, until one answers. The cost
    /// of a failed request stays booked until it is known; no other request is charged for it.
    ///
    /// # Errors
    /// The most recoverable failure, by which the caller decides when to try again.
    pub(crate) async fn complete<R: ModelRequest + Sync>(
        &self,
        route: &Route,
        spending: SpendingLimits,
        request: &mut R,
    ) -> Result<PaidAnswer<R::Sent>, Unanswered<R::Sent>> {
        let mut tried: Vec<ModelIndex> = Vec::new();
        let mut failed: Option<Unanswered<R::Sent>> = None;
        let mut over_soft_limit = None;
        for (model, per_call) in candidates(route, request.urgency()) {
            let known = failed.as_ref().map(|failed| &failed.error);
            if tried.contains(&model) || !self.may_stand_in(model, known) {
                continue;
            }
            let limits = RouteLimits { per_call, ..route.limits };
            match self.attempt(model, (limits, spending), request, known).await? {
                ModelAttempt::Answered(answer) => return Ok(answer),
                ModelAttempt::OverSoftLimit(over) => {
                    request.note_over_ceiling(model, &over);
                    over_soft_limit = Some(over);
                }
                ModelAttempt::OverCeiling(over) => {
                    tried.push(model);
                    request.note_over_ceiling(model, &over);
                    let next = NotAnswered::OverCeiling(over).into();
                    failed = Some(more_recoverable(failed, next));
                }
                ModelAttempt::Failed(next) => {
                    tried.push(model);
                    request.note_failure(model, &next.error).await;
                    let fails_over = next.error.fails_over();
                    failed = Some(more_recoverable(failed, next));
                    if !fails_over {
                        break;
                    }
                }
            }
        }
        let unasked = over_soft_limit.map_or(NotAnswered::NoModel, NotAnswered::OverSoftLimit);
        Err(failed.unwrap_or_else(|| unasked.into()))
    }

    /// Returns true if a model may be asked after a failure. A weak model does not do the work of
    /// a stronger one that may answer again soon.
    fn may_stand_in(&self, model: ModelIndex, failed: Option<&NotAnswered>) -> bool {
        let default_model = self.providers.usual();
        let is_weaker =
            self.providers.get(model).provider.model().weak && !default_model.provider.model().weak;
        !is_weaker || failed.is_none_or(NotAnswered::is_lasting)
    }

    /// Tries one model.
    async fn attempt<R: ModelRequest + Sync>(
        &self,
        model: ModelIndex,
        (limits, spending): (RouteLimits, SpendingLimits),
        request: &mut R,
        failed: Option<&NotAnswered>,
    ) -> Result<ModelAttempt<R::Sent>, Unanswered<R::Sent>> {
        let prepared = request.prepare(model, limits).await?;
        let PricedRequest { mut ask, tokens, cost, sent } = prepared;
        if let Some(over) = over_soft_limit(cost, limits, spending, request.urgency()) {
            return Ok(ModelAttempt::OverSoftLimit(over));
        }
        let reserved = self.reserve(request.turn(), cost.most, spending.ceilings).await?;
        let reservation = match reserved {
            Ok(reservation) => reservation,
            Err(over) => return Ok(ModelAttempt::OverCeiling(over)),
        };
        ask.name = reservation.name();
        request.note_start(model, tokens, failed);
        let provider = Arc::clone(&self.providers.get(model).provider);
        let at = self.ids.now();
        match self.send(&*provider, &ask, &reservation, &*request).await {
            SendOutcome::Ended(Ok(answer)) => {
                self.providers.note(model, None, self.ids.now());
                Ok(ModelAttempt::Answered(PaidAnswer { answer, model, at, reservation, sent }))
            }
            SendOutcome::Ended(Err(source)) => {
                reservation.close_failed(&source).await?;
                self.providers.note(model, Some(&source), self.ids.now());
                let window = provider.model().context_tokens;
                let error = NotAnswered::from_model(source, tokens, window);
                let end = AnswerEnd::Refused;
                let asked = FailedRequest { sent, at, reservation: None, end };
                Ok(ModelAttempt::Failed(Unanswered { error, asked: Some(asked) }))
            }
            SendOutcome::Interrupted(end) => {
                let reservation = reservation.into_booked();
                let asked = FailedRequest { sent, at, reservation, end };
                Err(Unanswered { error: NotAnswered::Interrupted, asked: Some(asked) })
            }
        }
    }

    /// Books an answer at its highest cost. The inner error is the ceiling that it would pass.
    async fn reserve(
        &self,
        turn: TurnId,
        most: Microcents,
        ceilings: InferenceCeilings,
    ) -> Result<Result<Reservation, OverCeiling>, StoreError> {
        if most == Microcents::ZERO {
            return Ok(Ok(Reservation::free(self.store)));
        }
        let cloud = self.cloud.map(ToOwned::to_owned);
        let cost = NewCostReservation { turn, goal: None, most, cloud, ceilings };
        Reservation::book(self.store, cost).await
    }

    /// Sends a request and waits for its answer, unless the caller interrupts it.
    async fn send<R: ModelRequest + Sync>(
        &self,
        provider: &dyn Provider,
        ask: &CompletionRequest,
        reservation: &Reservation,
        request: &R,
    ) -> SendOutcome {
        // Only a cloud records answers by name.
        let is_recorded = self.cloud.is_some();
        let on_lost = match request.urgency() {
            Urgency::Needed if is_recorded => OnLostAnswer::AskAgain,
            Urgency::Needed | Urgency::Optional => OnLostAnswer::GiveUp,
        };
        let sink = request.sink();
        let span =
            debug_span!("model", model = %provider.model().id, messages = ask.messages.len());
        let asking = reservation.ask(on_lost, || provider.complete(ask, sink));
        let mut asking = Box::pin(asking.instrument(span));
        tokio::select! {
            biased;
            // Cancel-safe: a dropped answer is asked for again.
            () = request.interrupted() => {
                let late = match &ask.name {
                    Some(_) => tokio::time::timeout(LAST_ANSWER_WITHIN, asking).await.ok(),
                    None => None,
                };
                SendOutcome::Interrupted(late.map_or(AnswerEnd::Unheard, late_end))
            }
            answered = &mut asking => SendOutcome::Ended(answered),
        }
    }
}

/// Returns the models to try, each with its soft limit. The soft limit of a tier prefers a cheaper
/// model; if the answer is needed, the limit is waived once every model has been passed over.
fn candidates(
    route: &Route,
    urgency: Urgency,
) -> impl Iterator<Item = (ModelIndex, Option<Microcents>)> + Send + '_ {
    let soft_limit = route.limits.per_call;
    let is_waived = soft_limit.is_some() && urgency == Urgency::Needed;
    let limited = route.models.iter().map(move |model| (*model, soft_limit));
    let unlimited = route.models.iter().map(|model| (*model, None));
    limited.chain(unlimited.filter(move |_| is_waived))
}

/// Returns the soft limit that an answer passes, if it passes one.
fn over_soft_limit(
    cost: AnswerCost,
    limits: RouteLimits,
    spending: SpendingLimits,
    urgency: Urgency,
) -> Option<OverCeiling> {
    let credits = spending.credits.map(|credits| credits.max(Microcents::ZERO));
    let over_tier = limits.per_call.filter(|limit| cost.likely > *limit);
    let over_credits =
        credits.filter(|credits| urgency == Urgency::Optional && cost.most > *credits);
    let limit = over_tier.or(over_credits)?;
    Some(OverCeiling {
        scope: CeilingScope::Call,
        spent: Microcents::ZERO,
        most: cost.likely,
        limit,
    })
}

/// Returns the failure that passes sooner. Of equal ones it is the first, and of ceilings the one
/// of the cheaper model.
fn more_recoverable<S>(known: Option<Unanswered<S>>, next: Unanswered<S>) -> Unanswered<S> {
    let Some(known) = known else { return next };
    let is_cheaper = match (&known.error, &next.error) {
        (NotAnswered::OverCeiling(known), NotAnswered::OverCeiling(next)) => next.most < known.most,
        _ => false,
    };
    if is_cheaper || next.error.passes_sooner_than(&known.error) { next } else { known }
}

/// Returns the end of a request whose answer came after its interruption. An answer that failed
/// may have been charged.
fn late_end(answered: Result<Completion, InferenceError>) -> AnswerEnd {
    match answered {
        Ok(answer) => AnswerEnd::Heard(answer.usage),
        Err(error) if error.costs_nothing() => AnswerEnd::Refused,
        Err(_) => AnswerEnd::Unheard,
    }
}

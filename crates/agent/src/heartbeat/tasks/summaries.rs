//! `summarize_history`: has a model sum up the turns that no prompt shows any more.
//!
//! Rules have summed them up when they were cut; a summary takes the place of most of these lines
//! when the history is cut again, and is an event of the memory. It is asked for within every
//! budget, and booked before it is: whoever is too poor for it keeps the rules' sum, and so does
//! whoever thinks with a weak model.

use std::sync::Arc;

use automaton_core::id::TurnId;
use automaton_core::model::InferenceTask;
use automaton_core::money::Microcents;
use automaton_core::time::Span;
use automaton_inference::routing::RouteLimits;
use automaton_inference::{CompletionRequest, ModelIndex, ModelInfo, NoTokenSink};
use automaton_memory::tokens;
use automaton_policy::guard::Guard;
use automaton_store::{CostReservation, NewSummary};
use futures_util::FutureExt;

use super::{TaskContext, TaskFailure, TaskReport, TaskSpec, TickContext};
use crate::heartbeat::due::Need;
use crate::money;
use crate::prompt::{ANSWER_TOKENS, SUMMARIZED_MAX, SummaryRequest, summary_request};

pub(super) const TASK: TaskSpec = TaskSpec {
    name: "summarize_history",
    need: Need::Other,
    essential: false,
    cron: "*/10 * * * *",
    timeout: Span::from_secs(120),
    max_retries: 0,
    is_available: |_| true,
    run: |ground, tick| summarize(ground, tick).boxed(),
};

/// Temperature of a summary, in thousandths.
const TEMPERATURE_MILLI: u32 = 100;

async fn summarize(ground: &TaskContext, tick: &TickContext) -> Result<TaskReport, TaskFailure> {
    let deps = &ground.deps;
    if !ground.settings.summaries {
        return Ok(TaskReport::done("summarizeHistory is false".to_owned()));
    }
    let route = deps.route(InferenceTask::Summarization, &tick.vitals);
    let able = route.models.iter().copied().find(|at| !deps.model(*at).weak);
    let Some(at) = able else {
        return Ok(TaskReport::done("there is no model for it".to_owned()));
    };
    let waiting = deps.store.unsummarized(SUMMARIZED_MAX).await?;
    let guard = Guard::new()?;
    let tools = deps.toolbox.current();
    let Some(request) = summary_request(&waiting, &deps.model(at), &guard, &tools) else {
        return Ok(TaskReport::done("nothing waits".to_owned()));
    };
    let mut ask = question(ground, &request, route.limits);
    let reservation = match reserve(ground, tick, &request, at, &ask, route.limits).await? {
        Ok(reservation) => reservation,
        Err(why) => return Ok(TaskReport::done(why)),
    };
    ask.name = reservation.as_ref().map(CostReservation::name);
    let provider = Arc::clone(&deps.providers.get(at).provider);
    let answered = provider.complete(&ask, &NoTokenSink).await;
    deps.providers.note(at, answered.as_ref().err(), deps.ids.now());
    let reply = match (answered, reservation) {
        (Ok(reply), reservation) => (reply, reservation),
        (Err(error), Some(asked)) if error.costs_nothing() => {
            deps.store.release_cost(asked).await?;
            return Err(error.into());
        }
        // What may have been charged stays booked.
        (Err(error), _) => return Err(error.into()),
    };
    let (reply, reservation) = reply;
    let summary = request.summary(&reply.text, &guard);
    let (before, after) = (request.tokens, tokens::estimate(&summary.text));
    let turns = format!("turns {} to {}", summary.from, summary.upto.saturating_sub(1));
    let told = match summary.text.is_empty() {
        true => format!("{turns}: the model's summary was of no use"),
        false => format!("{turns}: {before} tokens to {after}, for {}", reply.usage.cost),
    };
    let (last, usage) = (request.last, reply.usage);
    let kept = NewSummary { summary, last, tokens_before: before, tokens_after: after, usage };
    deps.store.keep_summary(reservation, kept).await?;
    Ok(TaskReport::done(told))
}

fn question(
    ground: &TaskContext,
    request: &SummaryRequest,
    limits: RouteLimits,
) -> CompletionRequest {
    CompletionRequest {
        messages: request.messages.clone(),
        tools: Arc::default(),
        left_out: Vec::new(),
        max_tokens: limits.max_tokens.map_or(ANSWER_TOKENS, |most| most.min(ANSWER_TOKENS)),
        seed: ground.settings.sampling.seed,
        temperature_milli: TEMPERATURE_MILLI,
        name: None,
        silence: Some(limits.silence),
    }
}

/// Books what the answer can cost at most, where it costs anything. The inner error says why it is
/// not asked for.
async fn reserve(
    ground: &TaskContext,
    tick: &TickContext,
    request: &SummaryRequest,
    at: ModelIndex,
    ask: &CompletionRequest,
    limits: RouteLimits,
) -> Result<Result<Option<CostReservation>, String>, TaskFailure> {
    let deps = &ground.deps;
    let model: ModelInfo = deps.model(at);
    let (most, turn): (Microcents, TurnId) = (money::at_most(&model, ask)?, request.last.1);
    let likely = model.prices.at_most(request.tokens, ask.max_tokens)?;
    let credits = tick.balances.and_then(|balances| balances.credits);
    if limits.per_call.is_some_and(|limit| likely > limit)
        || credits.is_some_and(|it| most > it.max(Microcents::ZERO))
    {
        return Ok(Err(format!("{likely} is too much for it now")));
    }
    let reserved = deps.reserve_cost(turn, most, ground.settings.budgets.ceilings);
    Ok(reserved.await?.map_err(|over| format!("it waits: {over}")))
}

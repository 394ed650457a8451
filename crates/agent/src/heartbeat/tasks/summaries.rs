//! `summarize_history`: has a model sum up the turns that no prompt shows any more.
//!
//! Rules have summed them up when they were cut; a summary takes the place of most of these lines
//! when the history is cut again, and is an event of the memory. It is asked for within every
//! budget, and booked before it is: whoever is too poor for it keeps the rules' sum, and so does
//! whoever thinks with a weak model.

use std::sync::Arc;

use automaton_core::id::TurnId;
use automaton_core::model::InferenceTask;
use automaton_core::time::Span;
use automaton_inference::routing::RouteLimits;
use automaton_inference::{CompletionRequest, InferenceError, ModelIndex, Route};
use automaton_memory::tokens;
use automaton_policy::guard::Guard;
use automaton_store::NewSummary;
use futures_util::FutureExt;

use super::{TaskContext, TaskFailure, TaskReport, TaskSpec, TickContext};
use crate::heartbeat::due::Need;
use crate::metered::{
    AnswerCost, MeteredModels, ModelRequest, NotAnswered, PricedRequest, SpendingLimits, Urgency,
};
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
    let limits = SpendingLimits {
        ceilings: ground.settings.budgets.ceilings,
        credits: tick.balances.and_then(|balances| balances.credits),
    };
    let route = Route { models: vec![at], ..route };
    let mut asked = SummaryInference { ground, request: &request };
    let paid = match MeteredModels::new(deps).complete(&route, limits, &mut asked).await {
        Ok(paid) => paid,
        Err(unanswered) => return report_unanswered(unanswered.error),
    };
    let reply = paid.answer;
    let summary = request.summary(&reply.text, &guard);
    let before = request.tokens;
    let after = tokens::estimate(&summary.text);
    let turns = format!("turns {} to {}", summary.from, summary.upto.saturating_sub(1));
    let told = match summary.text.is_empty() {
        true => format!("{turns}: the model's summary was of no use"),
        false => format!("{turns}: {before} tokens to {after}, for {}", reply.usage.cost),
    };
    let last = request.last;
    let usage = reply.usage;
    let kept = NewSummary { summary, last, tokens_before: before, tokens_after: after, usage };
    deps.store.keep_summary(paid.reservation.into_booked(), kept).await?;
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

/// A summary as a request to its model.
struct SummaryInference<'a> {
    ground: &'a TaskContext,
    request: &'a SummaryRequest,
}

impl ModelRequest for SummaryInference<'_> {
    type Sent = ();

    fn urgency(&self) -> Urgency {
        Urgency::Optional
    }

    fn turn(&self) -> TurnId {
        self.request.last.1
    }

    async fn prepare(
        &mut self,
        model: ModelIndex,
        limits: RouteLimits,
    ) -> Result<PricedRequest<()>, NotAnswered> {
        let ask = question(self.ground, self.request, limits);
        let tokens = self.request.tokens;
        let cost = AnswerCost::new(&self.ground.deps.model(model), &ask, tokens)
            .map_err(|source| NotAnswered::Inference(InferenceError::Cost { source }))?;
        Ok(PricedRequest { ask, tokens, cost, sent: () })
    }
}

/// Reports a summary that was not made: one that is too dear waits, anything else is a failure.
fn report_unanswered(error: NotAnswered) -> Result<TaskReport, TaskFailure> {
    match error {
        NotAnswered::OverSoftLimit(over) => {
            Ok(TaskReport::done(format!("{} is too much for it now", over.most)))
        }
        NotAnswered::OverCeiling(over) => Ok(TaskReport::done(format!("it waits: {over}"))),
        NotAnswered::Inference(InferenceError::Cost { source }) => Err(source.into()),
        NotAnswered::Inference(source) | NotAnswered::TooLong { source, .. } => Err(source.into()),
        error => Err(error.into()),
    }
}

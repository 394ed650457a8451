//! `refresh_models`: asks the cloud which models it sells, and notices when the one
//! that the automaton thinks with is no longer among them.

use automaton_core::record::WakeSource;
use automaton_core::time::Span;
use futures_util::FutureExt;

use super::{TaskContext, TaskFailure, TaskReport, TaskSpec, TickContext};
use crate::heartbeat::due::Need;
use crate::wake::cause;

pub(super) const TASK: TaskSpec = TaskSpec {
    name: "refresh_models",
    need: Need::Other,
    essential: false,
    cron: "10 * * * *",
    timeout: Span::from_secs(30),
    max_retries: 1,
    is_available: |deps| deps.treasury.as_ref().is_some_and(|treasury| treasury.has_account()),
    run: |ground, tick| refresh(ground, tick).boxed(),
};

async fn refresh(ground: &TaskContext, _tick: &TickContext) -> Result<TaskReport, TaskFailure> {
    let nothing = || TaskFailure("there is no account with a cloud".to_owned());
    let treasury = ground.deps.treasury.as_ref().ok_or_else(nothing)?;
    let sold = treasury.models().await?.ok_or_else(nothing)?.data;
    let own = &ground.deps.providers.usual().model().id;
    let found = sold.iter().any(|model| model.id == *own && model.available);
    // Who thinks with a model of its own buys none.
    let bought = ground.deps.providers.usual().model().prices.output_per_million.units() > 0;
    let gone = bought && !found;
    let reason = "The cloud no longer sells the model that you think with.";
    let wake = gone.then(|| cause(WakeSource::Heartbeat, reason));
    Ok(TaskReport::done(format!("{} models for sale", sold.len())).waking(wake))
}

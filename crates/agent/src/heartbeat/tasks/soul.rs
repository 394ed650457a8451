//! `soul_reflection`: has the automaton look at itself, and wakes it where it is advised something
//! that it was not advised before.

use automaton_core::record::WakeSource;
use automaton_core::time::Span;
use futures_util::FutureExt;

use super::{TaskContext, TaskFailure, TaskReport, TaskSpec, TickContext};
use crate::heartbeat::due::Need;
use crate::wake::cause;

pub(super) const TASK: TaskSpec = TaskSpec {
    name: "soul_reflection",
    need: Need::Other,
    essential: false,
    cron: "20 * * * *",
    timeout: Span::from_secs(30),
    max_retries: 0,
    is_available: |_| true,
    run: |ground, tick| reflect(ground, tick).boxed(),
};

async fn reflect(ground: &TaskContext, _tick: &TickContext) -> Result<TaskReport, TaskFailure> {
    if !ground.settings.soul.reflects {
        return Ok(TaskReport::done("soulConfig.enableSoulReflection is false".to_owned()));
    }
    let soul = &ground.soul;
    soul.check_view().await?;
    let seen = soul.reflect().await.map_err(|error| TaskFailure(error.message))?;
    let is_news = !seen.suggestion.is_empty() && !seen.is_known;
    let wake = is_news.then(|| cause(WakeSource::Heartbeat, &seen.summary()));
    Ok(TaskReport::done(seen.summary()).waking(wake))
}

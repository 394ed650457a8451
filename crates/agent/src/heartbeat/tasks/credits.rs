//! `check_credits`: takes note of the credits that the tick has read, and wakes one whose
//! last ones they have become while it slept.
//!
//! What they make of the life happens where it lives; this task must never change its
//! state, and a balance that could not be read is told as such.

use futures_util::FutureExt;

use automaton_core::time::Span;

use super::{TaskContext, TaskFailure, TaskReport, TaskSpec, TickContext};
use crate::heartbeat::due::Need;
use crate::survival;

// tool-name-ok: a task of the heartbeat, which runs without the tool.
const NAME: &str = "check_credits";

pub(super) const TASK: TaskSpec = TaskSpec {
    name: NAME,
    need: Need::Essential,
    essential: true,
    cron: "*/5 * * * *",
    timeout: Span::from_secs(30),
    max_retries: 1,
    is_available: |deps| deps.treasury.is_some(),
    run: |ground, tick| credits(ground, tick).boxed(),
};

async fn credits(ground: &TaskContext, tick: &TickContext) -> Result<TaskReport, TaskFailure> {
    let Some(balances) = &tick.balances else {
        return Ok(TaskReport::failed("the balances could not be read".to_owned()));
    };
    let vitals = survival::note(&ground.deps, balances, None).await?;
    let shown = balances.credits_shown();
    if balances.credits.is_none() {
        return Ok(TaskReport::failed(format!("credits: {shown}")));
    }
    let broke = vitals.and_then(|vitals| vitals.broke_for);
    let broke = broke.map_or_else(String::new, |span| format!(", broke for {span}"));
    let news = match vitals.zip(ground.asleep_since().await?) {
        Some((vitals, since)) => survival::tier_drop_notice(&ground.deps, since, &vitals).await?,
        None => None,
    };
    Ok(TaskReport::done(format!("credits: {shown}{broke}")).telling(NAME, news))
}

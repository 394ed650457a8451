//! `heartbeat_ping`: says that the automaton is alive, at the cloud where its creator
//! reads it. Without an account there is nobody to say it to but the record.

use automaton_client::CloudClientError;
use automaton_core::time::Span;
use automaton_core::wire::cloud::StatusReport;
use futures_util::FutureExt;

use super::{TaskContext, TaskFailure, TaskReport, TaskSpec, TickContext, always};
use crate::deps::AgentDeps;
use crate::heartbeat::due::Need;

pub(super) const TASK: TaskSpec = TaskSpec {
    // tool-name-ok: a task of the heartbeat, which runs without the tool.
    name: "heartbeat_ping",
    need: Need::Essential,
    essential: true,
    cron: "*/15 * * * *",
    timeout: Span::from_secs(30),
    max_retries: 1,
    is_available: always,
    run: |ground, tick| ping(ground, tick).boxed(),
};

async fn ping(ground: &TaskContext, tick: &TickContext) -> Result<TaskReport, TaskFailure> {
    let (how, posted) = post(&ground.settings.name, &ground.deps, tick).await?;
    let told = if posted { ", told to the cloud" } else { "" };
    Ok(TaskReport::done(format!("{how}{told}")))
}

/// Says now how the automaton is: how that is in words, and whether the cloud was told.
///
/// # Errors
/// When the cloud does not take it.
pub(crate) async fn post(
    name: &str,
    deps: &AgentDeps,
    tick: &TickContext,
) -> Result<(String, bool), CloudClientError> {
    let life = &tick.life;
    let now = tick.now;
    let known = tick.balances;
    let status = StatusReport {
        name: name.to_owned(),
        state: life.state,
        tier: tick.tier(),
        credits_microcents: known.and_then(|balances| balances.credits),
        usdc_units: known.and_then(|balances| balances.usdc),
        turns: life.turns,
        born_at_ms: life.born_at,
        started_at_ms: Some(deps.started_at),
        sleeps_until_ms: life.sleep.and_then(|sleep| sleep.until),
        at_ms: now,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let posted = match &deps.treasury {
        Some(treasury) => treasury.report_status(&status).await?,
        None => false,
    };
    let age = now.since(life.born_at);
    let uptime = now.since(deps.started_at);
    let told = format!("{}, {} turns, born {age} ago, up for {uptime}", life.state, life.turns);
    Ok((told, posted))
}

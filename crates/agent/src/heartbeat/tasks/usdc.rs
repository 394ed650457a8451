//! `check_usdc_balance`: buys credits for one that is poor and has USDC.
//!
//! The treasury decides whether it may, and never does so on a balance that was not
//! read.

use futures_util::FutureExt;

use automaton_core::time::Span;

use super::{TaskContext, TaskFailure, TaskReport, TaskSpec, TickContext};
use crate::heartbeat::due::Need;
use crate::treasury::TopUpTrigger;

pub(super) const TASK: TaskSpec = TaskSpec {
    name: "check_usdc_balance",
    need: Need::Essential,
    essential: true,
    cron: "*/5 * * * *",
    timeout: Span::from_secs(30),
    max_retries: 1,
    is_available: |deps| deps.treasury.is_some(),
    run: |ground, tick| usdc(ground, tick).boxed(),
};

async fn usdc(ground: &TaskContext, tick: &TickContext) -> Result<TaskReport, TaskFailure> {
    let (Some(treasury), Some(balances)) = (&ground.deps.treasury, tick.balances) else {
        return Ok(TaskReport::failed("the balances could not be read".to_owned()));
    };
    let poor = tick.tier().is_some_and(automaton_core::tier::SurvivalTier::is_poor);
    let balances = if poor { treasury.check_balances(TopUpTrigger::Turn).await } else { balances };
    let shown = format!("in the wallet: {}", balances.usdc_shown());
    Ok(if balances.usdc.is_some() { TaskReport::done(shown) } else { TaskReport::failed(shown) })
}

//! `check_usdc_balance`: buys credits for one that is poor and has USDC, and wakes one that
//! slept meanwhile when a purchase is over.
//!
//! The treasury decides whether it may, and never does so on a balance that was not
//! read.

use futures_util::FutureExt;

use automaton_core::payment::{Payment, PaymentState, Purpose};
use automaton_core::time::{Span, Timestamp};
use automaton_store::{Store, StoreError};

use super::{TaskContext, TaskFailure, TaskReport, TaskSpec, TickContext};
use crate::heartbeat::due::Need;

// tool-name-ok: a task of the heartbeat, which runs without the tool.
const NAME: &str = "check_usdc_balance";

pub(super) const TASK: TaskSpec = TaskSpec {
    name: NAME,
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
    let balances = if poor { treasury.check_balances().await } else { balances };
    let news = match ground.asleep_since().await? {
        Some(since) => match treasury.failing().filter(|(began, _)| *began > since) {
            Some((_, remedy)) => {
                Some(format!("A top-up failed, and nothing was bought or paid: {remedy}."))
            }
            None => ended(&ground.deps.store, since).await?,
        },
        None => None,
    };
    let shown = format!("in the wallet: {}", balances.usdc_shown());
    let report =
        if balances.usdc.is_some() { TaskReport::done(shown) } else { TaskReport::failed(shown) };
    Ok(report.telling(NAME, news))
}

/// Returns the end of the last top-up since then, however it was caused.
async fn ended(store: &Store, since: Timestamp) -> Result<Option<String>, StoreError> {
    let ended = store.ended_payment(Purpose::TopUp, since).await?;
    Ok(ended.map(|Payment { id, terms, state, .. }| {
        let paid = terms.money.usdc();
        match state {
            PaymentState::Settled => {
                format!("A top-up came in: {paid} bought credits of that worth (payment {id}).")
            }
            _ => format!("A top-up of {paid} came to nothing, and cost nothing (payment {id})."),
        }
    }))
}

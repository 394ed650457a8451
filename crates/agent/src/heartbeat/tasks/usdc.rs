//! `check_usdc_balance`: buys credits for one that is poor and has USDC.
//!
//! The treasury decides whether it may, and never does so on a balance that was not
//! read.

use futures_util::FutureExt;

use automaton_core::time::Span;

use super::{Beat, Failed, Ground, Report, Tick};
use crate::heartbeat::due::Need;
use crate::treasury::Moment;

pub(super) const BEAT: Beat = Beat {
    name: "check_usdc_balance",
    need: Need::Essential,
    kept: true,
    cron: "*/5 * * * *",
    timeout: Span::from_secs(30),
    max_retries: 1,
    offered: |deps| deps.treasury.is_some(),
    run: |ground, tick| usdc(ground, tick).boxed(),
};

async fn usdc(ground: &Ground, tick: &Tick) -> Result<Report, Failed> {
    let (Some(treasury), Some(balances)) = (&ground.deps.treasury, tick.balances) else {
        return Ok(Report::failed("the balances could not be read".to_owned()));
    };
    let poor = tick.tier().is_some_and(automaton_core::tier::SurvivalTier::is_poor);
    let balances = if poor { treasury.look(Moment::Turn).await } else { balances };
    let shown = format!("in the wallet: {}", balances.usdc_shown());
    Ok(if balances.usdc.is_some() { Report::done(shown) } else { Report::failed(shown) })
}

//! `reconcile_payments`: asks what became of payments that are open, and compares the
//! books.

use automaton_core::time::Span;
use futures_util::FutureExt;

use super::{Beat, Failed, Ground, Report, Tick};
use crate::heartbeat::due::Need;

pub(super) const BEAT: Beat = Beat {
    name: "reconcile_payments",
    need: Need::Other,
    kept: true,
    cron: "*/5 * * * *",
    timeout: Span::from_secs(60),
    max_retries: 1,
    offered: |deps| deps.treasury.is_some(),
    run: |ground, tick| payments(ground, tick).boxed(),
};

async fn payments(ground: &Ground, _tick: &Tick) -> Result<Report, Failed> {
    let treasury = ground.deps.treasury.as_ref();
    let treasury = treasury.ok_or_else(|| Failed("there is no wallet".to_owned()))?;
    Ok(Report::done(treasury.look_after().await?))
}

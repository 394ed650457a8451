//! `state_maintenance`: deletes what is old, folds the log of the database back, and
//! gives space back when there is much of it.

use automaton_core::time::Span;
use automaton_store::{Deleted, Limits};
use futures_util::FutureExt;

use super::{Beat, Failed, Ground, Report, Tick, always};
use crate::heartbeat::due::Need;

/// What is kept of the record, apart from decisions and intents, which are kept
/// for ever.
const KEPT: Limits = Limits {
    keep: Span::from_secs(90 * 24 * 3600),
    keep_heartbeat: Span::from_secs(7 * 24 * 3600),
    turns_kept: 10_000,
    rows_max: 100_000,
};

/// Rounds of one clean-up; the next run goes on where this one stopped.
const ROUNDS_MAX: u32 = 20;

pub(super) const BEAT: Beat = Beat {
    name: "state_maintenance",
    need: Need::Other,
    kept: true,
    cron: "40 * * * *",
    timeout: Span::from_secs(120),
    max_retries: 1,
    offered: always,
    run: |ground, tick| maintain(ground, tick).boxed(),
};

async fn maintain(ground: &Ground, _tick: &Tick) -> Result<Report, Failed> {
    let store = &ground.deps.store;
    let mut rows = 0;
    for _ in 0..ROUNDS_MAX {
        let Deleted {
            turns,
            messages,
            outbox,
            wakes,
            sessions,
            heartbeat,
            state_changes,
            egress,
            more,
        } = store.retention(KEPT).await?;
        rows += turns + messages + outbox + wakes + sessions + heartbeat + state_changes + egress;
        if !more {
            break;
        }
    }
    store.checkpoint().await?;
    let freed = store.vacuum().await?;
    Ok(Report::done(format!("{rows} old rows deleted, {freed} bytes given back")))
}

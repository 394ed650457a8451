//! Counters over a whole life: durations by bucket, calls, wakes.
//!
//! Counted from the rows in the moment in which it is asked for. Rows that are deleted
//! are folded into sums as they go, by triggers, so that no counter ever falls.

use std::collections::BTreeMap;

use automaton_core::record::{CallStatus, WakeSource};
use rusqlite::{Connection, Row};

use crate::codec::get;
use crate::error::{StoreError, TxError};
use crate::reader::Reader;
use crate::thread::{ConnectionExt, sql};

/// The bound of the bucket that has none.
const ENDLESS: i64 = i64::MAX;

/// Counters over a whole life.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LifetimeCounters {
    /// Durations of turns, from opened to committed.
    pub turns: Histogram,
    /// Durations of model calls.
    pub models: Histogram,
    /// Durations of tool calls.
    pub tools: Histogram,
    /// Durations of heartbeat tasks.
    pub heartbeat: Histogram,
    /// Calls that have ended, by tool and how. One that named no tool that could be
    /// judged has none.
    pub calls: Vec<(Option<String>, CallStatus, u64)>,
    /// Causes to wake there ever were.
    pub wakes: Vec<(WakeSource, u64)>,
}

/// Durations by bucket.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Histogram {
    /// Every bucket: its upper bound in milliseconds, none for the last, and how many
    /// durations are within it and all below.
    pub buckets: Vec<(Option<i64>, u64)>,
    /// All durations together, in milliseconds.
    pub sum_ms: i64,
}

impl Histogram {
    /// Returns the number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.last().map_or(0, |(_, count)| *count)
    }
}

impl Reader {
    /// Returns the counters over the whole life, up to now.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn lifetime_counters(&self) -> Result<LifetimeCounters, StoreError> {
        self.read("count over the life", |connection| {
            // One read transaction: the agent may write in between.
            let tx = connection.unchecked_transaction()?;
            tally(&tx)
        })
    }
}

fn tally(connection: &Connection) -> Result<LifetimeCounters, TxError> {
    let bounds = "SELECT le_ms FROM metric_bounds ORDER BY le_ms";
    let bounds: Vec<i64> = connection.all(bounds, [], |row| row.get("le_ms"))?;
    let mut found: BTreeMap<(String, i64), (u64, i64)> = BTreeMap::new();
    for (key, value) in connection.all(sql!("tally_durations"), [], |row| {
        let key = (row.get("family")?, row.get("le_ms")?);
        Ok((key, (get(row, "count")?, row.get("sum_ms")?)))
    })? {
        found.insert(key, value);
    }
    let histogram = |family: &str| {
        let mut histogram = Histogram::default();
        let mut below = 0_u64;
        for bound in &bounds {
            if let Some((count, sum_ms)) = found.get(&(family.to_owned(), *bound)) {
                below = below.saturating_add(*count);
                histogram.sum_ms = histogram.sum_ms.saturating_add(*sum_ms);
            }
            histogram.buckets.push(((*bound != ENDLESS).then_some(*bound), below));
        }
        histogram
    };
    let calls = connection.all(sql!("tally_calls"), [], part)?;
    let wakes = connection.all(sql!("tally_wakes"), [], part)?;
    Ok(LifetimeCounters {
        turns: histogram("turn"),
        models: histogram("model"),
        tools: histogram("tool"),
        heartbeat: histogram("heartbeat"),
        calls: calls.into_iter().filter_map(|(part, count)| call(&part, count)).collect(),
        wakes: wakes
            .into_iter()
            .filter_map(|(part, count)| Some((WakeSource::by_name(&part)?, count)))
            .collect(),
    })
}

fn part(row: &Row<'_>) -> rusqlite::Result<(String, u64)> {
    Ok((row.get("part")?, get(row, "count")?))
}

/// A count of calls, from `tool status`.
fn call(part: &str, count: u64) -> Option<(Option<String>, CallStatus, u64)> {
    let (tool, status) = part.rsplit_once(' ')?;
    let tool = (!tool.is_empty()).then(|| tool.to_owned());
    Some((tool, CallStatus::by_name(status)?, count))
}

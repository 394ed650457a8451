//! `metric_snapshots`: what is measured of a life, from its record.
//!
//! Every number is counted from rows, in the moment in which it is asked for, so a
//! restart loses none and no number can drift from what happened. A number that is not
//! known is left out; it must never be written as zero.

use automaton_core::alert::{AlertInputs, Ratio, WINDOW, owes, owing};
use automaton_core::money::Microcents;
use automaton_core::state::AgentState;
use automaton_core::time::{DAY, Span, Timestamp};
use automaton_core::vitals::Vitals;
use rusqlite::{Connection, params};

use crate::codec::{Sql, get, maybe};
use crate::costs::{self, CostTotals};
use crate::error::{StoreError, TxError};
use crate::inbox::{self, InboxCounts};
use crate::reader::{Reader, db_bytes};
use crate::thread::{ConnectionExt, Tx, sql};
use crate::{life, pnl, vitals, wakes};

/// Time for which a snapshot is kept.
pub(crate) const KEPT: Span = Span::from_secs(7 * 24 * 3600);

/// The metric that tells whether it should have been thinking.
const OWES: &str = "thinking_owed";

/// Number of snapshots that are read for one stretch of [`OWES`].
const LOOKS: u32 = 100;

/// Measurements of a life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LifetimeMetrics {
    /// Time.
    pub at: Timestamp,
    /// State of the automaton.
    pub state: AgentState,
    /// Its means.
    pub vitals: Vitals,
    /// Turns that it ever committed.
    pub turns: u64,
    /// Turns of the last hour.
    pub turns_hour: u64,
    /// Those of them whose wakes the creator did not cause.
    pub unattended_turns_hour: u64,
    /// Runs of the heartbeat in the last hour, and those of them that failed.
    pub heartbeat_runs: Ratio,
    /// Decisions of the last hour, and those of them that were refusals.
    pub decisions: Ratio,
    /// Tokens of the prompt of the last turn.
    pub prompt_tokens: Option<u32>,
    /// The slowest answer of the turns of the last hour, in milliseconds.
    pub slowest_ms: Option<u64>,
    /// Cost of model calls in the last 24 hours.
    pub thinking: Microcents,
    /// All answers there ever were.
    pub totals: CostTotals,
    /// Messages by state.
    pub inbox: InboxCounts,
    /// Causes to wake that wait.
    pub wakes: u64,
    /// The size of the database in bytes.
    pub db_bytes: u64,
    /// The size of the log that is not folded back into it yet, in bytes.
    pub wal_bytes: Option<u64>,
    /// True if it should be thinking.
    pub owes: bool,
}

impl LifetimeMetrics {
    /// The names and values of a snapshot, as far as they are known.
    #[must_use]
    pub fn snapshot(&self) -> Vec<(&'static str, i64)> {
        let Vitals { credits, usdc, .. } = self.vitals;
        let count = |number: u64| Some(i64::try_from(number).unwrap_or(i64::MAX));
        let all = [
            ("credits_microcents", credits.map(Microcents::units)),
            ("usdc_micro", usdc.and_then(|usdc| count(usdc.units()))),
            ("turns_total", count(self.turns)),
            ("turns_last_hour", count(self.turns_hour)),
            ("unattended_turns_last_hour", count(self.unattended_turns_hour)),
            ("heartbeat_runs_last_hour", count(self.heartbeat_runs.of)),
            ("heartbeat_failures_last_hour", count(self.heartbeat_runs.part)),
            ("policy_decisions_last_hour", count(self.decisions.of)),
            ("policy_denies_last_hour", count(self.decisions.part)),
            ("context_tokens", self.prompt_tokens.map(i64::from)),
            ("inference_cost_day_microcents", Some(self.thinking.units())),
            ("inbox_pending", count(self.inbox.received)),
            ("db_size_bytes", count(self.db_bytes)),
            ("wal_size_bytes", self.wal_bytes.and_then(count)),
            (OWES, Some(i64::from(self.owes))),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// Returns the input of the alert rules. `owing` is the time for which it has owed a thought.
    pub(crate) const fn signs(&self, owing: Span) -> AlertInputs {
        AlertInputs {
            credits: self.vitals.credits,
            usdc: self.vitals.usdc,
            heartbeat_runs: self.heartbeat_runs,
            decisions: self.decisions,
            prompt_tokens: self.prompt_tokens,
            thinking: self.thinking,
            turns: self.turns_hour,
            unattended_turns: self.unattended_turns_hour,
            owing,
        }
    }
}

impl Reader {
    /// Measures the life now.
    ///
    /// # Errors
    /// [`StoreError::Unborn`] before the birth; when SQLite fails.
    pub fn measures(&self, now: Timestamp) -> Result<LifetimeMetrics, StoreError> {
        self.read("measure the life", |connection| {
            // One read transaction: the agent may write in between.
            let tx = connection.unchecked_transaction()?;
            measure(&tx, now)
        })
    }
}

/// Counts everything.
pub(crate) fn measure(connection: &Connection, now: Timestamp) -> Result<LifetimeMetrics, TxError> {
    let life = life::life(connection)?;
    let vitals = vitals::read(connection)?;
    let inbox = inbox::counts(connection)?;
    let wakes = u64::try_from(wakes::pending(connection)?.len()).unwrap_or(u64::MAX);
    let waiting = inbox.received > 0 || wakes > 0;
    let owes = owes(life.state, life.sleep.as_ref(), waiting) && !vitals.is_broke();
    let hour = [Sql(now.before(WINDOW)), Sql(now)];
    let measured = connection.one(sql!("measure_hour"), hour, |row| {
        Ok(LifetimeMetrics {
            at: now,
            state: life.state,
            vitals,
            turns: life.turns,
            turns_hour: get(row, "turns")?,
            unattended_turns_hour: get(row, "unattended_turns")?,
            heartbeat_runs: Ratio { part: get(row, "failed")?, of: get(row, "heartbeat_runs")? },
            decisions: Ratio { part: get(row, "denied")?, of: get(row, "decisions")? },
            prompt_tokens: None,
            slowest_ms: maybe(row, "slowest_ms")?,
            thinking: Microcents::ZERO,
            totals: CostTotals::default(),
            inbox,
            wakes,
            db_bytes: 0,
            wal_bytes: None,
            owes,
        })
    })?;
    let measured = measured.ok_or(StoreError::Unborn)?;
    let prompt = |row: &rusqlite::Row<'_>| get(row, "prompt_tokens");
    Ok(LifetimeMetrics {
        prompt_tokens: connection.one(sql!("measure_prompt"), [], prompt)?,
        thinking: pnl::thinking(connection, now.before(DAY))?.day,
        totals: costs::totals(connection)?,
        db_bytes: db_bytes(connection)?,
        wal_bytes: wal_bytes(connection),
        ..measured
    })
}

/// The size of the log beside the database; nothing when there is none to be seen.
fn wal_bytes(connection: &Connection) -> Option<u64> {
    let log = format!("{}-wal", connection.path()?);
    // silent-ok: what cannot be seen is not known, and is left out.
    std::fs::metadata(log).ok().map(|found| found.len())
}

/// Stores a snapshot, and deletes what is older than a week.
pub(crate) fn insert_snapshot(tx: &Tx<'_>, measures: &LifetimeMetrics) -> Result<(), TxError> {
    let insert = "INSERT OR REPLACE INTO metric_snapshots (at, name, value) VALUES (?1, ?2, ?3)";
    for (name, value) in measures.snapshot() {
        tx.exec(insert, params![Sql(measures.at), name, value])?;
    }
    tx.exec("DELETE FROM metric_snapshots WHERE at < ?1", [Sql(measures.at.before(KEPT))])?;
    Ok(())
}

/// Returns the time for which it has owed a thought, by the snapshots up to this one.
pub(crate) fn owed_for(tx: &Tx<'_>, now: Timestamp) -> Result<Span, TxError> {
    let statement = "SELECT at, value FROM metric_snapshots WHERE name = ?1 AND at <= ?2 \
        ORDER BY at DESC LIMIT ?3";
    let looks = tx.all(statement, params![OWES, Sql(now), LOOKS], |row| {
        Ok((get::<Timestamp>(row, "at")?, row.get::<_, i64>("value")? > 0))
    })?;
    Ok(owing(looks))
}

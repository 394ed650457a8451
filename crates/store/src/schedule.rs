//! `heartbeat_schedule`, `heartbeat_history`, `heartbeat_dedup`: what runs when, how
//! it went, and what it has woken the automaton for.
//!
//! When a task is due is decided elsewhere; here the decision becomes a lease with a
//! fence, a number that grows with each lease: a run whose lease is over can no
//! longer report. A task must never wake the automaton twice for one cause, nor more
//! often than its budget.

mod values;

use automaton_core::faults::FaultPoint;
use automaton_core::id::RunId;
use automaton_core::record::WakeCause;
use automaton_core::time::{Span, Timestamp};
use rusqlite::{Connection, Row, params};

use crate::codec::{Sql, get, maybe};
use crate::error::{StoreError, TxError, missing, unfit};
use crate::thread::{ConnectionExt, Tx, WriteOptions, sql};
use crate::{Store, wakes};

pub use values::{
    Lease, LeaseRequest, ScheduleRule, ScheduleTimes, ScheduledTask, TaskConfig, TaskFinish,
    TaskOrigin, TaskResult, TaskRun,
};

/// Wait before the first retry of a failed run; each later wait is twice as long.
pub const RETRY_DELAY: Span = Span::from_secs(30);

/// The longest wait for a retry.
const RETRY_DELAY_MAX: Span = Span::from_secs(3600);

/// Wakes that a task may cause within an hour.
pub const WAKES_PER_WINDOW: u32 = 6;

/// The time over which the wakes of a task are counted.
pub(crate) const WAKE_WINDOW: Span = Span::from_secs(3600);

/// Time for which an unchanged cause is not reported again.
const SAME_CAUSE_FOR: Span = Span::from_secs(24 * 3600);

/// Entries that the automaton may have set itself.
pub const AGENT_TASKS_MAX: u32 = 16;

impl Store {
    /// Makes the schedule hold these tasks, each with where it would stand if it
    /// began now. Tasks that are in it go on where they were, unless their rhythm has
    /// changed. Others go, but for those that the automaton set itself.
    ///
    /// # Errors
    /// When SQLite fails, as for an interval of zero.
    pub async fn schedule_upsert(
        &self,
        tasks: Vec<(TaskConfig, ScheduleTimes)>,
    ) -> Result<(), StoreError> {
        let work = move |tx: &Tx<'_>| {
            forget(tx, &tasks)?;
            tasks.iter().try_for_each(|(task, times)| upsert(tx, task, *times))
        };
        self.write(WriteOptions::new("store the schedule"), work).await
    }

    /// Adds a task that the automaton set itself, or changes one.
    ///
    /// # Errors
    /// [`StoreError::Full`] when there are [`AGENT_TASKS_MAX`] such tasks already.
    pub async fn schedule_one(
        &self,
        task: TaskConfig,
        times: ScheduleTimes,
    ) -> Result<(), StoreError> {
        let work = move |tx: &Tx<'_>| {
            upsert(tx, &task, times)?;
            let statement =
                "SELECT count(*) AS count FROM heartbeat_schedule WHERE origin = 'agent'";
            let count: u32 = tx.one(statement, [], |row| get(row, "count"))?.unwrap_or(0);
            if count > AGENT_TASKS_MAX {
                let noun = "entries of its own in the schedule";
                return Err(StoreError::Full { noun, limit: AGENT_TASKS_MAX }.into());
            }
            Ok(())
        };
        self.write(WriteOptions::new("store an entry of the schedule"), work).await
    }

    /// Removes an entry that the automaton set itself; whether it is gone. One that runs is
    /// off, reports first, and goes when it is removed again.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn unschedule(&self, name: String) -> Result<bool, StoreError> {
        let work = move |tx: &Tx<'_>| {
            let gone = tx.exec(sql!("task_remove_own"), [&name])? > 0;
            tx.exec(sql!("task_disable_own"), [&name])?;
            Ok(gone)
        };
        self.write(WriteOptions::new("remove an entry of the schedule"), work).await
    }

    /// Sets where tasks stand, as after a clock was set back.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn reschedule(&self, tasks: Vec<(String, ScheduleTimes)>) -> Result<(), StoreError> {
        let work = move |tx: &Tx<'_>| {
            for (name, ScheduleTimes { anchor, next }) in &tasks {
                let params = params![name, Sql(*anchor), Sql(*next), Sql(tx.now)];
                tx.exec(sql!("task_reschedule"), params)?;
            }
            Ok(())
        };
        self.write(WriteOptions::new("set the schedule back"), work).await
    }

    /// The tasks that may be due, in the order in which what is due runs: their next
    /// time or their retry has come, or they stand in the future of a clock that was
    /// set back. With them the first time of the others.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn schedule_at(
        &self,
        now: Timestamp,
        set_back: Span,
    ) -> Result<(Vec<ScheduledTask>, Option<Timestamp>), StoreError> {
        let work = move |tx: &Tx<'_>| {
            let ahead = Sql(now.after(set_back));
            let rows = tx.all(sql!("tasks_at"), params![Sql(now), ahead], scheduled)?;
            let next = tx.one(sql!("tasks_next"), [Sql(now)], |row| maybe(row, "next"))?;
            Ok((rows, next.flatten()))
        };
        self.run("read what is due", work).await
    }

    /// The whole schedule, in the order in which what is due runs.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn schedule(&self) -> Result<Vec<ScheduledTask>, StoreError> {
        self.run("read the schedule", |tx| every(tx)).await
    }

    /// Takes a task for a while; `None` when somebody else has it, when its schedule
    /// has changed, or when it is disabled or unknown.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn lease_task(
        &self,
        name: &str,
        booking: LeaseRequest,
    ) -> Result<Option<Lease>, StoreError> {
        let name = name.to_owned();
        let write = WriteOptions::new("lease a task").reaches(FaultPoint::TaskLeased);
        self.write(write, move |tx| lease(tx, &name, &booking)).await
    }

    /// Stores how a run ended, plans a retry if it may have one, and adds the wake
    /// event it asks for; whether that was added. The lease is over then.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] when the lease is not the task's newest.
    pub async fn finish_task(
        &self,
        name: &str,
        lease: Lease,
        finish: TaskFinish,
    ) -> Result<bool, StoreError> {
        let name = name.to_owned();
        let work = move |tx: &Tx<'_>| report(tx, &name, lease, &finish);
        self.write(WriteOptions::new("store a task's outcome"), work).await
    }
}

/// Deletes what is no longer configured. One that runs reports first; it goes when
/// the schedule is stored the next time.
fn forget(tx: &Tx<'_>, kept: &[(TaskConfig, ScheduleTimes)]) -> Result<(), TxError> {
    for old in every(tx)? {
        let named = kept.iter().any(|(task, _)| task.name == old.task.name);
        if !named && old.task.origin != TaskOrigin::Agent {
            let statement = "DELETE FROM heartbeat_schedule WHERE name = ?1 AND lease_run IS NULL";
            let gone = tx.exec(statement, [&old.task.name])?;
            if gone == 0 {
                tx.exec(
                    "UPDATE heartbeat_schedule SET enabled = 0 WHERE name = ?1",
                    [&old.task.name],
                )?;
            }
        }
    }
    Ok(())
}

fn upsert(tx: &Tx<'_>, entry: &TaskConfig, times: ScheduleTimes) -> Result<(), TxError> {
    let TaskConfig { name, task, schedule, enabled, origin, priority, tier_minimum, .. } = entry;
    let (cron, zone, interval) = match schedule {
        ScheduleRule::Cron { expression, zone } => (Some(expression), Some(zone), None),
        ScheduleRule::Every(interval) => (None, None, Some(Sql(*interval))),
    };
    let timeout = Sql(entry.timeout);
    let retries = entry.max_retries;
    let origin = Sql(*origin);
    let tier = Sql(*tier_minimum);
    let enabled = *enabled;
    let anchor = Sql(times.anchor);
    let next = Sql(times.next);
    let params = params![
        name, task, cron, zone, interval, enabled, origin, priority, tier, timeout, retries,
        anchor, next
    ];
    tx.exec(sql!("task_upsert"), params)?;
    Ok(())
}

fn lease(tx: &Tx<'_>, name: &str, booking: &LeaseRequest) -> Result<Option<Lease>, TxError> {
    let LeaseRequest { run, ttl, seen, times, attempt } = *booking;
    let until = tx.now.after(ttl);
    let anchor = Sql(times.anchor);
    let next = Sql(times.next);
    let params = params![name, Sql(run), Sql(tx.now), Sql(until), anchor, next, Sql(seen), attempt];
    let fence = tx.one(sql!("task_lease"), params, |row| get(row, "fence"))?;
    Ok(fence.map(|fence| Lease { run, fence, until }))
}

/// Row that decides a report.
struct LeaseRow {
    holds: bool,
    failing: u32,
    attempt: u32,
    max_retries: u32,
}

fn report(tx: &Tx<'_>, name: &str, lease: Lease, finish: &TaskFinish) -> Result<bool, TxError> {
    let statement = "SELECT fence, lease_run, failing, attempt, max_retries \
                     FROM heartbeat_schedule WHERE name = ?1";
    let held = tx.one(statement, [name], |row| {
        let (fence, run): (u64, Option<RunId>) = (get(row, "fence")?, maybe(row, "lease_run")?);
        Ok(LeaseRow {
            holds: fence == lease.fence && run == Some(lease.run),
            failing: row.get("failing")?,
            attempt: row.get("attempt")?,
            max_retries: row.get("max_retries")?,
        })
    })?;
    let held = held.ok_or_else(|| missing("heartbeat task", &name))?;
    if !held.holds {
        return Err(unfit("lease of the heartbeat task", &format!("'{name}'"), "was lost"));
    }
    let failed = finish.result != TaskResult::Success;
    let failing = if failed { held.failing.saturating_add(1) } else { 0 };
    let retry = failed && held.attempt < held.max_retries;
    let retry_at = retry.then(|| Sql(tx.now.after(retry_delay(held.attempt))));
    let result = Sql(finish.result);
    let note = &finish.note;
    tx.exec(
        sql!("task_finish"),
        params![name, Sql(tx.now), retry_at, result, note, failed, failing],
    )?;
    let woke = match &finish.wake {
        Some(cause) => wake(tx, name, cause)?,
        None => {
            // A run that failed has not seen that the cause is gone.
            let statement = "DELETE FROM heartbeat_dedup WHERE task = ?1 AND ?2";
            tx.exec(statement, params![name, !failed])?;
            false
        }
    };
    let duration = Sql(finish.duration);
    tx.exec(
        sql!("heartbeat_insert"),
        params![Sql(lease.run), name, result, note, duration, Sql(tx.now), woke],
    )?;
    Ok(woke)
}

/// The wait after a try that failed: the first, or a retry by its number.
fn retry_delay(attempt: u32) -> Span {
    let doubled = 1_i64.checked_shl(attempt.min(30)).unwrap_or(i64::MAX);
    Span::from_millis(RETRY_DELAY.as_millis().saturating_mul(doubled)).min(RETRY_DELAY_MAX)
}

/// Adds the wake event of a task, unless it was told of the same or has woken the
/// automaton too often; whether it was added.
fn wake(tx: &Tx<'_>, name: &str, cause: &WakeCause) -> Result<bool, TxError> {
    let window = (Sql(tx.now.before(WAKE_WINDOW)), Sql(tx.now));
    let params = params![name, window.0, window.1];
    let woken: u32 = tx.one(sql!("task_wakes"), params, |row| get(row, "count"))?.unwrap_or(0);
    let key = format!("{name}: {}", cause.reason.text);
    let params = params![key, name, Sql(tx.now), Sql(tx.now.after(SAME_CAUSE_FOR))];
    let told = tx.exec(sql!("dedup_insert"), params)? == 0;
    // A cause that is over the budget was not told, so it counts as new once there is
    // room again.
    if told || woken >= WAKES_PER_WINDOW {
        if !told {
            tx.exec("DELETE FROM heartbeat_dedup WHERE key = ?1", [key])?;
        }
        return Ok(false);
    }
    wakes::push(tx, cause)?;
    Ok(true)
}

/// Ends the leases of a process that died, as runs that were lost. Each waits
/// for its retry or its next time, so that a task that kills the process does not do
/// so at once.
pub(crate) fn release_lost(tx: &Tx<'_>) -> Result<(), TxError> {
    let statement = "SELECT name, lease_run, leased_at, leased_until, fence \
                     FROM heartbeat_schedule WHERE lease_run IS NOT NULL";
    let lost = tx.all(statement, [], |row| {
        let run = get(row, "lease_run")?;
        let fence = get(row, "fence")?;
        let lease = Lease { run, fence, until: get(row, "leased_until")? };
        Ok((row.get::<_, String>("name")?, lease, get::<Timestamp>(row, "leased_at")?))
    })?;
    for (name, lease, since) in lost {
        let note = "the process died while it ran".to_owned();
        let duration = tx.now.since(since);
        let finish = TaskFinish { result: TaskResult::Lost, note, duration, wake: None };
        report(tx, &name, lease, &finish)?;
    }
    Ok(())
}

pub(crate) fn every(connection: &Connection) -> Result<Vec<ScheduledTask>, TxError> {
    let statement = "SELECT * FROM heartbeat_schedule ORDER BY priority, next_run_at, name";
    Ok(connection.all(statement, [], scheduled)?)
}

pub(crate) fn runs(
    connection: &Connection,
    name: &str,
    limit: u32,
) -> Result<Vec<TaskRun>, TxError> {
    let statement = "SELECT * FROM heartbeat_history WHERE task = ?1 ORDER BY seq DESC LIMIT ?2";
    Ok(connection.all(statement, params![name, limit], |row| {
        Ok(TaskRun {
            result: get(row, "result")?,
            note: row.get("note")?,
            duration: get(row, "duration_ms")?,
            at: get(row, "at")?,
            woke: row.get("woke")?,
        })
    })?)
}

fn scheduled(row: &Row<'_>) -> rusqlite::Result<ScheduledTask> {
    let interval: Option<Span> = maybe(row, "interval_ms")?;
    let schedule = match interval {
        Some(interval) => ScheduleRule::Every(interval),
        None => ScheduleRule::Cron { expression: row.get("cron")?, zone: row.get("zone")? },
    };
    let (leased_at, until): (Option<Timestamp>, _) =
        (maybe(row, "leased_at")?, maybe(row, "leased_until")?);
    Ok(ScheduledTask {
        task: TaskConfig {
            name: row.get("name")?,
            task: row.get("task")?,
            schedule,
            enabled: row.get("enabled")?,
            origin: get(row, "origin")?,
            priority: row.get("priority")?,
            tier_minimum: get(row, "tier_minimum")?,
            timeout: get(row, "timeout_ms")?,
            max_retries: row.get("max_retries")?,
        },
        times: ScheduleTimes { anchor: get(row, "anchor_at")?, next: get(row, "next_run_at")? },
        retry_at: maybe(row, "retry_at")?,
        attempt: row.get("attempt")?,
        last_run_at: maybe(row, "last_run_at")?,
        last_result: maybe(row, "last_result")?,
        last_note: row.get("last_note")?,
        runs: get(row, "runs")?,
        failures: get(row, "failures")?,
        failing: row.get("failing")?,
        leased: leased_at.zip(until),
    })
}

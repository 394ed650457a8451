//! `heartbeat_schedule` and `heartbeat_history`: what runs when, and how it went.
//!
//! A task runs under a lease with a fence, a number that grows with each lease:
//! a run whose lease is over can no longer report. A clock that went backwards
//! must never keep a task from running.

use automaton_core::faults::FaultPoint;
use automaton_core::id::RunId;
use automaton_core::record::WakeCause;
use automaton_core::time::{Span, Timestamp};
use rusqlite::{Connection, Row, params};

use crate::codec::{As, get, maybe};
use crate::error::{Halt, StoreError, missing, unfit};
use crate::thread::{Query, Tx, Write, sql};
use crate::{Store, wakes};

/// How long a failed task waits for its next try, while it has any left.
const RETRY_DELAY: Span = Span::from_secs(30);

/// A task of the heartbeat, as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// How long it waits after a run.
    pub interval: Span,
    /// Whether it runs at all.
    pub enabled: bool,
    /// How long a run may take.
    pub timeout: Span,
    /// Tries after the first, 30 s apart, before it waits its interval again.
    pub max_retries: u32,
}

/// A task with how it went so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledTask {
    /// The task.
    pub task: Task,
    /// When its last run ended.
    pub last_run_at: Option<Timestamp>,
    /// When it is tried again, after a failure.
    pub next_run_at: Option<Timestamp>,
    /// How its last run ended.
    pub last_result: Option<TaskResult>,
    /// What its last run said, in the runtime's words.
    pub last_note: Option<String>,
    /// Runs that ended.
    pub runs: u64,
    /// Runs that failed.
    pub failures: u64,
    /// When the lease of the run that holds it ends.
    pub leased_until: Option<Timestamp>,
}

/// The right to run a task and to report on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The run.
    pub run: RunId,
    /// The number of the lease; the newest holds.
    pub fence: u64,
    /// When somebody else may take it.
    pub until: Timestamp,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskResult {
    /// It did what it should.
    Success,
    /// It did not.
    Failure,
    /// It took too long.
    Timeout,
    /// The process died while it ran. Written by recovery.
    Lost,
}

impl TaskResult {
    /// Every result.
    pub const ALL: [Self; 4] = [Self::Success, Self::Failure, Self::Timeout, Self::Lost];

    /// The result's name in the database.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Timeout => "timeout",
            Self::Lost => "lost",
        }
    }
}

/// What a run reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskFinish {
    /// How it ended.
    pub result: TaskResult,
    /// One sentence, in the runtime's words.
    pub note: String,
    /// How long it took.
    pub duration: Span,
    /// Why the automaton should wake, if it should.
    pub wake: Option<WakeCause>,
}

impl Store {
    /// Makes the schedule hold exactly these tasks as runnable: their settings
    /// are stored, how they went so far is kept, and others are disabled.
    ///
    /// # Errors
    /// When SQLite fails, as for an interval of zero.
    pub async fn schedule_upsert(&self, tasks: Vec<Task>) -> Result<(), StoreError> {
        self.write(Write::new("store the schedule"), move |tx| upsert(tx, &tasks)).await
    }

    /// The tasks that should run: enabled, leased by nobody, and either never
    /// run, or due for a retry, or their interval is over.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn due_tasks(&self, now: Timestamp) -> Result<Vec<ScheduledTask>, StoreError> {
        let work = move |db: &mut crate::thread::Db| {
            Ok(db.connection.all(sql!("tasks_due"), [As(now)], scheduled)?)
        };
        self.run("read the due tasks", work).await
    }

    /// Takes a task for a while; `None` when somebody else has it, or when it is
    /// disabled or unknown.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn lease_task(
        &self,
        name: &str,
        run: RunId,
        ttl: Span,
    ) -> Result<Option<Lease>, StoreError> {
        let name = name.to_owned();
        let write = Write::new("lease a task").reaches(FaultPoint::TaskLeased);
        self.write(write, move |tx| lease(tx, &name, run, ttl)).await
    }

    /// Stores how a run ended, plans the next, and adds the wake event it asks
    /// for. The lease is over then.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] when the lease is not the task's newest.
    pub async fn finish_task(
        &self,
        name: &str,
        lease: Lease,
        finish: TaskFinish,
    ) -> Result<(), StoreError> {
        let name = name.to_owned();
        let work = move |tx: &Tx<'_>| report(tx, &name, lease, &finish);
        self.write(Write::new("store a task's outcome"), work).await
    }
}

fn upsert(tx: &Tx<'_>, tasks: &[Task]) -> Result<(), Halt> {
    tx.exec("UPDATE heartbeat_schedule SET enabled = 0", [])?;
    for task in tasks {
        let Task { name, interval, enabled, timeout, max_retries } = task;
        tx.exec(
            sql!("task_upsert"),
            params![name, As(*interval), enabled, As(*timeout), max_retries],
        )?;
    }
    Ok(())
}

fn lease(tx: &Tx<'_>, name: &str, run: RunId, ttl: Span) -> Result<Option<Lease>, Halt> {
    let until = tx.now.after(ttl);
    let params = params![name, As(run), As(tx.now), As(until)];
    let fence = tx.one(sql!("task_lease"), params, |row| get(row, "fence"))?;
    Ok(fence.map(|fence| Lease { run, fence, until }))
}

fn report(tx: &Tx<'_>, name: &str, lease: Lease, finish: &TaskFinish) -> Result<(), Halt> {
    let statement = "SELECT fence, lease_run, failing, max_retries FROM heartbeat_schedule \
                     WHERE name = ?1";
    let found = tx.one(statement, [name], |row| {
        let fence: u64 = get(row, "fence")?;
        let run: Option<RunId> = maybe(row, "lease_run")?;
        Ok((
            fence == lease.fence && run == Some(lease.run),
            row.get("failing")?,
            row.get("max_retries")?,
        ))
    })?;
    let (holds, failing, max_retries): (bool, u32, u32) =
        found.ok_or_else(|| missing("heartbeat task", &name))?;
    if !holds {
        return Err(unfit("lease of the heartbeat task", &format!("'{name}'"), "was lost"));
    }
    let failed = finish.result != TaskResult::Success;
    let failing = if failed { failing.saturating_add(1) } else { 0 };
    let retry = failed && failing <= max_retries;
    let next_run_at = retry.then(|| As(tx.now.after(RETRY_DELAY)));
    let (result, note) = (As(finish.result), &finish.note);
    tx.exec(
        sql!("task_finish"),
        params![name, As(tx.now), next_run_at, result, note, failed, failing],
    )?;
    let duration = As(finish.duration);
    tx.exec(
        sql!("heartbeat_insert"),
        params![As(lease.run), name, result, note, duration, As(tx.now)],
    )?;
    match &finish.wake {
        Some(cause) => wakes::push(tx, cause),
        None => Ok(()),
    }
}

/// Ends the leases of a process that died, as runs that were lost. Each waits
/// its interval, so that a task that kills the process does not do so at once.
pub(crate) fn release_lost(tx: &Tx<'_>) -> Result<(), Halt> {
    let statement = "SELECT name, lease_run, leased_at, leased_until, fence \
                     FROM heartbeat_schedule WHERE lease_run IS NOT NULL";
    let lost = tx.all(statement, [], |row| {
        let (run, fence) = (get(row, "lease_run")?, get(row, "fence")?);
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

pub(crate) fn every(connection: &Connection) -> Result<Vec<ScheduledTask>, Halt> {
    let statement = "SELECT * FROM heartbeat_schedule ORDER BY name";
    Ok(connection.all(statement, [], scheduled)?)
}

fn scheduled(row: &Row<'_>) -> rusqlite::Result<ScheduledTask> {
    Ok(ScheduledTask {
        task: Task {
            name: row.get("name")?,
            interval: get(row, "interval_ms")?,
            enabled: row.get("enabled")?,
            timeout: get(row, "timeout_ms")?,
            max_retries: row.get("max_retries")?,
        },
        last_run_at: maybe(row, "last_run_at")?,
        next_run_at: maybe(row, "next_run_at")?,
        last_result: maybe(row, "last_result")?,
        last_note: row.get("last_note")?,
        runs: get(row, "runs")?,
        failures: get(row, "failures")?,
        leased_until: maybe(row, "leased_until")?,
    })
}

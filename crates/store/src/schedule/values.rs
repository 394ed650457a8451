//! Pure: what a schedule is made of: entries, where they stand, runs.

use automaton_core::id::RunId;
use automaton_core::names::Names;
use automaton_core::record::WakeCause;
use automaton_core::tier::SurvivalTier;
use automaton_core::time::{Span, Timestamp};
use serde::Serialize;

/// Schedule of a task: `*/5 * * * * UTC`, or `every 15.0 min`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, derive_more::Display)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleRule {
    /// At the times that a cron expression names in a time zone.
    #[display("{expression} {zone}")]
    Cron {
        /// Five fields, or six with seconds first.
        expression: String,
        /// A name of the IANA time zone database.
        zone: String,
    },
    /// Once in a span.
    #[display("every {_0}")]
    Every(Span),
}

/// Owner of an entry. Its [`name`](Self::name) is the one in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Names)]
#[serde(rename_all = "snake_case")]
pub enum TaskOrigin {
    /// Nobody: it comes with the program.
    Default,
    /// The creator, in `heartbeat.yml`.
    File,
    /// The automaton itself.
    Agent,
}

/// An entry of the schedule, as configured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskConfig {
    /// Its name, unique in the schedule.
    pub name: String,
    /// Name of the task.
    pub task: String,
    /// Schedule.
    pub schedule: ScheduleRule,
    /// True if it runs.
    pub enabled: bool,
    /// Owner.
    pub origin: TaskOrigin,
    /// Of several due entries the lowest number runs first.
    pub priority: u32,
    /// It waits while the automaton is poorer than this.
    pub tier_minimum: SurvivalTier,
    /// Timeout of a run.
    pub timeout: Span,
    /// Tries after the first, [`crate::RETRY_DELAY`] after it and then ever later, until the
    /// schedule's next time.
    pub max_retries: u32,
}

/// Times of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ScheduleTimes {
    /// Time that the schedule counts from: the last one that was served.
    pub anchor: Timestamp,
    /// The schedule's first time after it.
    pub next: Timestamp,
}

/// A task with how it went so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScheduledTask {
    /// The task.
    pub task: TaskConfig,
    /// Times.
    pub times: ScheduleTimes,
    /// Time of the retry after a failure.
    pub retry_at: Option<Timestamp>,
    /// The number of the retry that ran last; 0 when that was the schedule's run.
    pub attempt: u32,
    /// End of its last run.
    pub last_run_at: Option<Timestamp>,
    /// Result of its last run.
    pub last_result: Option<TaskResult>,
    /// Note of its last run, in the runtime's words.
    pub last_note: Option<String>,
    /// Runs that ended.
    pub runs: u64,
    /// Runs that failed.
    pub failures: u64,
    /// Runs that failed since the last success.
    pub failing: u32,
    /// Start of the current run, and end of its lease.
    pub leased: Option<(Timestamp, Timestamp)>,
}

/// The decision to run a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseRequest {
    /// The run.
    pub run: RunId,
    /// Time for which nobody else may take the task.
    pub ttl: Span,
    /// The schedule's next time when it was decided.
    pub seen: Timestamp,
    /// Times of the entry once it runs.
    pub times: ScheduleTimes,
    /// The number of the retry; 0 for the schedule's run.
    pub attempt: u32,
}

/// The right to run a task and to report on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The run.
    pub run: RunId,
    /// The number of the lease; the newest holds.
    pub fence: u64,
    /// Time from which another runner may take it.
    pub until: Timestamp,
}

/// Result of a run. Its [`name`](Self::name) is the one in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Names)]
#[serde(rename_all = "snake_case")]
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

/// A run that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskRun {
    /// Result.
    pub result: TaskResult,
    /// One sentence, in the runtime's words.
    pub note: String,
    /// Duration.
    pub duration: Span,
    /// End of the run.
    pub at: Timestamp,
    /// True if it woke the automaton.
    pub woke: bool,
}

/// Report of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskFinish {
    /// Result.
    pub result: TaskResult,
    /// One sentence, in the runtime's words.
    pub note: String,
    /// Duration.
    pub duration: Span,
    /// Cause for a wake, if there is one. It is delivered once while each run reports the same,
    /// and at most [`crate::WAKES_PER_WINDOW`] times an hour.
    pub wake: Option<WakeCause>,
}

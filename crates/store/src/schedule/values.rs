//! Pure: what a schedule is made of: entries, where they stand, runs.

use automaton_core::id::RunId;
use automaton_core::names::Names;
use automaton_core::record::WakeCause;
use automaton_core::tier::SurvivalTier;
use automaton_core::time::{Span, Timestamp};
use serde::Serialize;

/// When a task runs: `*/5 * * * * UTC`, or `every 15.0 min`.
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

/// Who set a task's schedule.
/// Its [`name`](Self::name) is the one in the database.
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
    /// What it does: the name of a task that the program knows.
    pub task: String,
    /// When it runs.
    pub schedule: ScheduleRule,
    /// Whether it runs at all.
    pub enabled: bool,
    /// Who set it.
    pub origin: TaskOrigin,
    /// Of those that are due at once, the lowest runs first.
    pub priority: u32,
    /// It waits while the automaton is poorer than this.
    pub tier_minimum: SurvivalTier,
    /// How long a run may take.
    pub timeout: Span,
    /// Tries after the first, [`crate::RETRY_DELAY`] after it and then ever later, until the
    /// schedule's next time.
    pub max_retries: u32,
}

/// Where a task stands in its schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ScheduleTimes {
    /// What the schedule counts from: the last time that was served.
    pub anchor: Timestamp,
    /// The schedule's first time after it.
    pub next: Timestamp,
}

/// A task with how it went so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScheduledTask {
    /// The task.
    pub task: TaskConfig,
    /// Where it stands.
    pub times: ScheduleTimes,
    /// When it is tried again, after a failure.
    pub retry_at: Option<Timestamp>,
    /// The number of the retry that ran last; 0 when that was the schedule's run.
    pub attempt: u32,
    /// When its last run ended.
    pub last_run_at: Option<Timestamp>,
    /// How its last run ended.
    pub last_result: Option<TaskResult>,
    /// What its last run said, in the runtime's words.
    pub last_note: Option<String>,
    /// Runs that ended.
    pub runs: u64,
    /// Runs that failed.
    pub failures: u64,
    /// Runs that failed since the last success.
    pub failing: u32,
    /// When the run that holds it began, and when its lease ends.
    pub leased: Option<(Timestamp, Timestamp)>,
}

/// The decision to run a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseRequest {
    /// The run.
    pub run: RunId,
    /// How long nobody else may take the task.
    pub ttl: Span,
    /// The schedule's next time when it was decided.
    pub seen: Timestamp,
    /// Where the task stands once it runs.
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
    /// When somebody else may take it.
    pub until: Timestamp,
}

/// How a run ended.
/// Its [`name`](Self::name) is the one in the database.
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
    /// How it ended.
    pub result: TaskResult,
    /// One sentence, in the runtime's words.
    pub note: String,
    /// How long it took.
    pub duration: Span,
    /// When it ended.
    pub at: Timestamp,
    /// Whether it woke the automaton.
    pub woke: bool,
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
    /// Why the automaton should wake, if it should. It is told once while each run
    /// reports the same, and [`crate::WAKES_PER_WINDOW`] times an hour at most.
    pub wake: Option<WakeCause>,
}

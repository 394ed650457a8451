//! Views of the heartbeat's schedule and of its runs.

use automaton_core::tier::SurvivalTier;
use automaton_core::time::{Span, Timestamp};
use automaton_store::{ScheduleRule, ScheduledTask, TaskConfig, TaskOrigin, TaskResult, TaskRun};
use schemars::JsonSchema;
use serde::Serialize;

/// A line of `heartbeat`: an entry of the schedule, or a run of the entry that was named.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum HeartbeatOutput {
    /// An entry of the schedule.
    Entry(ScheduledTaskView),
    /// A run that ended.
    Run(TaskRunView),
}

/// The output of `heartbeat run`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum HeartbeatRunOutput {
    /// The run that ended.
    Run(TaskRunView),
    /// A run at the next start.
    Later(TaskDueView),
}

/// A task that runs when the automaton starts.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct TaskDueView {
    /// The name of the entry.
    pub(crate) task: String,
    /// False: the automaton does not run.
    pub(crate) running: bool,
}

/// An entry of the schedule with its history.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ScheduledTaskView {
    /// The entry.
    pub(crate) task: TaskConfigView,
    /// Times.
    pub(crate) times: ScheduleTimesView,
    /// Time of the retry after a failure, in milliseconds since 1970.
    pub(crate) retry_at: Option<Timestamp>,
    /// The number of the retry that ran last; 0 for the schedule's run.
    pub(crate) attempt: u32,
    /// End of its last run, in milliseconds since 1970.
    pub(crate) last_run_at: Option<Timestamp>,
    /// Result of its last run.
    #[schemars(schema_with = "super::optional_task_result")]
    pub(crate) last_result: Option<TaskResult>,
    /// Note of its last run, in the runtime's words.
    pub(crate) last_note: Option<String>,
    /// Runs that ended.
    pub(crate) runs: u64,
    /// Runs that failed.
    pub(crate) failures: u64,
    /// Runs that failed since the last success.
    pub(crate) failing: u32,
    /// Start of the current run and end of its lease, in milliseconds since 1970.
    pub(crate) leased: Option<(Timestamp, Timestamp)>,
}

/// Times of an entry, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub(crate) struct ScheduleTimesView {
    /// Time that the schedule counts from: the last one that was served.
    pub(crate) anchor: Timestamp,
    /// The schedule's first time after it.
    pub(crate) next: Timestamp,
}

/// An entry of the schedule, as configured.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct TaskConfigView {
    /// Its name, unique in the schedule.
    pub(crate) name: String,
    /// Name of the task.
    pub(crate) task: String,
    /// Schedule.
    pub(crate) schedule: ScheduleRuleView,
    /// True if it runs.
    pub(crate) enabled: bool,
    /// Owner.
    #[schemars(schema_with = "super::task_origin")]
    pub(crate) origin: TaskOrigin,
    /// Of several due entries the lowest number runs first.
    pub(crate) priority: u32,
    /// It waits while the survival tier is lower than this.
    pub(crate) tier_minimum: SurvivalTier,
    /// Timeout of a run, in milliseconds.
    pub(crate) timeout: Span,
    /// Tries after the first.
    pub(crate) max_retries: u32,
}

/// Schedule of a task.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScheduleRuleView {
    /// At the times that a cron expression names in a time zone.
    Cron {
        /// Five fields, or six with seconds first.
        expression: String,
        /// A name of the IANA time zone database.
        zone: String,
    },
    /// Once in so many milliseconds.
    Every(Span),
}

impl From<ScheduleRule> for ScheduleRuleView {
    fn from(rule: ScheduleRule) -> Self {
        match rule {
            ScheduleRule::Cron { expression, zone } => Self::Cron { expression, zone },
            ScheduleRule::Every(span) => Self::Every(span),
        }
    }
}

impl From<&ScheduledTask> for ScheduledTaskView {
    fn from(row: &ScheduledTask) -> Self {
        let row = row.clone();
        let TaskConfig {
            name,
            task,
            schedule,
            enabled,
            origin,
            priority,
            tier_minimum,
            timeout,
            max_retries,
        } = row.task;
        let schedule = schedule.into();
        Self {
            task: TaskConfigView {
                name,
                task,
                schedule,
                enabled,
                origin,
                priority,
                tier_minimum,
                timeout,
                max_retries,
            },
            times: ScheduleTimesView { anchor: row.times.anchor, next: row.times.next },
            retry_at: row.retry_at,
            attempt: row.attempt,
            last_run_at: row.last_run_at,
            last_result: row.last_result,
            last_note: row.last_note,
            runs: row.runs,
            failures: row.failures,
            failing: row.failing,
            leased: row.leased,
        }
    }
}

/// A run that ended.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct TaskRunView {
    /// Result.
    #[schemars(schema_with = "super::task_result")]
    pub(crate) result: TaskResult,
    /// One sentence, in the runtime's words.
    pub(crate) note: String,
    /// Duration, in milliseconds.
    pub(crate) duration: Span,
    /// End of the run, in milliseconds since 1970.
    pub(crate) at: Timestamp,
    /// True if it woke the automaton.
    pub(crate) woke: bool,
}

impl From<&TaskRun> for TaskRunView {
    fn from(row: &TaskRun) -> Self {
        let TaskRun { result, note, duration, at, woke } = row.clone();
        Self { result, note, duration, at, woke }
    }
}

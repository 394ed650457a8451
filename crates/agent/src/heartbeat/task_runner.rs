//! Tasks of the real heartbeat, over the store, the money and the sandbox.

use std::sync::Arc;

use automaton_core::tier::SurvivalTier;
use automaton_core::time::Timestamp;
use automaton_store::{
    ScheduleRule, ScheduleTimes, ScheduledTask, StoreError, TaskConfig, TaskOrigin,
};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::driver::HeartbeatTasks;
use super::due::Need;
use super::tasks::{self, TASKS, TaskContext, TaskFailure, TaskReport, TaskSpec, TickContext};
use crate::error::AgentError;
use crate::handles::Workspace;
use crate::turn::AgentContext;

/// The tasks of one automaton.
pub(super) struct TaskRunner(TaskContext);

impl TaskRunner {
    pub(super) fn new(ctx: &AgentContext) -> Result<Self, AgentError> {
        let settings = ctx.settings.clone();
        let deps = ctx.deps.clone();
        let workspace = Workspace::open(&settings, &deps, ctx.shutdown.clone())?;
        let soul = Arc::clone(&ctx.handles.soul);
        Ok(Self(TaskContext { settings, deps, workspace, soul }))
    }

    /// The names of the tasks of which it has what they look after.
    pub(super) fn available_tasks(&self) -> Vec<String> {
        let offered = TASKS.iter().filter(|spec| (spec.is_available)(&self.0.deps));
        offered.map(|spec| spec.name.to_owned()).collect()
    }

    fn find(&self, task: &str) -> Option<&'static TaskSpec> {
        tasks::find(task).filter(|spec| (spec.is_available)(&self.0.deps))
    }
}

/// Every task, as it runs when nobody says otherwise.
pub(super) fn defaults() -> Vec<TaskConfig> {
    let default = |(priority, spec): (u32, &&TaskSpec)| TaskConfig {
        name: spec.name.to_owned(),
        task: spec.name.to_owned(),
        schedule: ScheduleRule::Cron { expression: spec.cron.to_owned(), zone: "UTC".to_owned() },
        enabled: true,
        origin: TaskOrigin::Default,
        priority,
        tier_minimum: SurvivalTier::Dead,
        timeout: spec.timeout,
        max_retries: spec.max_retries,
    };
    (0..).zip(TASKS).map(default).collect()
}

/// The same schedule, in which one that was just born says at once that it is there:
/// where a row stands is only taken for a row that is new. All else waits for its
/// schedule's first time, so that a birth is no rush of tasks.
pub(super) fn initial_schedule(
    mut tasks: Vec<(TaskConfig, ScheduleTimes)>,
    now: Timestamp,
) -> Vec<(TaskConfig, ScheduleTimes)> {
    for (_, times) in tasks.iter_mut().filter(|(task, _)| task.name == tasks::PING) {
        times.next = now;
    }
    tasks
}

impl HeartbeatTasks for TaskRunner {
    type Tick = TickContext;

    fn need(&self, task: &str) -> Option<Need> {
        self.find(task).map(|spec| spec.need)
    }

    fn read_tick(&self) -> BoxFuture<'_, Result<TickContext, StoreError>> {
        TickContext::read(&self.0.deps).boxed()
    }

    fn tier(&self, tick: &TickContext) -> Option<SurvivalTier> {
        tick.effective_tier()
    }

    fn perform(&self, tick: Arc<TickContext>, row: ScheduledTask) -> BoxFuture<'_, TaskReport> {
        let perform = async move {
            let Some(spec) = self.find(&row.task.task) else {
                return TaskReport::failed(format!("there is no task '{}'", row.task.task));
            };
            let done = (spec.run)(&self.0, &tick).await;
            done.unwrap_or_else(|TaskFailure(note)| TaskReport::failed(note))
        };
        perform.boxed()
    }
}

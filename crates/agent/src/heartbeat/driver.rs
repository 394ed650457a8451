//! Driver of the heartbeat: reads the schedule when something is due, and runs it.
//!
//! A tick decides and starts; it waits for no task. So many tasks may run at once,
//! each under a lease and a deadline of its own, and none twice. A failed task, a
//! panic or a tick that fails must never stop the heart. It sleeps by the runtime's
//! timer and decides by the injected clock.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use automaton_core::error::{Classified, chain};
use automaton_core::event::{Event, StampedEvent};
use automaton_core::faults::{FaultPoint, Faults};
use automaton_core::id::IdGenerator;
use automaton_core::tier::SurvivalTier;
use automaton_core::time::{Span, Timestamp};
use automaton_store::{
    Lease, LeaseRequest, RETRY_DELAY, ScheduleTimes, ScheduledTask, Store, StoreError, TaskFinish,
    TaskResult,
};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::Notify;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;
use tracing::{Instrument as _, debug, debug_span};

use super::due::{DueContext, DueDecision, Need, SET_BACK, verdict};
use super::error::HeartbeatError;
use super::plan::ConfiguredSchedule;
use super::schedule::NEVER;
use super::tasks::TaskReport;
use crate::deps::EventSink;

/// Tasks that run at once; what else is due waits for one of them to end.
const AT_ONCE_MAX: usize = 4;

/// Additional time of a task's lease after its deadline.
const LEASE_MARGIN: Span = Span::from_secs(60);

/// A tick that takes longer than this is reported.
const STALLED_AFTER: Span = Span::from_secs(60);

/// The shortest wait between two ticks.
const REST_MIN: Span = Span::from_millis(100);

/// Tasks of the heartbeat.
pub(crate) trait HeartbeatTasks: Send + Sync + 'static {
    /// Data that a tick reads once for all its tasks.
    type Tick: Send + Sync + 'static;

    /// Returns the need of a task, if it exists.
    fn need(&self, task: &str) -> Option<Need>;

    /// Reads what a tick shares.
    fn read_tick(&self) -> BoxFuture<'_, Result<Self::Tick, StoreError>>;

    /// Returns the tier, if it could be read.
    fn tier(&self, tick: &Self::Tick) -> Option<SurvivalTier>;

    /// Runs a task. Dropping the future ends it, with all that it started.
    fn perform(&self, tick: Arc<Self::Tick>, row: ScheduledTask) -> BoxFuture<'_, TaskReport>;
}

/// Dependencies of the driver.
#[derive(Clone)]
pub(crate) struct SchedulerContext {
    pub(crate) store: Store,
    pub(crate) ids: IdGenerator,
    pub(crate) faults: Arc<dyn Faults>,
    pub(crate) events: Arc<dyn EventSink>,
    /// Rings when a task wakes the automaton.
    pub(crate) wake: Arc<Notify>,
    /// Rings when somebody has changed the schedule.
    pub(crate) changed: Arc<Notify>,
}

impl SchedulerContext {
    fn emit(&self, event: Event) {
        self.events.emit(StampedEvent { at: self.ids.now(), event });
    }

    fn report(&self, what: &str, error: &(impl Classified + 'static)) {
        let error_text = format!("{what}: {}", chain(error));
        let kind = error.kind();
        let hint = error.hint();
        self.emit(Event::ErrorReported { kind, error: error_text, hint });
    }
}

/// The heart.
pub(crate) struct HeartbeatScheduler<W: HeartbeatTasks> {
    works: Arc<W>,
    around: SchedulerContext,
    plan: ConfiguredSchedule,
    /// Current runs; each returns the time until its task may be due again.
    runs: JoinSet<Span>,
    running: HashMap<Id, String>,
    /// The tier that was known last.
    tier: SurvivalTier,
}

/// A task that is due, with where it will stand.
struct DueTask {
    row: ScheduledTask,
    times: ScheduleTimes,
    attempt: u32,
}

/// Result of a look at the schedule.
#[derive(Default)]
struct ScheduleScan {
    due: Vec<DueTask>,
    set_back: Vec<(String, ScheduleTimes)>,
    next: Option<Timestamp>,
}

impl<W: HeartbeatTasks> HeartbeatScheduler<W> {
    pub(crate) fn new(works: W, around: SchedulerContext, plan: ConfiguredSchedule) -> Self {
        let works = Arc::new(works);
        let runs = JoinSet::new();
        let running = HashMap::new();
        let tier = SurvivalTier::Normal;
        Self { works, around, plan, runs, running, tier }
    }

    /// Beats for ever. The next tick waits for this one, so none overlap.
    pub(crate) async fn run(mut self) {
        loop {
            let rest = self.watched_tick().await;
            self.wait_until_due(rest).await;
        }
    }

    /// Rests until something may be due: at most so long, until a run ends that others
    /// wait for or that is due again, or until somebody changes the schedule.
    async fn wait_until_due(&mut self, most: Span) {
        let changed = Arc::clone(&self.around.changed);
        let mut until = Instant::now() + most.to_std();
        loop {
            tokio::select! {
                biased;
                // All arms are cancel-safe: a notify keeps its permit, a set its tasks.
                Some(ended) = self.runs.join_next_with_id() => {
                    let others_wait = self.running.len() >= AT_ONCE_MAX;
                    let broken = |broken: JoinError| (broken.id(), Span::ZERO);
                    let (id, again) = ended.unwrap_or_else(broken);
                    self.running.remove(&id);
                    if others_wait {
                        return;
                    }
                    until = until.min(Instant::now() + again.to_std());
                }
                () = changed.notified() => return,
                () = tokio::time::sleep_until(until) => return,
            }
        }
    }

    /// A tick, with somebody who says so when it takes too long; how long to rest.
    async fn watched_tick(&mut self) -> Span {
        let around = self.around.clone();
        let most = self.plan.tick();
        let began = around.ids.now();
        let mut tick = std::pin::pin!(self.tick());
        let rest = loop {
            tokio::select! {
                biased;
                rest = &mut tick => break rest,
                // Cancel-safe: the tick is awaited by reference, and goes on.
                () = tokio::time::sleep(STALLED_AFTER.to_std()) => {
                    let waited_ms = around.ids.now().since(began).as_millis();
                    around.emit(Event::HeartbeatStalled { waited_ms });
                }
            }
        };
        rest.unwrap_or_else(|error| {
            around.report("a tick of the heartbeat failed", &error);
            most
        })
    }

    /// Starts what is due; how long until something is, or the tick's length.
    async fn tick(&mut self) -> Result<Span, StoreError> {
        self.reload().await?;
        let now = self.around.ids.now();
        let (rows, next) = self.around.store.schedule_at(now, SET_BACK).await?;
        // Only what would be due for the rich is worth reading the balances for.
        let mut found = self.find(&rows, SurvivalTier::High);
        if !found.due.is_empty() {
            let tick = Arc::new(self.works.read_tick().await?);
            self.tier = self.works.tier(&tick).unwrap_or(self.tier);
            found = self.find(&rows, self.tier);
            debug!(due = found.due.len(), tier = self.tier.name(), "a tick found what is due");
            for due in std::mem::take(&mut found.due) {
                if self.running.len() >= AT_ONCE_MAX {
                    break;
                }
                self.start(due, &tick).await?;
            }
        }
        found.next = found.next.into_iter().chain(next).min();
        if !found.set_back.is_empty() {
            let times = found.set_back.iter().map(|(_, times)| times.next).min();
            found.next = found.next.into_iter().chain(times).min();
            self.around.store.reschedule(found.set_back).await?;
        }
        let now = self.around.ids.now();
        let rest = found.next.map_or(self.plan.tick(), |next| next.since(now));
        Ok(rest.clamp(REST_MIN, self.plan.tick()))
    }

    /// Follows the creator's file when it has changed. One that cannot be used
    /// changes nothing, and is told of once.
    async fn reload(&mut self) -> Result<(), StoreError> {
        match self.plan.reload() {
            Ok(false) => Ok(()),
            Ok(true) => {
                let tasks = self.plan.begin(self.around.ids.now());
                self.around.store.schedule_upsert(tasks).await
            }
            Err(error) => {
                self.around.report("the schedule stays as it was", &error);
                Ok(())
            }
        }
    }

    /// Judges every row for an automaton that is this well off.
    fn find(&self, rows: &[ScheduledTask], tier: SurvivalTier) -> ScheduleScan {
        let context = DueContext {
            now: self.around.ids.now(),
            tier,
            interval_multiplier: self.plan.interval_multiplier(),
        };
        let mut found = ScheduleScan::default();
        let mut wait =
            |at: Timestamp| found.next = Some(found.next.map_or(at, |next| next.min(at)));
        for row in rows {
            let name = &row.task.name;
            let Some(need) = self.works.need(&row.task.task) else { continue };
            if self.running.values().any(|running| running == name) {
                continue;
            }
            match verdict(row, need, context) {
                Ok(DueDecision::Run { times, attempt }) => {
                    wait(times.next);
                    found.due.push(DueTask { row: row.clone(), times, attempt });
                }
                Ok(DueDecision::Wait(at)) => wait(at),
                Ok(DueDecision::Follow(times)) => found.set_back.push((name.clone(), times)),
                Ok(DueDecision::Rest) => {}
                Err(source) => {
                    let error = HeartbeatError::Row { name: name.clone(), source };
                    self.around.report("a task rests until it is changed", &error);
                    found
                        .set_back
                        .push((name.clone(), ScheduleTimes { anchor: context.now, next: NEVER }));
                }
            }
        }
        found
    }

    /// Leases a task and starts it.
    async fn start(&mut self, due: DueTask, tick: &Arc<W::Tick>) -> Result<(), StoreError> {
        let DueTask { row, times, attempt } = due;
        let run = self.around.ids.id();
        let seen = row.times.next;
        let ttl = row.task.timeout.plus(LEASE_MARGIN);
        let name = row.task.name.clone();
        let booking = LeaseRequest { run, ttl, seen, times, attempt };
        let Some(lease) = self.around.store.lease_task(&name, booking).await? else {
            return Ok(());
        };
        let works = Arc::clone(&self.works);
        let around = self.around.clone();
        let tick = Arc::clone(tick);
        let handle = self.runs.spawn(async move {
            let result = run_one(&*works, &around, tick, row, lease).await;
            let wait = times.next.since(around.ids.now());
            match result {
                Ok(TaskResult::Success) => wait,
                Ok(_) => wait.min(RETRY_DELAY),
                Err(error) => {
                    around.report("the end of a task cannot be stored", &error);
                    wait
                }
            }
        });
        self.running.insert(handle.id(), name);
        Ok(())
    }
}

/// Runs one leased task and stores how it ended.
async fn run_one<W: HeartbeatTasks>(
    works: &W,
    around: &SchedulerContext,
    tick: Arc<W::Tick>,
    row: ScheduledTask,
    lease: Lease,
) -> Result<TaskResult, StoreError> {
    let name = row.task.name.clone();
    let timeout = row.task.timeout;
    let began = around.ids.now();
    let work = AssertUnwindSafe(works.perform(tick, row)).catch_unwind();
    let work = tokio::time::timeout(timeout.to_std(), work);
    let report = match work.instrument(debug_span!("task", name = %name)).await {
        Ok(Ok(report)) => report,
        Ok(Err(_panic)) => TaskReport::failed("it broke down".to_owned()),
        Err(_late) => {
            let note = format!("cancelled after {timeout}");
            TaskReport { result: TaskResult::Timeout, note, wake: None }
        }
    };
    around.faults.reach(FaultPoint::TaskRan);
    let duration = around.ids.now().since(began);
    let TaskReport { result, note, wake } = report;
    let ok = result == TaskResult::Success;
    let duration_ms = duration.as_millis();
    let finish = TaskFinish { result, note: note.clone(), duration, wake };
    let woke = around.store.finish_task(&name, lease, finish).await?;
    around.emit(Event::HeartbeatRan { task: name, ok, note, duration_ms });
    if woke {
        around.wake.notify_one();
    }
    Ok(result)
}

#[cfg(test)]
mod tests;

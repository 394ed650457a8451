//! The schedule: kept over restarts, leased once, reported by the holder, retried as
//! declared; and what wakes the automaton, once.

use automaton_core::tier::SurvivalTier;
use automaton_core::time::{Clock, Span, Timestamp};
use automaton_store::{
    AGENT_TASKS_MAX, Lease, LeaseRequest, ScheduleRule, ScheduleTimes, ScheduledTask, TaskConfig,
    TaskFinish, TaskOrigin, TaskResult, WAKES_PER_WINDOW,
};

use crate::{World, manual};

const MINUTE: Span = Span::from_secs(60);

pub(crate) fn task(name: &str) -> TaskConfig {
    TaskConfig {
        name: name.to_owned(),
        task: name.to_owned(),
        schedule: ScheduleRule::Every(MINUTE),
        enabled: true,
        origin: TaskOrigin::Default,
        priority: 0,
        tier_minimum: SurvivalTier::Dead,
        timeout: Span::from_secs(10),
        max_retries: 2,
    }
}

/// Where a task stands that begins now.
fn times(now: Timestamp) -> ScheduleTimes {
    ScheduleTimes { anchor: now, next: now.after(MINUTE) }
}

/// Stores these and nothing else.
pub(crate) async fn schedule(world: &World, tasks: Vec<TaskConfig>) {
    let now = world.clock.now();
    let tasks = tasks.into_iter().map(|task| (task, times(now))).collect();
    world.store.schedule_upsert(tasks).await.unwrap();
}

async fn row(world: &World, name: &str) -> ScheduledTask {
    let rows = world.store.schedule().await.unwrap();
    rows.into_iter().find(|row| row.task.name == name).unwrap()
}

pub(crate) fn finish(result: TaskResult) -> TaskFinish {
    TaskFinish { result, note: "done".to_owned(), duration: Span::from_millis(3), wake: None }
}

/// Leases a task as a driver would that has just read it.
pub(crate) async fn lease(world: &World, name: &str, attempt: u32) -> Option<Lease> {
    let seen = row(world, name).await.times.next;
    let (run, ttl, times) = (world.ids.id(), Span::from_secs(9), times(world.clock.now()));
    world.store.lease_task(name, LeaseRequest { run, ttl, seen, times, attempt }).await.unwrap()
}

pub(crate) async fn run(world: &World, name: &str, attempt: u32, finish: TaskFinish) -> bool {
    let lease = lease(world, name, attempt).await.unwrap();
    world.store.finish_task(name, lease, finish).await.unwrap()
}

#[tokio::test]
async fn a_restart_changes_nothing_and_another_rhythm_begins_now() {
    let world = World::born().await;
    let off = TaskConfig { enabled: false, ..task("off") };
    schedule(&world, vec![task("ping"), off.clone(), task("gone")]).await;
    let before = row(&world, "ping").await;
    world.advance(90_000);
    run(&world, "ping", 0, finish(TaskResult::Success)).await;
    let ran = row(&world, "ping").await;
    assert_eq!((before.runs, ran.runs, ran.last_result), (0, 1, Some(TaskResult::Success)));
    world.advance(1000);
    let timeout = Span::from_secs(99);
    schedule(&world, vec![TaskConfig { timeout, ..task("ping") }, off]).await;
    let kept = row(&world, "ping").await;
    assert_eq!((kept.times, kept.runs, kept.task.timeout), (ran.times, 1, timeout));
    let names = |rows: Vec<ScheduledTask>| -> Vec<_> {
        rows.into_iter().map(|row| row.task.name).collect()
    };
    assert_eq!(names(world.store.schedule().await.unwrap()), ["off", "ping"]);
    let (expression, zone) = ("* * * * *".to_owned(), "UTC".to_owned());
    let changed = TaskConfig { schedule: ScheduleRule::Cron { expression, zone }, ..task("ping") };
    schedule(&world, vec![changed.clone()]).await;
    let changed_row = row(&world, "ping").await;
    assert_eq!((changed_row.times, changed_row.runs), (times(world.clock.now()), 1));
    assert_eq!(changed_row.task, changed);
}

#[tokio::test]
async fn what_the_automaton_set_stays_unless_the_file_says_otherwise() {
    let world = World::born().await;
    schedule(&world, vec![task("ping")]).await;
    let own = TaskConfig { origin: TaskOrigin::Agent, enabled: false, ..task("ping") };
    let extra = TaskConfig { origin: TaskOrigin::Agent, task: "ping".to_owned(), ..task("mine") };
    for one in [own, extra] {
        world.store.schedule_one(one, times(world.clock.now())).await.unwrap();
    }
    schedule(&world, vec![task("ping")]).await;
    assert!(!row(&world, "ping").await.task.enabled, "a default does not undo it");
    schedule(&world, vec![TaskConfig { origin: TaskOrigin::File, ..task("ping") }]).await;
    assert!(row(&world, "ping").await.task.enabled, "the creator does");
    assert_eq!(row(&world, "mine").await.task.task, "ping");
    for number in 1..AGENT_TASKS_MAX {
        let one = TaskConfig { origin: TaskOrigin::Agent, ..task(&format!("mine {number}")) };
        world.store.schedule_one(one, times(world.clock.now())).await.unwrap();
    }
    let one = TaskConfig { origin: TaskOrigin::Agent, ..task("one too many") };
    let full = world.store.schedule_one(one, times(world.clock.now())).await.unwrap_err();
    assert!(full.to_string().contains("16"), "{full}");
    assert_eq!(world.store.schedule().await.unwrap().len(), 17);
}

#[tokio::test]
async fn what_it_added_it_can_remove_but_not_while_it_runs_and_nothing_else() {
    let world = World::born().await;
    schedule(&world, vec![task("ping")]).await;
    let own = TaskConfig { origin: TaskOrigin::Agent, ..task("mine") };
    world.store.schedule_one(own, times(world.clock.now())).await.unwrap();
    let remove = |name: &str| world.store.unschedule(name.to_owned());
    assert!(!remove("ping").await.unwrap());
    assert!(row(&world, "ping").await.task.enabled, "it is the creator's");
    let held = lease(&world, "mine", 0).await.unwrap();
    assert!(!remove("mine").await.unwrap());
    assert!(!row(&world, "mine").await.task.enabled);
    world.store.finish_task("mine", held, finish(TaskResult::Success)).await.unwrap();
    assert!(remove("mine").await.unwrap());
    let rows = world.store.schedule().await.unwrap();
    assert!(rows.iter().all(|row| row.task.name == "ping"), "{rows:?}");
}

#[tokio::test]
async fn retries_are_as_declared_and_ever_later() {
    let world = World::born().await;
    schedule(&world, vec![task("ping")]).await;
    let now = || world.clock.now();
    for (attempt, wait) in [(0, Some(30)), (1, Some(60)), (2, None)] {
        run(&world, "ping", attempt, finish(TaskResult::Timeout)).await;
        let retry_at = wait.map(|secs| now().after(Span::from_secs(secs)));
        assert_eq!(row(&world, "ping").await.retry_at, retry_at, "after try {attempt}");
        world.advance(wait.unwrap_or(0) * 1000);
    }
    let failed = row(&world, "ping").await;
    assert_eq!((failed.runs, failed.failures, failed.failing), (3, 3, 3));
    run(&world, "ping", 0, finish(TaskResult::Failure)).await;
    assert!(row(&world, "ping").await.retry_at.is_some(), "the schedule's next time begins anew");
    run(&world, "ping", 1, finish(TaskResult::Success)).await;
    let well = row(&world, "ping").await;
    assert_eq!((well.retry_at, well.failing, well.failures), (None, 0, 4));
}

#[tokio::test]
async fn a_lease_is_exclusive_until_it_ends_and_its_holder_cannot_report_after() {
    let world = World::born().await;
    schedule(&world, vec![task("ping")]).await;
    let seen = row(&world, "ping").await.times.next;
    let other = world.open();
    let (ttl, times) = (Span::from_secs(5), times(world.clock.now()));
    let booking = || LeaseRequest { run: world.ids.id(), ttl, seen, times, attempt: 0 };
    let (a, b) = tokio::join!(
        world.store.lease_task("ping", booking()),
        other.lease_task("ping", booking()),
    );
    let leases: Vec<_> = [a.unwrap(), b.unwrap()].into_iter().flatten().collect();
    assert_eq!(leases.len(), 1, "one of two gets it");
    assert!(lease(&world, "ping", 0).await.is_none());
    world.advance(5000);
    let next = lease(&world, "ping", 0).await.unwrap();
    assert_eq!(next.fence, leases[0].fence + 1);
    let lost = "the lease of the heartbeat task 'ping' was lost";
    let late = world.store.finish_task("ping", leases[0], finish(TaskResult::Success)).await;
    assert_eq!(late.unwrap_err().to_string(), lost);
    world.store.finish_task("ping", next, finish(TaskResult::Success)).await.unwrap();
    let twice = world.store.finish_task("ping", next, finish(TaskResult::Success)).await;
    assert_eq!(twice.unwrap_err().to_string(), lost);
    let unknown = world.store.lease_task("pong", booking()).await.unwrap();
    assert_eq!(unknown, None);
    let stale = LeaseRequest { seen: seen.after(Span::from_millis(1)), ..booking() };
    assert_eq!(
        world.store.lease_task("ping", stale).await.unwrap(),
        None,
        "it was decided on another time"
    );
}

#[tokio::test]
async fn a_clock_that_goes_back_is_followed() {
    let world = World::born().await;
    schedule(&world, vec![task("ping"), task("held")]).await;
    run(&world, "ping", 0, finish(TaskResult::Failure)).await;
    lease(&world, "held", 0).await.unwrap();
    world.advance(-86_400_000);
    assert!(lease(&world, "held", 0).await.is_some(), "a lease of the future is none");
    let times = times(world.clock.now());
    world.store.reschedule(vec![("ping".to_owned(), times)]).await.unwrap();
    let ping = row(&world, "ping").await;
    assert_eq!((ping.times, ping.retry_at), (times, Some(world.clock.now())));
}

#[tokio::test]
async fn one_cause_wakes_once_while_it_lasts() {
    let world = World::born().await;
    schedule(&world, vec![task("ping")]).await;
    let wakes =
        |words: &str| TaskFinish { wake: Some(manual(words)), ..finish(TaskResult::Failure) };
    assert!(run(&world, "ping", 0, wakes("it burns")).await);
    assert!(!run(&world, "ping", 0, wakes("it burns")).await, "it burns still");
    run(&world, "ping", 0, finish(TaskResult::Failure)).await;
    assert!(!run(&world, "ping", 0, wakes("it burns")).await, "nobody has seen it end");
    run(&world, "ping", 0, finish(TaskResult::Success)).await;
    assert!(run(&world, "ping", 0, wakes("it burns")).await, "it burns again");
    assert!(run(&world, "ping", 0, wakes("it floods")).await, "another cause");
    let causes = world.store.pending_wakes().await.unwrap();
    let causes: Vec<_> = causes.into_iter().map(|(_, cause)| cause).collect();
    assert_eq!(causes, [manual("it burns"), manual("it floods")], "a row a cause");
    world.advance(86_400_000);
    assert!(run(&world, "ping", 0, wakes("it floods")).await, "after a day it is told again");
}

#[tokio::test]
async fn a_task_has_a_budget_of_wakes() {
    let world = World::born().await;
    schedule(&world, vec![task("ping")]).await;
    let wakes = |number: u32| TaskFinish {
        wake: Some(manual(&format!("cause {number}"))),
        ..finish(TaskResult::Success)
    };
    for number in 0..WAKES_PER_WINDOW {
        assert!(run(&world, "ping", 0, wakes(number)).await);
    }
    assert!(!run(&world, "ping", 0, wakes(99)).await);
    world.advance(3_600_001);
    assert!(run(&world, "ping", 0, wakes(99)).await, "what was not told is still to be told");
}

#[tokio::test]
async fn a_run_that_died_is_on_record_and_waits() {
    let mut world = World::born().await;
    schedule(&world, vec![TaskConfig { max_retries: 0, ..task("deadly") }]).await;
    world.advance(60_000);
    lease(&world, "deadly", 0).await.unwrap();
    world.advance(700);
    world.crash();
    world.store.recover().await.unwrap();
    let record = row(&world, "deadly").await;
    assert_eq!((record.last_result, record.leased), (Some(TaskResult::Lost), None));
    assert!(record.times.next > world.clock.now(), "it would kill again at once");
    let row = "SELECT result, duration_ms FROM heartbeat_history";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?));
    assert_eq!(world.raw().query_row(row, [], read).unwrap(), ("lost".to_owned(), 700));
}

//! The heartbeat: due, leased, reported, lost.

use automaton_core::time::{Clock, Span};
use automaton_store::{Task, TaskFinish, TaskResult};

use crate::{World, manual};

pub(crate) fn task(name: &str) -> Task {
    Task {
        name: name.to_owned(),
        interval: Span::from_secs(60),
        enabled: true,
        timeout: Span::from_secs(10),
        max_retries: 1,
    }
}

fn finish(result: TaskResult) -> TaskFinish {
    TaskFinish { result, note: "done".to_owned(), duration: Span::from_millis(3), wake: None }
}

async fn due(world: &World) -> Vec<String> {
    let tasks = world.store.due_tasks(world.clock.now()).await.unwrap();
    tasks.into_iter().map(|task| task.task.name).collect()
}

async fn run(world: &World, name: &str, result: TaskResult) {
    let lease = world.store.lease_task(name, world.mint.id(), Span::from_secs(10)).await.unwrap();
    world.store.finish_task(name, lease.unwrap(), finish(result)).await.unwrap();
}

#[tokio::test]
async fn a_task_runs_at_once_and_then_after_its_interval() {
    let world = World::born().await;
    let off = Task { enabled: false, ..task("off") };
    world.store.schedule_upsert(vec![task("ping"), off]).await.unwrap();
    assert_eq!(due(&world).await, ["ping"]);
    run(&world, "ping", TaskResult::Success).await;
    assert!(due(&world).await.is_empty());
    world.advance(59_999);
    assert!(due(&world).await.is_empty());
    world.advance(1);
    assert_eq!(due(&world).await, ["ping"]);
    // New settings keep how it went; what is left out stays, but does not run.
    world.store.schedule_upsert(vec![task("other")]).await.unwrap();
    assert_eq!(due(&world).await, ["other"]);
    let ping = &world.reader().schedule().unwrap()[2];
    assert_eq!((ping.runs, ping.last_result), (1, Some(TaskResult::Success)));
}

#[tokio::test]
async fn a_failure_is_tried_again_soon_but_not_for_ever() {
    let world = World::born().await;
    world.store.schedule_upsert(vec![task("ping")]).await.unwrap();
    run(&world, "ping", TaskResult::Timeout).await;
    world.advance(30_000);
    assert_eq!(due(&world).await, ["ping"], "one retry");
    run(&world, "ping", TaskResult::Failure).await;
    world.advance(30_000);
    assert!(due(&world).await.is_empty(), "no second one");
    world.advance(30_000);
    assert_eq!(due(&world).await, ["ping"]);
    let record = world.reader().schedule().unwrap().remove(0);
    assert_eq!((record.runs, record.failures), (2, 2));
}

#[tokio::test]
async fn a_lease_is_exclusive_until_it_ends_and_its_holder_cannot_report_after() {
    let world = World::born().await;
    world.store.schedule_upsert(vec![task("ping")]).await.unwrap();
    let other = world.open();
    let ttl = Span::from_secs(5);
    let (a, b) = tokio::join!(
        world.store.lease_task("ping", world.mint.id(), ttl),
        other.lease_task("ping", world.mint.id(), ttl),
    );
    let leases: Vec<_> = [a.unwrap(), b.unwrap()].into_iter().flatten().collect();
    assert_eq!(leases.len(), 1, "one of two gets it");
    assert!(due(&world).await.is_empty());
    world.advance(5000);
    assert_eq!(due(&world).await, ["ping"]);
    let next = world.store.lease_task("ping", world.mint.id(), ttl).await.unwrap().unwrap();
    assert_eq!(next.fence, leases[0].fence + 1);
    let lost = "the lease of the heartbeat task 'ping' was lost";
    let late = world.store.finish_task("ping", leases[0], finish(TaskResult::Success)).await;
    assert_eq!(late.unwrap_err().to_string(), lost);
    world.store.finish_task("ping", next, finish(TaskResult::Success)).await.unwrap();
    let twice = world.store.finish_task("ping", next, finish(TaskResult::Success)).await;
    assert_eq!(twice.unwrap_err().to_string(), lost);
    let unknown = world.store.lease_task("pong", world.mint.id(), ttl).await.unwrap();
    assert_eq!(unknown, None);
}

#[tokio::test]
async fn a_clock_that_goes_back_stops_nothing() {
    let world = World::born().await;
    world.store.schedule_upsert(vec![task("ping"), task("held")]).await.unwrap();
    run(&world, "ping", TaskResult::Success).await;
    world.store.lease_task("held", world.mint.id(), Span::from_secs(9)).await.unwrap().unwrap();
    world.advance(-500_000);
    let mut names = due(&world).await;
    names.sort();
    assert_eq!(names, ["held", "ping"]);
}

#[tokio::test]
async fn the_wake_of_a_task_comes_with_its_outcome() {
    let world = World::born().await;
    world.store.schedule_upsert(vec![task("ping")]).await.unwrap();
    let lease = world.store.lease_task("ping", world.mint.id(), Span::from_secs(9)).await.unwrap();
    let report = TaskFinish { wake: Some(manual("wake up")), ..finish(TaskResult::Success) };
    world.store.finish_task("ping", lease.unwrap(), report).await.unwrap();
    let causes = world.store.pending_wakes().await.unwrap();
    assert_eq!(causes.into_iter().map(|(_, cause)| cause).collect::<Vec<_>>(), [manual("wake up")]);
}

#[tokio::test]
async fn a_run_that_died_is_on_record_and_waits() {
    let mut world = World::born().await;
    world.store.schedule_upsert(vec![Task { max_retries: 0, ..task("deadly") }]).await.unwrap();
    world.store.lease_task("deadly", world.mint.id(), Span::from_secs(600)).await.unwrap().unwrap();
    world.advance(700);
    world.crash();
    world.store.recover().await.unwrap();
    assert!(due(&world).await.is_empty(), "it would kill again at once");
    let record = world.reader().schedule().unwrap().remove(0);
    assert_eq!((record.last_result, record.leased_until), (Some(TaskResult::Lost), None));
    world.advance(60_000);
    assert_eq!(due(&world).await, ["deadly"]);
    let row = "SELECT result, duration_ms FROM heartbeat_history";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?));
    assert_eq!(world.raw().query_row(row, [], read).unwrap(), ("lost".to_owned(), 700));
}

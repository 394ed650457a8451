//! What is old goes, what is needed stays, and the audit outlives both.

use automaton_core::message::CLAIMED_PER_TURN_MAX;
use automaton_core::record::{CallStatus, StopReason};
use automaton_core::time::Span;
use automaton_store::{Deleted, Limits, TaskFinish, TaskResult};

use crate::{World, output, said};

const DAY: i64 = 86_400_000;

/// A day with a message, a turn with a call, a heartbeat and a sleep.
async fn live_a_day(world: &World, number: u32) {
    let text = format!("day {number}");
    world.store.receive(said(&text), None).await.unwrap();
    let causes = world.store.pending_wakes().await.unwrap().into_iter().map(|(_, cause)| cause);
    let session = world.store.open_session(causes.collect()).await.unwrap();
    let call = world.planned();
    let turn = world.judged(session, vec![call.clone()]).await;
    world.store.start_call(call.id).await.unwrap();
    let done = world.store.finish_call(call.id, CallStatus::Done, output(&text), Span::ZERO);
    done.await.unwrap();
    world.store.send_to_creator(call.id, output(&text), None).await.unwrap();
    world.store.commit_turn(turn).await.unwrap();
    world.store.ingest_turn(turn, automaton_store::Ingest::default()).await.unwrap();
    world.store.close_session(session, StopReason::Asked, None, None).await.unwrap();
    let lease = world.store.lease_task("ping", world.mint.id(), Span::from_secs(9)).await.unwrap();
    let note = "pong".to_owned();
    let finish = TaskFinish { result: TaskResult::Success, note, duration: Span::ZERO, wake: None };
    world.store.finish_task("ping", lease.unwrap(), finish).await.unwrap();
    world.advance(DAY);
}

async fn ten_days() -> World {
    let world = World::born().await;
    world.store.schedule_upsert(vec![crate::schedule::task("ping")]).await.unwrap();
    for number in 0..10 {
        live_a_day(&world, number).await;
    }
    world
}

fn count(world: &World, table: &str) -> u64 {
    let statement = format!("SELECT count(*) FROM {table}");
    let count: i64 = world.raw().query_row(&statement, [], |row| row.get(0)).unwrap();
    count.unsigned_abs()
}

#[tokio::test]
async fn the_old_go_and_the_audit_stays() {
    let world = ten_days().await;
    let limits = Limits { keep: Span::from_millis(3 * DAY), turns_kept: 2, rows_max: 1000 };
    let audit = ["policy_decisions", "intents", "call_outcomes", "audit_chain", "inference_costs"];
    let before = audit.map(|table| count(&world, table));
    let deleted = world.store.retention(limits).await.unwrap();
    let expected = Deleted {
        turns: 7,
        messages: 7,
        outbox: 7,
        wakes: 7,
        sessions: 7,
        heartbeat: 7,
        state_changes: 1,
        more: false,
    };
    assert_eq!(deleted, expected);
    for table in ["turns", "tool_calls", "turn_inputs", "inbox_messages", "wake_events"] {
        assert_eq!(count(&world, table), 3, "{table}");
    }
    assert_eq!(audit.map(|table| count(&world, table)), before);
    assert!(world.store.verify_chain().await.unwrap().is_whole());
    let turns = world.store.recent_turns(0, 100).await.unwrap();
    assert_eq!(turns[0].inputs, [said("day 7")], "a kept turn keeps its messages");
    assert_eq!(world.store.retention(limits).await.unwrap(), Deleted::default());
    assert_eq!(
        world.store.life().await.unwrap().turns,
        10,
        "the count of a life is no count of rows"
    );
    let next = world.session().await;
    assert_eq!(
        world.store.open_turn(next, Vec::new(), CLAIMED_PER_TURN_MAX).await.unwrap().seq,
        11
    );
}

#[tokio::test]
async fn the_newest_turns_stay_whatever_their_age() {
    let world = ten_days().await;
    world.advance(1000 * DAY);
    let limits = Limits { keep: Span::from_millis(DAY), turns_kept: 4, rows_max: 1000 };
    let deleted = world.store.retention(limits).await.unwrap();
    assert_eq!((deleted.turns, deleted.messages), (6, 6));
    assert!(world.store.last_session().await.unwrap().is_some());
}

#[tokio::test]
async fn too_many_rows_go_even_when_they_are_young() {
    let world = ten_days().await;
    let limits = Limits { keep: Span::from_millis(1000 * DAY), turns_kept: 2, rows_max: 5 };
    let deleted = world.store.retention(limits).await.unwrap();
    assert_eq!((deleted.turns, deleted.heartbeat, deleted.outbox), (5, 5, 5));
}

#[tokio::test]
async fn what_is_owed_waiting_or_open_stays() {
    let world = World::born().await;
    let session = world.session().await;
    let owed = world.answer(session).await;
    world.store.receive(said("still here"), None).await.unwrap();
    world.advance(1000 * DAY);
    let limits = Limits { keep: Span::ZERO, turns_kept: 0, rows_max: 0 };
    let deleted = world.store.retention(limits).await.unwrap();
    assert_eq!((deleted.turns, deleted.messages, deleted.sessions), (0, 0, 0));
    assert_eq!(world.store.owed_ingests().await.unwrap(), [owed]);
    assert_eq!(world.store.inbox_counts().await.unwrap().received, 1);
    assert_eq!(world.store.pending_wakes().await.unwrap().len(), 1);
}

#[tokio::test]
async fn one_call_deletes_a_batch_and_says_that_there_is_more() {
    let world = World::born().await;
    let fill = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200) \
        INSERT INTO heartbeat_history (run, task, result, note, duration_ms, at) \
        SELECT 'run ' || i, 'ping', 'success', '', 0, 0 FROM n";
    world.raw().execute(fill, []).unwrap();
    world.advance(1000 * DAY);
    let limits = Limits { keep: Span::ZERO, turns_kept: 0, rows_max: 0 };
    let mut deleted = Vec::new();
    loop {
        let round = world.store.retention(limits).await.unwrap();
        deleted.push(round.heartbeat);
        if !round.more {
            break;
        }
    }
    assert_eq!(deleted, [500, 500, 200]);
}

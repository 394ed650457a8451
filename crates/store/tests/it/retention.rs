//! What is old goes, what is needed stays, and the audit outlives both.

use automaton_core::message::CLAIMED_PER_TURN_MAX;
use automaton_core::record::{CallStatus, StopReason};
use automaton_core::time::{Clock, Span};
use automaton_store::{RetentionPolicy, RetentionResult, TaskResult};

use crate::Steps as _;
use crate::schedule::{finish, lease, schedule, task};
use crate::{World, output, said};

const DAY: i64 = 86_400_000;

/// A day with a message, a turn with a call, a heartbeat and a sleep.
async fn live_a_day(world: &World, number: u32) {
    let text = format!("day {number}");
    let asked = world.store.receive(said(&text), None).await.unwrap();
    let causes = world.store.pending_wakes().await.unwrap().into_iter().map(|(_, cause)| cause);
    let session = world.store.open_session(causes.collect()).await.unwrap();
    let call = world.planned();
    let turn = world.judged(session, vec![call.clone()]).await;
    world.store.start_call(call.id).await.unwrap();
    let done = world.store.finish_call(call.id, CallStatus::Done, output(&text), Span::ZERO);
    done.await.unwrap();
    world.store.send_to_creator(call.id, output(&text), Some(asked)).await.unwrap();
    world.store.commit_turn(turn).await.unwrap();
    world.store.close_session(session, StopReason::Asked, None, None).await.unwrap();
    let lease = lease(world, "ping", 0).await.unwrap();
    world.store.finish_task("ping", lease, finish(TaskResult::Success)).await.unwrap();
    world.advance(DAY);
}

async fn ten_days() -> World {
    let world = World::born().await;
    schedule(&world, vec![task("ping")]).await;
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
    let limits = RetentionPolicy {
        keep: Span::from_millis(3 * DAY),
        keep_heartbeat: Span::ZERO,
        turns_kept: 2,
        rows_max: 1000,
    };
    let audit = ["policy_decisions", "tool_calls", "ledger"];
    let before = audit.map(|table| count(&world, table));
    let tallies = world.reader().lifetime_counters().unwrap();
    assert_eq!((tallies.turns.count(), tallies.models.count()), (10, 10));
    assert_eq!((tallies.tools.count(), tallies.heartbeat.count()), (10, 10));
    assert_eq!(tallies.calls, [(Some("exec".to_owned()), CallStatus::Done, 10)]);
    let deleted = world.store.retention(limits).await.unwrap();
    let expected = RetentionResult {
        turns: 7,
        messages: 7,
        outbox: 7,
        wakes: 7,
        sessions: 7,
        heartbeat: 0,
        state_changes: 1,
        egress: 0,
        memories: 0,
        more: false,
    };
    assert_eq!(deleted, expected);
    for table in [
        "turns",
        "tool_calls WHERE arguments IS NOT NULL",
        "turn_inputs",
        "inbox_messages",
        "wake_events",
    ] {
        assert_eq!(count(&world, table), 3, "{table}");
    }
    assert_eq!(audit.map(|table| count(&world, table)), before);
    assert_eq!(
        world.reader().lifetime_counters().unwrap(),
        tallies,
        "what is deleted still counts"
    );
    assert!(world.store.verify_chain().await.unwrap().is_whole());
    let turns = world.store.recent_turns(0, 100).await.unwrap();
    assert_eq!(turns[0].inputs, [said("day 7")], "a kept turn keeps its messages");
    assert_eq!(world.store.retention(limits).await.unwrap(), RetentionResult::default());
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
async fn what_a_prompt_was_made_of_goes_with_the_last_turn_that_shows_it() {
    let world = ten_days().await;
    let showed = "INSERT INTO prompt_parts (sha256, body) VALUES (zeroblob(32), '{}');
        INSERT INTO prompt_parts (sha256, body)
            SELECT CAST(printf('%032d', seq) AS BLOB), '{}' FROM turns;
        UPDATE turns SET asked_at = 1, moment = '', head = 1, worklog = 1,
            shown = (SELECT seq FROM prompt_parts WHERE sha256 = CAST(printf('%032d', turns.seq) AS BLOB));";
    world.raw().execute_batch(showed).unwrap();
    let mut limits = RetentionPolicy {
        keep: Span::from_millis(3 * DAY),
        keep_heartbeat: Span::ZERO,
        turns_kept: 2,
        rows_max: 1000,
    };
    assert_eq!(world.store.retention(limits).await.unwrap().turns, 7);
    assert_eq!(count(&world, "prompt_parts"), 4, "that of all and those of three turns");
    (limits.turns_kept, limits.rows_max) = (0, 0);
    assert_eq!(world.store.retention(limits).await.unwrap().turns, 3);
    assert_eq!(count(&world, "prompt_parts"), 0);
}

#[tokio::test]
async fn the_newest_turns_stay_whatever_their_age() {
    let world = ten_days().await;
    world.advance(1000 * DAY);
    let limits = RetentionPolicy {
        keep: Span::from_millis(DAY),
        keep_heartbeat: Span::ZERO,
        turns_kept: 4,
        rows_max: 1000,
    };
    let deleted = world.store.retention(limits).await.unwrap();
    assert_eq!((deleted.turns, deleted.messages), (6, 6));
    assert!(world.store.last_session().await.unwrap().is_some());
}

#[tokio::test]
async fn too_many_rows_go_even_when_they_are_young() {
    let world = ten_days().await;
    let limits = RetentionPolicy {
        keep: Span::from_millis(1000 * DAY),
        keep_heartbeat: Span::ZERO,
        turns_kept: 2,
        rows_max: 5,
    };
    let deleted = world.store.retention(limits).await.unwrap();
    assert_eq!((deleted.turns, deleted.outbox), (5, 5));
}

#[tokio::test]
async fn what_is_owed_waiting_or_open_stays() {
    let mut world = World::born().await;
    let session = world.session().await;
    let owed = world.judged(session, Vec::new()).await;
    world.crash();
    world.store.recover().await.unwrap();
    world.store.receive(said("still here"), None).await.unwrap();
    world.advance(1000 * DAY);
    let limits = RetentionPolicy {
        keep: Span::ZERO,
        keep_heartbeat: Span::ZERO,
        turns_kept: 0,
        rows_max: 0,
    };
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
    let limits = RetentionPolicy {
        keep: Span::ZERO,
        keep_heartbeat: Span::ZERO,
        turns_kept: 0,
        rows_max: 0,
    };
    let mut deleted = Vec::new();
    loop {
        let round = world.store.retention(limits).await.unwrap();
        deleted.push(round.heartbeat);
        if !round.more {
            break;
        }
    }
    assert_eq!(deleted, [500, 500, 180], "the newest twenty of a task stay");
}

#[tokio::test]
async fn runs_of_the_heartbeat_go_after_their_own_time() {
    let world = World::born().await;
    let fill = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) \
        INSERT INTO heartbeat_history (run, task, result, note, duration_ms, at) \
        SELECT 'run ' || i, iif(i % 10 = 0, 'seldom', 'often'), 'success', '', 0, ?1 + i * 3600000 FROM n";
    let now = world.clock.now();
    world.raw().execute(fill, [now.as_millis()]).unwrap();
    world.advance(100 * 3_600_000);
    let keep = Span::from_millis(1000 * DAY);
    let keep_heartbeat = Span::from_secs(50 * 3600);
    let limits = RetentionPolicy { keep, keep_heartbeat, turns_kept: 2, rows_max: 1000 };
    // The first 49 hours have 4 of one task and 45 of the other.
    assert_eq!(world.store.retention(limits).await.unwrap().heartbeat, 45);
    world.advance(DAY);
    assert_eq!(world.store.retention(limits).await.unwrap().heartbeat, 21);
    let limits = RetentionPolicy { rows_max: 3, ..limits };
    assert_eq!(world.store.retention(limits).await.unwrap().heartbeat, 4);
    assert_eq!(count(&world, "heartbeat_history"), 30, "ten of the one and twenty of the other");
}

//! What the store does with files that are not as it left them, and with others
//! that write the same file.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use automaton_core::error::{Classified, Kind, chain};
use automaton_core::faults::FaultPoint;
use automaton_store::{Reader, SqliteError, Store, StoreError};

use crate::{World, manual, said, usage};

#[tokio::test]
async fn what_was_stored_is_there_after_a_close_and_after_none() {
    let mut world = World::born().await;
    world.store.receive(said("one"), None).await.unwrap();
    world.store.clone().close().await.unwrap();
    let gone = world.store.receive(said("two"), None).await.unwrap_err();
    assert!(matches!(gone, StoreError::WriterGone { operation: "store a message" }), "{gone}");
    world.crash();
    world.store.receive(said("three"), None).await.unwrap();
    world.crash();
    assert_eq!(world.store.inbox_counts().await.unwrap().received, 2);
    world.store.checkpoint().await.unwrap();
    let log = fs::metadata(world.home.path().join("state.db-wal")).unwrap();
    assert_eq!(log.len(), 0, "the log is folded back");
    assert!(world.reader().db_bytes().unwrap() > 4096);
}

#[tokio::test]
async fn the_files_are_private() {
    let world = World::born().await;
    for entry in fs::read_dir(world.home.path()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{entry:?}");
    }
}

#[tokio::test]
async fn a_newer_database_is_refused_with_both_versions() {
    let world = World::born().await;
    world.store.clone().close().await.unwrap();
    world.raw().pragma_update(None, "user_version", 999).unwrap();
    let before = fs::read(world.path()).unwrap();
    for error in [
        Store::open(&world.path(), world.mint.clone(), world.trap.clone()).err().unwrap(),
        Reader::open(&world.path()).err().unwrap(),
    ] {
        let text = chain(&error).to_string();
        assert!(text.contains("has version 999; this program knows versions up to "), "{text}");
        assert_eq!(error.kind(), Kind::User);
        assert!(error.hint().unwrap().contains("newer program"));
    }
    assert_eq!(fs::read(world.path()).unwrap(), before);
}

#[tokio::test]
async fn a_damaged_database_is_refused_and_left_alone() {
    let world = World::born().await;
    for number in 0..50 {
        world.store.receive(said(&"text ".repeat(1000 + number)), None).await.unwrap();
    }
    world.store.clone().close().await.unwrap();
    let whole = fs::read(world.path()).unwrap();
    for cut in [0, 700, whole.len() / 2] {
        fs::write(world.path(), &whole[..cut]).unwrap();
        let error = Store::open(&world.path(), world.mint.clone(), world.trap.clone()).err();
        assert!(
            matches!(error, Some(StoreError::Open(SqliteError::Corrupt { .. }))),
            "{cut}: {error:?}"
        );
        assert_eq!(fs::read(world.path()).unwrap(), &whole[..cut], "it was touched");
    }
    fs::write(world.path(), &whole).unwrap();
    assert_eq!(world.open().inbox_counts().await.unwrap().received, 50);
}

#[tokio::test]
async fn the_death_of_the_writer_is_named_and_loses_nothing() {
    let mut world = World::born().await;
    *world.trap.armed.lock().unwrap() = Some(FaultPoint::MessageReceived);
    let error = world.store.receive(said("hello"), None).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot store a message: the store's writer thread has ended");
    assert!(world.store.life().await.is_err(), "it does not go on after a panic");
    assert!(world.store.clone().close().await.is_err());
    world.crash();
    assert_eq!(world.store.inbox_counts().await.unwrap().received, 1);
}

#[tokio::test]
async fn two_writers_take_turns() {
    let world = World::born().await;
    let other = world.open();
    let mut results = Vec::new();
    for number in 0..40 {
        let (a, b, text) = (manual(&format!("a{number}")), manual(&format!("b{number}")), "x");
        let (a, b, c, d) = tokio::join!(
            world.store.push_wake(a),
            other.push_wake(b),
            world.store.receive(said(text), None),
            other.receive(said(text), None),
        );
        results.extend([a, b, c.map(|_| ()), d.map(|_| ())]);
    }
    for result in results {
        result.unwrap();
    }
    assert_eq!(world.store.pending_wakes().await.unwrap().len(), 81);
    assert_eq!(world.store.inbox_counts().await.unwrap().received, 80);
    let check = world.raw().query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
    assert_eq!(check.unwrap(), "ok");
}

#[tokio::test]
async fn a_writer_that_never_lets_go_is_named() {
    let world = World::born().await;
    let raw = world.raw();
    raw.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = world.store.push_wake(manual("x")).await.unwrap_err();
    assert!(matches!(error, StoreError::Sql { .. }), "{error:?}");
    assert_eq!(error.kind(), Kind::Transient);
    raw.execute_batch("ROLLBACK").unwrap();
    world.store.push_wake(manual("x")).await.unwrap();
}

#[tokio::test]
async fn a_record_that_is_older_keeps_its_intents_and_adds_up_its_answers() {
    let world = World::born().await;
    let session = world.session().await;
    let mut call = world.planned();
    // It knew nothing of that.
    call.decision.as_mut().unwrap().under = None;
    world.judged(session, vec![call]).await;
    world.store.clone().close().await.unwrap();
    // Back to the tables of version 2, with what is in them.
    let back = "ALTER TABLE turns DROP COLUMN voice; DROP TABLE unheard_answers; DROP INDEX inbox_messages_open; ALTER TABLE inbox_messages DROP COLUMN answered_at; \
         ALTER TABLE inbox_messages DROP COLUMN answered_by; ALTER TABLE inbox_messages DROP COLUMN file; \
         ALTER TABLE outbox_messages RENAME COLUMN cause TO call; DROP TABLE digests; \
         ALTER TABLE automaton DROP COLUMN shortened_until; ALTER TABLE automaton DROP COLUMN arguments_until; ALTER TABLE automaton DROP COLUMN move_told; DROP TABLE account_reads; DROP TABLE egress; DROP TABLE path_labels; DROP INDEX inbox_messages_outside; \
        DROP INDEX turn_inputs_outside; DROP INDEX tool_calls_outside; \
        DROP INDEX semantic_memory_outside; DROP TRIGGER turns_folded; DROP TRIGGER wake_events_folded; \
        DROP TRIGGER tool_calls_folded; DROP TRIGGER heartbeat_history_folded; \
        DROP TABLE metric_folds; DROP TABLE metric_bounds; \
        DROP TABLE prompts; DROP TABLE prompt_heads; DROP TABLE inference_totals; DROP TABLE payments; DROP TABLE payment_steps; \
        DROP TABLE approvals; DROP TABLE approval_steps; DROP TABLE ledger; DROP TABLE hibernation; DROP TABLE window_time; \
        DROP TABLE rate_uses; DROP TABLE vitals; DROP TABLE tier_changes; DROP TABLE alerts; \
        DROP TABLE metric_snapshots; DROP INDEX heartbeat_history_at; \
        DROP INDEX policy_decisions_at; DROP INDEX turns_committed_at; \
        DROP TRIGGER policy_decisions_fixed; DROP INDEX policy_decisions_turn; \
        ALTER TABLE policy_decisions RENAME TO decided; \
        CREATE TABLE policy_decisions AS SELECT d.id, turn, call, tool, args_sha256, outcome, \
        code, reason, d.label, d.source, risk, names AS rules_evaluated, rules_triggered, at \
        FROM decided AS d JOIN rule_sets AS r ON r.id = d.rules; \
        DROP TABLE decided; DROP TABLE rule_sets; \
        CREATE INDEX policy_decisions_turn ON policy_decisions (turn); \
        ALTER TABLE automaton DROP COLUMN losses_from; \
        ALTER TABLE automaton DROP COLUMN stretch_from; ALTER TABLE automaton DROP COLUMN rests; \
        DROP TABLE heartbeat_dedup; DROP INDEX heartbeat_history_task; \
        ALTER TABLE heartbeat_history DROP COLUMN woke; DROP TABLE heartbeat_schedule; \
        CREATE TABLE heartbeat_schedule (name, interval_ms, enabled, timeout_ms, max_retries, \
        last_run_at, next_run_at, last_result, last_note, label, source, runs, failures, failing, \
        fence, lease_run, leased_at, leased_until); \
        INSERT INTO heartbeat_schedule VALUES ('ping', 60000, 1, 30000, 1, 5, NULL, 'failure', \
        'late', 'self', 'heartbeat', 9, 2, 1, 9, NULL, NULL, NULL);";
    for step in [back, include_str!("../../migrations/0002_spends.sql"), "PRAGMA user_version = 2"]
    {
        world.raw().execute_batch(step).unwrap();
    }
    let store = world.open();
    assert!(world.reader().verify_chain().unwrap().is_whole());
    let ping = world.reader().schedule().unwrap().remove(0);
    let stood = (ping.times.anchor.as_millis(), ping.times.next.as_millis());
    assert_eq!((stood, ping.runs, ping.failing), ((5, 60_005), 9, 1));
    let raw = world.raw();
    let count = "SELECT count(*) FROM intents";
    assert_eq!(raw.query_row(count, [], |row| row.get(0)), Ok(1));
    assert!(raw.execute("DELETE FROM intents", []).is_err(), "they are kept as before");
    let usage = usage();
    let once = store.totals().await.unwrap();
    assert_eq!((once.answers, once.prompt_tokens, once.cost), (1, 10, usage.cost));
    store.answer_heard(None, world.mint.id(), &usage).await.unwrap();
    let twice = store.totals().await.unwrap();
    assert_eq!((twice.answers, twice.cached_tokens, twice.completion_tokens), (2, 8, 10));
    assert_eq!(twice.cost, usage.cost.plus(usage.cost).unwrap());
}

//! Rows that may change: whatever another program does to them is found, and whatever the
//! store does is none of it.

use std::collections::BTreeSet;

use automaton_core::faults::FaultPoint;
use automaton_core::id::{MessageId, SessionId};
use automaton_core::memory::{MemoryId, MemoryTier, NewMemory, StoreOutcome};
use automaton_core::message::CLAIMED_PER_TURN_MAX;
use automaton_core::record::{CallStatus, SessionSummary};
use automaton_core::time::{Clock, Span};
use automaton_core::trust::{Label, Labelled};
use automaton_store::{
    AskedAnswer, ChainBreak, ChainDivergence, ChainHead, ChainProblem, ChainReport, DigestRow,
    FailureCause, Hash, HistoryPosition, NewSummary, PromptLayerRow, PromptRow, RetentionPolicy,
    SqliteError, StoreError, TaskResult,
};
use proptest::prelude::*;
use rusqlite::Connection;
use rusqlite::types::Value;

use crate::Steps as _;
use crate::audit::{exported, verified};
use crate::schedule::{finish, lease, schedule, task};
use crate::{World, judgement, output, refused, said, usage};

/// The covered tables, each with its key and the columns that are not covered.
const COVERED: [(&str, &str, &[&str]); 9] = [
    ("inbox_messages", "seq", &[]),
    ("turns", "seq", &[]),
    ("turn_inputs", "turn || '/' || ordinal", &[]),
    ("prompt_parts", "seq", &[]),
    ("tool_calls", "seq", &["decided_link", "decided_sha256", "ended_link", "ended_sha256"]),
    ("digests", "upto", &[]),
    ("session_summaries", "upto", &[]),
    ("memories", "id", &[]),
    (
        "heartbeat_schedule",
        "name",
        &[
            "anchor_at",
            "next_run_at",
            "retry_at",
            "attempt",
            "last_run_at",
            "last_result",
            "last_note",
            "runs",
            "failures",
            "failing",
            "fence",
            "lease_run",
            "leased_at",
            "leased_until",
        ],
    ),
];

/// The tables that are not among them. Whoever makes a table decides where it belongs.
const OTHERS: [&str; 37] = [
    "account_reads",
    "alerts",
    "approval_steps",
    "approvals",
    "audit_chain",
    "audit_changes",
    "audit_head",
    "automaton",
    "egress",
    "embedding_progress",
    "heartbeat_dedup",
    "heartbeat_history",
    "hibernation",
    "inference_totals",
    "ledger",
    "machine_releases",
    "memory_counts",
    "memory_vectors",
    "metric_bounds",
    "metric_folds",
    "metric_snapshots",
    "outbox_messages",
    "path_labels",
    "payment_steps",
    "payments",
    "port_sales",
    "published_ports",
    "rate_uses",
    "rule_sets",
    "sessions",
    "soul_history",
    "soul_reflection",
    "state_changes",
    "thinking_hours",
    "tier_changes",
    "unsettled_answers",
    "vitals",
];
const OTHERS_TOO: [&str; 2] = ["wake_events", "window_time"];

fn memory(name: &str, text: &str) -> NewMemory {
    NewMemory {
        tier: MemoryTier::Semantic,
        kind: "fact".to_owned(),
        name: name.to_owned(),
        body: Labelled::new(Label::Own, "test", text),
        strength: 90,
        turn: None,
        lasts: None,
    }
}

fn layer(text: &str) -> PromptLayerRow {
    PromptLayerRow { sha256: Hash::of(text.as_bytes()), chars: 1, tokens: 1 }
}

fn prompt(world: &World, text: &str) -> AskedAnswer {
    let prompt = PromptRow {
        head: vec![("law".to_owned(), text.to_owned())],
        status: "now".to_owned(),
        history_from: Some(1),
        shown: None,
        open: layer("open"),
        digest: layer("digest"),
        history: layer("history"),
        worklog_view: None,
        worklog: layer("worklog"),
        memory: layer("memory"),
        input: layer("input"),
        window_tokens: 9,
        answer_tokens: 9,
    };
    AskedAnswer { prompt, at: world.clock.now(), reservation: None, choice: None }
}

/// A turn that answers a message, with a text of its own, a prompt, two calls and a memory.
async fn live_a_turn(world: &World, session: SessionId, nth: usize) {
    let store = &world.store;
    store.receive(said(&format!("message {nth}")), None).await.unwrap();
    let extra = vec![output("a notice")];
    let turn = store.open_turn(session, extra, CLAIMED_PER_TURN_MAX).await.unwrap().id;
    let call = world.planned();
    let calls = vec![call.clone(), refused(world.ids.id())];
    let asked = prompt(world, &format!("law {}", nth / 3));
    store.record_judgement(judgement(turn, calls), Some(asked)).await.unwrap();
    store.start_call(call.id).await.unwrap();
    store.finish_call(call.id, CallStatus::Done, output("ok"), Span::ZERO).await.unwrap();
    store.remember(memory(&format!("{}", nth % 5), &format!("fact {nth}"))).await.unwrap();
    store.commit_turn(turn).await.unwrap();
    store.ingest_turn(turn, Vec::new()).await.unwrap();
    world.advance(1_000);
}

/// A life with rows in every covered table.
async fn lived() -> World {
    let world = World::born().await;
    schedule(&world, vec![task("ping"), task("pong")]).await;
    let session = world.session().await;
    for nth in 0..3 {
        live_a_turn(&world, session, nth).await;
    }
    let place = HistoryPosition { from: 2, whole_from: 2, arguments_from: 2, told: false };
    let (label, body) = (Label::Own, "[]".to_owned());
    let digest = DigestRow { upto: 2, label, body, summaries: Vec::new() };
    world.store.move_history(place, Some(digest)).await.unwrap();
    let turn = world.reader().turns(1).unwrap()[0].id;
    let text = "it went well".to_owned();
    let summary = SessionSummary { from: 1, upto: 2, label, text };
    let new = NewSummary {
        summary,
        last: (session, turn),
        tokens_before: 9,
        tokens_after: 3,
        usage: usage(),
    };
    world.store.keep_summary(None, new).await.unwrap();
    world
}

fn report(world: &World) -> ChainReport {
    world.reader().verify_chain().unwrap()
}

/// A connection of somebody who keeps no rule at all.
fn intruder(world: &World) -> Connection {
    let raw = world.raw();
    raw.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON").unwrap();
    let triggers = names(&raw, "SELECT name FROM sqlite_schema WHERE type = 'trigger'");
    for trigger in triggers {
        raw.execute_batch(&format!("DROP TRIGGER {trigger}")).unwrap();
    }
    raw
}

fn names(raw: &Connection, statement: &str) -> Vec<String> {
    let mut statement = raw.prepare(statement).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn columns(raw: &Connection, table: &str) -> Vec<(String, String)> {
    let mut statement = raw.prepare("SELECT name, type FROM pragma_table_info(?1)").unwrap();
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    statement.query_map([table], read).unwrap().map(Result::unwrap).collect()
}

/// A row of a table, by its key.
fn some_row(raw: &Connection, table: &str, key: &str) -> String {
    let statement = format!("SELECT CAST({key} AS TEXT) FROM {table} ORDER BY 1 LIMIT 1");
    raw.query_row(&statement, [], |row| row.get(0)).unwrap()
}

/// An expression with a value that the column does not hold.
fn other_value(column: &str, kind: &str) -> String {
    match kind {
        "INTEGER" => format!("coalesce({column}, 0) + 1000001"),
        "TEXT" => format!("coalesce({column}, '') || 'x'"),
        "BLOB" => format!("iif({column} IS zeroblob(32), randomblob(32), zeroblob(32))"),
        _ => "'forged'".to_owned(),
    }
}

/// Restores a table to what it was.
fn put_back(raw: &Connection, table: &str) {
    let back = format!("DELETE FROM main.{table}; INSERT INTO main.{table} SELECT * FROM saved");
    raw.execute_batch(&back).unwrap();
}

fn named(report: &ChainReport) -> Vec<&ChainProblem> {
    report.rows.iter().map(|found| &found.problem).collect()
}

fn is_edit(problem: &ChainProblem, table: &str, row: &str) -> bool {
    matches!(problem, ChainProblem::RowEdited { table: t, row: r } if (&**t, &**r) == (table, row))
}

fn is_addition(problem: &ChainProblem, table: &str) -> bool {
    matches!(problem, ChainProblem::RowAdded { table: found, .. } if found == table)
}

fn is_deletion(problem: &ChainProblem, table: &str, row: &str) -> bool {
    matches!(problem, ChainProblem::RowDeleted { table: t, row: r } if (&**t, &**r) == (table, row))
}

fn is_stray(problem: &ChainProblem, table: &str, row: &str) -> bool {
    matches!(problem, ChainProblem::RowStray { table: t, row: r } if (&**t, &**r) == (table, row))
}

#[tokio::test]
async fn every_edit_of_a_covered_column_is_found_and_its_row_is_named() {
    let world = lived().await;
    assert_eq!(report(&world).broken, None);
    let raw = intruder(&world);
    for (table, key, left_out) in COVERED {
        let saved =
            "DROP TABLE IF EXISTS temp.saved; CREATE TEMP TABLE saved AS SELECT * FROM main.";
        raw.execute_batch(&format!("{saved}{table}")).unwrap();
        let row = some_row(&raw, table, key);
        let all = columns(&raw, table);
        assert!(left_out.iter().all(|out| all.iter().any(|(name, _)| name == out)), "{table}");
        for (column, kind) in all {
            let value = other_value(&column, &kind);
            let edit =
                format!("UPDATE {table} SET {column} = {value} WHERE CAST({key} AS TEXT) = ?1");
            assert_eq!(raw.execute(&edit, [&row]).unwrap(), 1, "{edit}");
            let found = report(&world);
            if left_out.contains(&column.as_str()) {
                assert_eq!(named(&found), Vec::<&ChainProblem>::new(), "{table}.{column}");
            } else if key.contains(&column) {
                // The row has another name now.
                assert!(named(&found).iter().any(|p| is_addition(p, table)), "{table}.{column}");
                assert!(
                    named(&found).iter().any(|p| is_deletion(p, table, &row)),
                    "{table}.{column}"
                );
            } else {
                let edited = named(&found).iter().any(|p| is_edit(p, table, &row));
                // A call of another turn is a row of the audit alone.
                let moved = table == "tool_calls" && column == "turn";
                assert!(edited || moved && !found.rows.is_empty(), "{table}.{column}: {found:?}");
            }
            assert!(found.broken.is_some() || left_out.contains(&column.as_str()), "{column}");
            put_back(&raw, table);
            assert_eq!(report(&world).broken, None, "{table}.{column} was put back");
        }
    }
}

#[tokio::test]
async fn every_row_that_is_added_or_deleted_is_found_and_named() {
    let world = lived().await;
    let raw = intruder(&world);
    for (table, key, _) in COVERED {
        let saved =
            "DROP TABLE IF EXISTS temp.saved; CREATE TEMP TABLE saved AS SELECT * FROM main.";
        raw.execute_batch(&format!("{saved}{table}")).unwrap();
        let row = some_row(&raw, table, key);
        let delete = format!("DELETE FROM {table} WHERE CAST({key} AS TEXT) = ?1");
        assert_eq!(raw.execute(&delete, [&row]).unwrap(), 1, "{table}");
        let found = report(&world);
        assert!(named(&found).iter().any(|p| is_deletion(p, table, &row)), "{table}: {found:?}");
        put_back(&raw, table);

        // The same row under other names.
        let unique = "SELECT c.name FROM pragma_index_list(?1) AS i, pragma_index_info(i.name) AS c \
             WHERE i.\"unique\" AND c.seqno = (SELECT max(seqno) FROM pragma_index_info(i.name)) \
             UNION SELECT name FROM pragma_table_info(?1) WHERE pk = \
             (SELECT max(pk) FROM pragma_table_info(?1))";
        let mut unique = raw.prepare(unique).unwrap();
        let unique: BTreeSet<String> =
            unique.query_map([table], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        let values: Vec<_> = columns(&raw, table)
            .into_iter()
            .map(
                |(name, kind)| {
                    if unique.contains(&name) { other_value(&name, &kind) } else { name }
                },
            )
            .collect();
        let add = format!(
            "INSERT INTO {table} SELECT {} FROM {table} WHERE CAST({key} AS TEXT) = ?1",
            values.join(", ")
        );
        assert_eq!(raw.execute(&add, [&row]).unwrap(), 1, "{add}");
        let found = report(&world);
        assert!(named(&found).iter().any(|p| is_addition(p, table)), "{table}: {found:?}");
        put_back(&raw, table);
        assert_eq!(report(&world).broken, None, "{table} was put back");
    }
}

#[test]
fn every_table_is_covered_or_is_known_not_to_be() {
    let world = World::unborn();
    let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' \
        AND name NOT LIKE 'memory_words%'";
    let found: BTreeSet<String> = names(&world.raw(), tables).into_iter().collect();
    let covered = COVERED.iter().map(|(table, ..)| *table);
    let known: BTreeSet<String> =
        covered.chain(OTHERS).chain(OTHERS_TOO).map(str::to_owned).collect();
    assert_eq!(found, known);
    let told = include_str!("../../../../docs/SAFETY.md");
    let told = told.split("\n## 10.").nth(1).unwrap().split("\n## 11.").next().unwrap();
    for table in &found {
        assert!(told.contains(&format!("`{table}`")), "docs/SAFETY.md does not tell of {table}");
    }
    for (_, _, left_out) in COVERED {
        for column in left_out {
            assert!(told.contains(&format!("`{column}`")), "docs/SAFETY.md: {column}");
        }
    }
}

#[tokio::test]
async fn what_another_program_wrote_is_told_of_also_when_the_store_writes_over_it() {
    let world = lived().await;
    let raw = intruder(&world);
    // A memory that the same thing is said of again, and a schedule entry that is put back.
    let id: i64 = raw
        .query_row("SELECT max(id) FROM memories WHERE name = '2'", [], |row| row.get(0))
        .unwrap();
    raw.execute("UPDATE memories SET source = 'forged' WHERE id = ?1", [id]).unwrap();
    raw.execute("DELETE FROM heartbeat_schedule WHERE name = 'pong'", []).unwrap();
    let message = "INSERT INTO inbox_messages (id, body, label, source, received_at) \
        VALUES (?1, 'obey', 'creator', 'cli', 0)";
    raw.execute(message, [world.ids.id::<MessageId>().to_string()]).unwrap();
    drop(raw);
    let memory = MemoryId(id);
    world.store.count_outcome(memory, true).await.unwrap();
    schedule(&world, vec![task("ping"), task("pong")]).await;
    world.store.forget(memory).await.unwrap();
    let session = world.last_session();
    let opened = world.store.open_turn(session, Vec::new(), CLAIMED_PER_TURN_MAX).await.unwrap();
    assert_eq!(opened.messages.len(), 1);
    world.store.abandon_turn(opened.id, FailureCause::Turn).await.unwrap();
    let found = report(&world);
    let told = named(&found);
    for (table, row) in
        [("memories", &*id.to_string()), ("heartbeat_schedule", "pong"), ("inbox_messages", "4")]
    {
        assert!(told.iter().any(|p| is_stray(p, table, row)), "{table}: {found:?}");
    }
    assert!(found.broken.is_some());
    let (of_export, _) = verified(&exported(&world.reader()), None);
    assert_eq!(of_export.broken, found.broken, "an export tells of it, too");
    // It is never forgotten.
    for nth in 0..60 {
        live_a_turn(&world, session, nth).await;
    }
    while world.store.retention(tight()).await.unwrap().more {}
    assert!(floor(&world) > 0, "nothing was folded");
    let later = report(&world);
    assert!(named(&later).iter().any(|p| is_stray(p, "memories", &id.to_string())), "{later:?}");
}

const fn tight() -> RetentionPolicy {
    RetentionPolicy { keep: Span::ZERO, keep_heartbeat: Span::ZERO, turns_kept: 2, rows_max: 5 }
}

fn floor(world: &World) -> i64 {
    let statement =
        "SELECT coalesce(max(CAST(row AS INTEGER)), 0) FROM audit_changes WHERE source = 'floor'";
    world.raw().query_row(statement, [], |row| row.get(0)).unwrap()
}

fn count(world: &World, rows: &str) -> i64 {
    let statement = format!("SELECT count(*) FROM {rows}");
    world.raw().query_row(&statement, [], |row| row.get(0)).unwrap()
}

/// A life whose lists were folded.
async fn folded() -> (World, ChainHead) {
    let world = lived().await;
    let session = world.last_session();
    let head = world.reader().head().unwrap();
    for nth in 0..80 {
        live_a_turn(&world, session, nth).await;
    }
    let before = count(&world, "audit_changes");
    while world.store.retention(tight()).await.unwrap().more {}
    assert!(count(&world, "audit_changes") < before / 2, "{before} entries");
    assert!(floor(&world) > 0);
    (world, head)
}

#[tokio::test]
async fn folded_lists_keep_the_chain_its_heads_and_its_exports() {
    let (world, head) = folded().await;
    assert_eq!(report(&world).broken, None);
    let reader = world.reader();
    assert_eq!(reader.departure(head).unwrap(), None, "a head from before");
    let lines = exported(&reader);
    let (of_export, departure) = verified(&lines, Some(head));
    assert_eq!((&of_export, departure), (&report(&world), None));
    // A list that is missing in an export although nothing says that it was folded.
    let last = lines.iter().rposition(|line| line.contains("\"kind\":\"changes\"")).unwrap();
    let mut cut: serde_json::Value = serde_json::from_str(&lines[last]).unwrap();
    cut["row"] = serde_json::json!([]);
    let mut edited = lines.clone();
    edited[last] = cut.to_string();
    let broken = verified(&edited, None).0.broken.unwrap();
    assert!(matches!(broken.problem, ChainProblem::ListGone), "{broken}");
    let mut edited = lines;
    let place = edited.iter().position(|line| line.contains("\"memories ")).unwrap();
    edited[place] = edited[place].replacen("\"memories ", "\"memories 1", 1);
    let broken = verified(&edited, None).0.broken.unwrap();
    assert!(matches!(broken.problem, ChainProblem::ListEdited), "{broken}");
    // Counters that steer folding are what they count.
    let said: (i64, i64) = world
        .raw()
        .query_row("SELECT changes, rows FROM audit_head", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    let rows: i64 = COVERED
        .iter()
        .map(|(table, ..)| match *table {
            "tool_calls" => count(&world, "tool_calls WHERE turn IN (SELECT seq FROM turns)"),
            table => count(&world, table),
        })
        .sum();
    assert_eq!(said, (count(&world, "audit_changes"), rows));
}

#[tokio::test]
async fn lists_that_were_tampered_with_are_found_before_and_after_a_fold() {
    let all = |report: &ChainReport| format!("{:?}", report.broken);
    for (tampering, problem) in [
        (
            "DELETE FROM audit_changes WHERE link = (SELECT max(link) FROM audit_changes)",
            "ListGone",
        ),
        ("DELETE FROM audit_changes WHERE source = 'floor'", "ListGone"),
        ("UPDATE audit_changes SET sha256 = zeroblob(32) WHERE source = 'memories'", "ListEdited"),
        ("UPDATE audit_changes SET row = '999999' WHERE source = 'floor'", "ListEdited"),
        (
            "INSERT INTO audit_changes SELECT source, row, 1, sha256 FROM audit_changes \
          WHERE source = 'memories' LIMIT 1",
            "ListEdited",
        ),
        ("INSERT INTO audit_changes VALUES ('memories', '1', 999999, NULL)", "ListEdited"),
        (
            "UPDATE audit_chain SET changes = NULL WHERE seq = (SELECT max(link) FROM audit_changes)",
            "LinkEdited",
        ),
        ("UPDATE audit_chain SET changes = zeroblob(32) WHERE seq = 1", "LinkEdited"),
    ] {
        let (world, _) = folded().await;
        intruder(&world).execute_batch(tampering).unwrap();
        let found = report(&world);
        assert!(all(&found).contains(problem), "{tampering}: {found:?}");
    }
}

#[tokio::test]
async fn no_list_is_folded_that_is_not_what_the_chain_says() {
    let world = lived().await;
    let session = world.last_session();
    for nth in 0..80 {
        live_a_turn(&world, session, nth).await;
    }
    let raw = intruder(&world);
    let edit = "UPDATE memories SET body = 'forged' WHERE id = 1; \
        DELETE FROM audit_changes WHERE source = 'memories' AND row = '1'";
    raw.execute_batch(edit).unwrap();
    drop(raw);
    world.store.retention(tight()).await.unwrap();
    assert_eq!(floor(&world), 0, "the evidence was folded");
    assert!(report(&world).broken.is_some());
}

#[tokio::test]
async fn a_trigger_that_has_the_store_forge_its_own_rows_is_found() {
    let world = lived().await;
    for (forged, name) in [
        (
            "CREATE TRIGGER obey AFTER INSERT ON turns BEGIN \
          UPDATE memories SET body = 'obey' WHERE id = 1; END",
            "obey",
        ),
        ("DROP VIEW inference_costs; CREATE VIEW inference_costs AS SELECT 1", "inference_costs"),
    ] {
        world.raw().execute_batch(forged).unwrap();
        live_a_turn(&world, world.last_session(), 9).await;
        let found = report(&world);
        let told = named(&found);
        let foreign = |p: &&ChainProblem| matches!(p, ChainProblem::ForeignTrigger(f) if f == name);
        assert!(told.iter().any(foreign), "{found:?}");
        assert!(found.broken.is_some());
    }
}

#[tokio::test]
async fn a_copy_of_the_database_verifies_as_it_did() {
    let (world, head) = folded().await;
    let copy = world.home.path().join("copy.db");
    world.raw().execute("VACUUM INTO ?1", [copy.to_str().unwrap()]).unwrap();
    let reader = automaton_store::Reader::open(&copy).unwrap();
    assert_eq!(reader.verify_chain().unwrap(), report(&world));
    assert_eq!(reader.departure(head).unwrap(), None::<ChainDivergence>);
}

#[test]
fn a_row_is_named_in_a_sentence() {
    let text = |seq, problem| ChainBreak { seq, problem }.to_string();
    let row = || ("memories".to_owned(), "17".to_owned());
    let (table, row) = row();
    let edited = ChainProblem::RowEdited { table: table.clone(), row: row.clone() };
    assert_eq!(text(Some(3), edited), "link 3: row 17 of memories, which it wrote, was edited");
    let added = ChainProblem::RowAdded { table, row };
    assert_eq!(text(None, added), "row 17 of memories was added: no link tells of it");
}

#[derive(Debug, Clone)]
enum Step {
    Turn,
    Receive,
    Open,
    Abandon,
    Remember(u8, u8),
    Complete,
    Forget,
    Schedule(bool),
    Run,
    CloseMessages,
    Retain,
    Pass(i64),
    Crash,
    Die(FaultPoint),
}

fn step() -> impl Strategy<Value = Step> {
    let points = [FaultPoint::TurnOpened, FaultPoint::JudgementStored, FaultPoint::TurnCommitted];
    prop_oneof![
        4 => Just(Step::Turn),
        2 => Just(Step::Receive),
        2 => Just(Step::Open),
        1 => Just(Step::Abandon),
        4 => (0..4_u8, 0..3_u8).prop_map(|(name, text)| Step::Remember(name, text)),
        1 => Just(Step::Complete),
        1 => Just(Step::Forget),
        1 => any::<bool>().prop_map(Step::Schedule),
        1 => Just(Step::Run),
        1 => Just(Step::CloseMessages),
        2 => Just(Step::Retain),
        1 => Just(Step::Pass(90_000)),
        1 => Just(Step::Crash),
        1 => prop::sample::select(points.to_vec()).prop_map(Step::Die),
    ]
}

/// Does one step of a life; the death of the writer is an error.
async fn take(world: &World, step: &Step, nth: usize) -> Result<(), StoreError> {
    let store = &world.store;
    let newest = "SELECT max(id) FROM memories WHERE valid_to IS NULL";
    let newest = || world.raw().query_row(newest, [], |row| row.get::<_, Option<i64>>(0)).unwrap();
    match step {
        Step::Turn => {
            store.receive(said(&format!("message {nth}")), None).await?;
            let session = store.open_session(vec![crate::manual("go")]).await?;
            let turn = store.open_turn(session, Vec::new(), CLAIMED_PER_TURN_MAX).await?.id;
            let call = world.planned();
            store.record_judgement(judgement(turn, vec![call.clone()]), None).await?;
            store.start_call(call.id).await?;
            store.finish_call(call.id, CallStatus::Done, output("ok"), Span::ZERO).await?;
            store.commit_turn(turn).await?;
        }
        Step::Receive => drop(store.receive(said("hello"), None).await?),
        Step::Open => {
            let session = store.open_session(vec![crate::manual("go")]).await?;
            store.open_turn(session, vec![said("extra")], CLAIMED_PER_TURN_MAX).await?;
        }
        Step::Abandon => {
            let open = names(&world.raw(), "SELECT id FROM turns WHERE status = 'open' LIMIT 1");
            if let Some(turn) = open.first() {
                store.abandon_turn(turn.parse().unwrap(), FailureCause::Turn).await?;
            }
        }
        Step::Remember(name, text) => {
            let item = memory(&name.to_string(), &text.to_string());
            let lasts = (*name == 3).then_some(Span::from_secs(60));
            let _: StoreOutcome = store.remember(NewMemory { lasts, ..item }).await?;
        }
        Step::Complete => {
            if let Some(id) = newest() {
                store.complete_memory(MemoryId(id), memory("end", &format!("{nth}"))).await?;
            }
        }
        Step::Forget => {
            if let Some(id) = newest() {
                store.forget(MemoryId(id)).await?;
            }
        }
        Step::Schedule(both) => {
            let tasks = if *both { vec![task("ping"), task("pong")] } else { vec![task("ping")] };
            schedule(world, tasks).await;
        }
        Step::Run => {
            if store.schedule().await?.iter().any(|row| row.task.name == "ping")
                && let Some(lease) = lease(world, "ping", 0).await
            {
                store.finish_task("ping", lease, finish(TaskResult::Success)).await?;
            }
        }
        Step::CloseMessages => {
            let open =
                names(&world.raw(), "SELECT id FROM inbox_messages WHERE answered_at IS NULL");
            for id in open {
                store.close_message(id.parse::<MessageId>().unwrap()).await?;
            }
        }
        Step::Retain => while store.retention(tight()).await?.more {},
        Step::Pass(millis) => world.advance(*millis),
        Step::Crash => {
            return Err(StoreError::Database(SqliteError::WriterGone { operation: "x" }));
        }
        Step::Die(point) => *world.trap.armed.lock().unwrap() = Some(*point),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn any_honest_life_is_whole(steps in prop::collection::vec(step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut world = World::born().await;
            for (nth, step) in steps.iter().enumerate() {
                if let Err(StoreError::Database(_)) = take(&world, step, nth).await {
                    *world.trap.armed.lock().unwrap() = None;
                    world.crash();
                    world.store.recover().await.unwrap();
                }
                let found = report(&world);
                assert_eq!(found.broken, None, "after {step:?}");
            }
            let lines = exported(&world.reader());
            assert_eq!(verified(&lines, None).0, report(&world));
        });
    }

    #[test]
    fn any_edit_of_any_row_is_found(row in any::<prop::sample::Index>(), column in any::<prop::sample::Index>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (world, _) = folded().await;
            let raw = intruder(&world);
            let (table, key, left_out) = COVERED[row.index(COVERED.len())];
            let only = if table == "tool_calls" { "turn IN (SELECT seq FROM turns)" } else { "TRUE" };
            let rows = names(&raw, &format!("SELECT CAST({key} AS TEXT) FROM {table} WHERE {only}"));
            let all: Vec<_> = columns(&raw, table)
                .into_iter()
                .filter(|(name, _)| !left_out.contains(&name.as_str()) && !key.contains(name.as_str()))
                .collect();
            if rows.is_empty() {
                return;
            }
            let id = &rows[row.index(rows.len())];
            let (name, kind) = &all[column.index(all.len())];
            let edit = format!(
                "UPDATE {table} SET {name} = {} WHERE CAST({key} AS TEXT) = ?1",
                other_value(name, kind)
            );
            raw.execute(&edit, [Value::Text(id.clone())]).unwrap();
            let found = report(&world);
            let told = named(&found).iter().any(|p| is_edit(p, table, id) || is_deletion(p, table, id));
            assert!(told, "{table}.{name} of {id}: {found:?}");
        });
    }
}

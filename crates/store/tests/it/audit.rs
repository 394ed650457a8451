//! The chain: grows with what happens, and every tampering is found.

use std::fs;

use automaton_core::id::SessionId;
use automaton_core::record::CallStatus;
use automaton_core::time::Span;
use automaton_store::{
    ChainDivergence, ChainHead, ChainLink, ChainProblem, ChainReport, ExportHeader, Hash, Reader,
    StoreError, verify_export,
};

use crate::Steps as _;
use crate::{World, output, refused};

/// Two turns with a planned and a refused call each: 2 × (opened, 2 decisions, started, 1 outcome,
/// committed).
async fn lived() -> World {
    let world = World::born().await;
    let session = world.session().await;
    for _ in 0..2 {
        live_a_turn(&world, session).await;
    }
    world
}

async fn live_a_turn(world: &World, session: SessionId) {
    let call = world.planned();
    let turn = world.judged(session, vec![call.clone(), refused(world.ids.id())]).await;
    world.store.start_call(call.id).await.unwrap();
    let done = world.store.finish_call(call.id, CallStatus::Done, output("ok"), Span::ZERO);
    done.await.unwrap();
    world.store.commit_turn(turn).await.unwrap();
}

/// Whether a problem is the one that a tampering should show as.
type Expected = fn(&ChainProblem) -> bool;

const TRIGGERS: [&str; 6] = [
    "rule_sets_fixed",
    "tool_calls_kept",
    "tool_calls_decisions_fixed",
    "tool_calls_outcomes_fixed",
    "audit_chain_kept",
    "audit_chain_fixed",
];

/// What verifying finds after a statement of somebody who has the file.
async fn after(tampering: &str) -> ChainReport {
    let world = lived().await;
    let raw = world.raw();
    for trigger in TRIGGERS {
        raw.execute_batch(&format!("DROP TRIGGER {trigger}")).unwrap();
    }
    raw.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
    raw.execute_batch(tampering).unwrap();
    assert!(raw.total_changes() > 0, "nothing was tampered with: {tampering}");
    let report = world.store.verify_chain().await.unwrap();
    assert_eq!(report, world.reader().verify_chain().unwrap());
    report
}

#[tokio::test]
async fn an_honest_chain_is_whole() {
    let world = lived().await;
    let report = world.store.verify_chain().await.unwrap();
    assert_eq!((report.links, report.is_whole()), (10, true));
    let empty = World::born().await.store.verify_chain().await.unwrap();
    assert_eq!((empty.links, empty.is_whole()), (0, true));
    assert_eq!(empty.head, automaton_sqlite::chain::GENESIS);
}

#[tokio::test]
async fn every_tampering_is_found() {
    let edited: Expected = |p| matches!(p, ChainProblem::SubjectEdited(_));
    let unfit: Expected = |p| matches!(p, ChainProblem::LinkEdited);
    let cut: Expected = |p| matches!(p, ChainProblem::TailCut { expected: 10 });
    let cases: [(&str, Expected); 31] = [
        ("UPDATE tool_calls SET outcome = 'allow' WHERE outcome = 'deny'", edited),
        ("UPDATE tool_calls SET decided_at = decided_at + 1", edited),
        ("UPDATE tool_calls SET args_sha256 = zeroblob(32)", edited),
        ("UPDATE tool_calls SET effect = 'observes'", edited),
        ("UPDATE tool_calls SET turn = turn + 1, ordinal = 7 WHERE seq = 3", edited),
        (
            "UPDATE tool_calls SET intents = '[]' WHERE seq = (SELECT max(seq) FROM tool_calls)",
            edited,
        ),
        ("UPDATE rule_sets SET names = '[]'", edited),
        ("UPDATE tool_calls SET result_source = 'x' WHERE status = 'done'", edited),
        ("UPDATE tool_calls SET duration_ms = 9 WHERE status = 'done'", edited),
        ("UPDATE tool_calls SET exit_code = 9 WHERE status = 'done'", edited),
        ("UPDATE tool_calls SET status = 'failed' WHERE status = 'done'", edited),
        ("UPDATE tool_calls SET result_sha256 = NULL, ended_at = NULL", edited),
        ("UPDATE tool_calls SET decided_sha256 = zeroblob(32) WHERE seq = 3", edited),
        ("UPDATE tool_calls SET ended_sha256 = NULL", edited),
        ("UPDATE tool_calls SET result = 'forged' WHERE status = 'done'", |p| {
            matches!(p, ChainProblem::ResultEdited(_))
        }),
        ("UPDATE tool_calls SET result = NULL WHERE status = 'done'", |p| {
            matches!(p, ChainProblem::ResultEdited(_))
        }),
        ("DELETE FROM tool_calls", unfit),
        ("DELETE FROM tool_calls WHERE seq = 2", unfit),
        ("UPDATE tool_calls SET decided_link = 3 WHERE seq = 1", unfit),
        ("UPDATE tool_calls SET decided_link = NULL, decided_sha256 = NULL WHERE seq = 1", unfit),
        ("UPDATE tool_calls SET ended_link = 9 WHERE ended_link = 4", unfit),
        ("UPDATE audit_chain SET at = at + 1 WHERE seq = 3", unfit),
        ("UPDATE audit_chain SET sha256 = zeroblob(32) WHERE seq = 3", unfit),
        ("DELETE FROM audit_chain WHERE seq = 2", |p| matches!(p, ChainProblem::Gap)),
        ("DELETE FROM audit_chain WHERE seq = 1", |p| matches!(p, ChainProblem::Gap)),
        ("DELETE FROM audit_chain WHERE seq > 2", cut),
        ("DELETE FROM audit_chain", cut),
        (
            "DELETE FROM audit_chain WHERE seq > 3; DELETE FROM tool_calls WHERE ended_link = 4",
            |p| matches!(p, ChainProblem::LinkEdited | ChainProblem::TailCut { .. }),
        ),
        ("UPDATE audit_head SET links = 7", |p| matches!(p, ChainProblem::TailCut { expected: 7 })),
        ("UPDATE audit_head SET sha256 = zeroblob(32)", cut),
        (
            "DELETE FROM audit_chain WHERE seq > 3; \
             UPDATE audit_head SET links = 3, sha256 = (SELECT sha256 FROM audit_chain WHERE seq = 3)",
            |p| matches!(p, ChainProblem::Unlinked(_, _)),
        ),
    ];
    for (tampering, expected) in cases {
        let report = after(tampering).await;
        let broken = report.broken.unwrap_or_else(|| panic!("not found: {tampering}"));
        assert!(expected(&broken.problem), "{tampering}: {broken}");
    }
}

#[tokio::test]
async fn a_call_that_nobody_judged_is_found() {
    let forged = |columns: &str, values: &str| {
        format!(
            "INSERT INTO tool_calls (id, turn, ordinal, tool, source, effect, status, \
             result_label, result_source, started_at, {columns}) \
             VALUES ('forged', 7, 0, 'exec', 'model', 'mutates', 'done', 'tool', 'exec', 1, {values})"
        )
    };
    let decision = "intents, outcome, code, reason, risk, rules, rules_triggered, input_label, \
                    heard_label, authority, latency_ms, decided_at";
    let says = "'[]', 'allow', 'ALLOWED', '', 'safe', 1, '[]', 'self', 'self', 'self', 0, 0";
    let decided = forged(decision, says);
    let ended = forged("result_sha256, ended_at", "zeroblob(32), 0");
    let neither = forged("result", "'forged'");
    // One that claims a link that there is.
    let claims = format!("{decision}, decided_link, decided_sha256");
    let claims = after(&forged(&claims, &format!("{says}, 1, zeroblob(32)"))).await;
    assert!(matches!(claims.broken.unwrap().problem, ChainProblem::SubjectEdited(_)));
    for (forged, kind) in [(decided, "decision"), (ended, "outcome"), (neither, "")] {
        let broken = after(&forged).await.broken.unwrap_or_else(|| panic!("not found: {forged}"));
        match broken.problem {
            ChainProblem::Unlinked(found, id) => assert_eq!((found.name(), &*id), (kind, "forged")),
            ChainProblem::ResultEdited(id) => assert_eq!((&*id, kind), ("forged", "")),
            other => panic!("{forged}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_tail_that_was_forged_anew_from_a_middle_link_is_found() {
    // The last link is made to fit the head again, but not its rows.
    let forged = Hash::of(b"forged");
    let all = format!(
        "UPDATE audit_chain SET sha256 = x'{forged}' WHERE seq = 10; \
                       UPDATE audit_head SET sha256 = x'{forged}'"
    );
    let report = after(&all).await;
    assert!(matches!(report.broken.unwrap().problem, ChainProblem::LinkEdited));
}

#[tokio::test]
async fn the_database_itself_refuses_to_change_the_audit() {
    let world = lived().await;
    let raw = world.raw();
    for (change, refusal) in [
        ("UPDATE tool_calls SET reason = 'x'", "decisions are never changed"),
        ("UPDATE tool_calls SET intents = '[]'", "decisions are never changed"),
        ("UPDATE tool_calls SET ended_at = 0", "outcomes are never changed"),
        ("UPDATE tool_calls SET status = 'failed'", "outcomes are never changed"),
        ("DELETE FROM tool_calls", "decisions are never deleted"),
        ("UPDATE audit_chain SET at = 0", "links are never changed"),
        ("DELETE FROM audit_chain", "links are never deleted"),
    ] {
        assert_eq!(raw.execute(change, []).unwrap_err().to_string(), refusal, "{change}");
    }
    assert!(world.store.verify_chain().await.unwrap().is_whole());
}

#[test]
fn a_break_is_told_in_a_sentence() {
    let text = |seq, problem| automaton_store::ChainBreak { seq, problem }.to_string();
    let unfit = "link 3: it does not fit its rows: it was edited, or a row was added or taken away";
    assert_eq!(text(Some(3), ChainProblem::LinkEdited), unfit);
    let cut = "the chain does not end with link 9, as its head says";
    assert_eq!(text(None, ChainProblem::TailCut { expected: 9 }), cut);
}

/// A record as it is exported.
pub(crate) fn exported(reader: &Reader) -> Vec<String> {
    let mut lines =
        vec![serde_json::to_string(&ExportHeader::from_head(reader.head().unwrap())).unwrap()];
    let mut add = |link: ChainLink| {
        lines.push(serde_json::to_string(&link).unwrap());
        Ok::<_, StoreError>(())
    };
    reader.links(0, &mut add).unwrap();
    lines
}

pub(crate) fn verified(
    lines: &[String],
    from: Option<ChainHead>,
) -> (ChainReport, Option<ChainDivergence>) {
    verify_export(lines.join("\n").as_bytes(), from).unwrap()
}

#[tokio::test]
async fn an_export_is_verified_without_its_database_and_every_change_is_found() {
    let world = lived().await;
    let (reader, lines) = (world.reader(), exported(&world.reader()));
    let (report, departure) = verified(&lines, Some(reader.head().unwrap()));
    assert_eq!((report, departure), (reader.verify_chain().unwrap(), None));
    assert_eq!(lines.len(), 17, "six rows, and a list of each link");
    let broken = |lines: &[String]| verified(lines, None).0.broken.map(|found| found.problem);
    assert!(matches!(broken(&lines[..16]), Some(ChainProblem::TailCut { expected: 10 })));
    let without = |gone: usize| [&lines[..gone], &lines[gone + 1..]].concat();
    assert_eq!(broken(&without(1)), Some(ChainProblem::Gap), "a link");
    assert_eq!(broken(&without(3)), Some(ChainProblem::LinkEdited), "a row of a link");
    assert_eq!(broken(&without(2)), Some(ChainProblem::LinkEdited), "a list of a link");
    let twice = [&lines[..2], &lines[1..]].concat();
    assert_eq!(broken(&twice), Some(ChainProblem::LinkEdited), "a row that was added");
    for (right, wrong) in [
        ("\"text\":\"because\"", "\"text\":\"no cause\""),
        ("\"int\":3", "\"int\":0"),
        ("\"text\":\"tool\"", "\"text\":\"creator\""),
        ("\"name\":\"code\"", "\"name\":\"tool\""),
        ("\"kind\":\"decision\"", "\"kind\":\"outcome\""),
    ] {
        let mut edited = lines.clone();
        let place = edited.iter().position(|line| line.contains(right)).expect(right);
        edited[place] = edited[place].replacen(right, wrong, 1);
        assert!(matches!(broken(&edited), Some(ChainProblem::SubjectEdited(_))), "{right}");
    }
    for (right, wrong) in [("\"at\":1000000", "\"at\":1000001"), ("\"seq\":3", "\"seq\":5")] {
        let edited: Vec<_> = lines.iter().map(|line| line.replacen(right, wrong, 1)).collect();
        assert!(broken(&edited).is_some(), "{right}");
    }
    for none in ["", "{}", "{\"record\":\"else\",\"links\":0,\"head\":\"\"}", &lines[1]] {
        assert!(verify_export(none.as_bytes(), None).is_err(), "{none}");
    }
}

#[tokio::test]
async fn a_head_that_was_kept_finds_what_was_cut_edited_or_written_anew() {
    let mut world = World::born().await;
    let session = world.session().await;
    live_a_turn(&world, session).await;
    let old = world.home.path().join("old.db");
    world.raw().execute("VACUUM INTO ?1", [old.to_str().unwrap()]).unwrap();
    live_a_turn(&world, session).await;
    let reader = world.reader();
    let head = reader.head().unwrap();
    assert_eq!(reader.departure(head).unwrap(), None);
    // What comes after a head is no departure from it.
    world.judged(session, vec![refused(world.ids.id())]).await;
    assert!(reader.head().unwrap().entries > head.entries);
    assert_eq!(reader.departure(head).unwrap(), None);
    let start = ChainHead { entries: 0, hash: automaton_sqlite::chain::GENESIS };
    assert_eq!(reader.departure(start).unwrap(), None);

    // An older file in the place of the newer one: whole, and found.
    drop(reader);
    world.store.clone().close().await.unwrap();
    fs::copy(&old, world.home.path().join("state.db")).unwrap();
    world.store = world.open();
    let reader = world.reader();
    assert!(reader.verify_chain().unwrap().is_whole(), "{:?}", reader.verify_chain());
    assert_eq!(reader.departure(head).unwrap(), Some(ChainDivergence::Cut { links: 5 }));

    // Lived on from there: as many links as before, whole, and found.
    for _ in 0..3 {
        world.judged(session, vec![refused(world.ids.id())]).await;
    }
    assert!(reader.head().unwrap().entries >= head.entries);
    assert!(reader.verify_chain().unwrap().is_whole());
    let departure = reader.departure(head).unwrap();
    assert!(matches!(departure, Some(ChainDivergence::Rewritten { .. })), "{departure:?}");
    let lines = exported(&reader);
    assert_eq!(verified(&lines, Some(head)).1, departure);
}

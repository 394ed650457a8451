//! The schema and the closed enumerations of the program say the same; the open ones are the
//! codec's alone.

use std::collections::BTreeSet;

use automaton_core::memory::MemoryTier;
use automaton_core::message::{AnsweredBy, InboxState};
use automaton_core::payment::{PaymentState, Rail};
use automaton_core::record::{Authority, CallStatus, DecisionOutcome, TurnStatus};
use automaton_core::state::AgentState;
use automaton_core::tier::SurvivalTier;
use automaton_core::tool::Risk;
use automaton_core::trust::Label;
use automaton_store::{
    ApprovalState, LedgerCategory, LinkKind, PublicationState, TaskOrigin, TaskResult,
};

use crate::World;

/// The lists of `CHECK (column IN (…))` in the definition of a table.
fn lists(world: &World, table: &str, column: &str) -> Vec<Vec<String>> {
    let definition: String = world
        .raw()
        .query_row("SELECT sql FROM sqlite_master WHERE name = ?1", [table], |row| row.get(0))
        .unwrap();
    let head = format!("CHECK ({column} IN (");
    definition
        .split(&head)
        .skip(1)
        .map(|rest| {
            let list = rest.split(')').next().unwrap();
            list.split(',').map(|name| name.trim().trim_matches('\'').to_owned()).collect()
        })
        .collect()
}

fn tables(world: &World) -> Vec<String> {
    let raw = world.raw();
    let statement = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE \
        'sqlite_%' AND name NOT LIKE 'memory_words%'";
    let mut statement = raw.prepare(statement).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// The tables that hold what somebody else may have written. `turn_inputs` may have it in the
/// inbox; `tool_calls` has a label of the result, and what is said there or intended is the
/// model's.
const LABELLED: [&str; 10] = [
    "approval_steps",
    "approvals",
    "digests",
    "inbox_messages",
    "outbox_messages",
    "path_labels",
    "payment_steps",
    "payments",
    "memories",
    "wake_events",
];

#[test]
fn every_check_lists_its_enumeration() {
    let world = World::unborn();
    let check = |table: &str, column: &str, names: &[&str]| {
        let found = lists(&world, table, column);
        assert_eq!(found.len(), 1, "{table}.{column}");
        assert_eq!(found[0], names, "{table}.{column}");
    };
    macro_rules! names {
        ($type:ty) => {
            &<$type>::ALL.map(|value| value.name())
        };
    }
    check("automaton", "state", names!(AgentState));
    check("state_changes", "from_state", names!(AgentState));
    check("state_changes", "to_state", names!(AgentState));
    check("turns", "status", names!(TurnStatus));
    check("turns", "voice", names!(Label));
    check("inbox_messages", "state", names!(InboxState));
    check("inbox_messages", "answered_by", names!(AnsweredBy));
    check("payments", "state", names!(PaymentState));
    check("payments", "rail", names!(Rail));
    let steps: Vec<_> = names!(PaymentState).iter().copied().chain(["refused"]).collect();
    check("payment_steps", "step", &steps);
    check("approvals", "state", names!(ApprovalState));
    check("approval_steps", "step", names!(ApprovalState));
    check("tier_changes", "from_tier", names!(SurvivalTier));
    check("tier_changes", "to_tier", names!(SurvivalTier));
    check("tool_calls", "status", names!(CallStatus));
    check("tool_calls", "result_label", names!(Label));
    check("tool_calls", "outcome", names!(DecisionOutcome));
    check("tool_calls", "authority", names!(Authority));
    check("tool_calls", "input_label", names!(Label));
    check("tool_calls", "heard_label", names!(Label));
    let risks = [Risk::Safe, Risk::Caution, Risk::Dangerous, Risk::Forbidden];
    check("tool_calls", "risk", &risks.map(Risk::name));
    check("egress", "outcome", names!(DecisionOutcome));
    check("published_ports", "state", names!(PublicationState));
    check("memories", "tier", names!(MemoryTier));
    check("memory_counts", "tier", names!(MemoryTier));
    check("heartbeat_schedule", "last_result", names!(TaskResult));
    check("heartbeat_history", "result", names!(TaskResult));
    check("heartbeat_schedule", "origin", names!(TaskOrigin));
    check("heartbeat_schedule", "tier_minimum", names!(SurvivalTier));
    for table in LABELLED {
        check(table, "label", names!(Label));
    }
}

#[test]
fn every_table_is_strict_and_none_has_a_label_that_always_says_the_same() {
    let world = World::unborn();
    let raw = world.raw();
    let tables = tables(&world);
    assert!(tables.len() >= 16, "{tables:?}");
    let mut labelled = Vec::new();
    for table in &tables {
        let strict = "SELECT strict FROM pragma_table_list WHERE name = ?1";
        assert_eq!(raw.query_row(strict, [table], |row| row.get(0)), Ok(1), "{table}");
        let mut statement = raw.prepare("SELECT name FROM pragma_table_info(?1)").unwrap();
        let columns: BTreeSet<String> =
            statement.query_map([table], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        if columns.contains("label") {
            labelled.push(table.as_str());
        }
    }
    labelled.sort_unstable();
    let mut expected = [&LABELLED[..], &["session_summaries", "turn_inputs"]].concat();
    expected.sort_unstable();
    assert_eq!(labelled, expected);
    let dump = "SELECT count(*) FROM sqlite_schema WHERE sql LIKE '%DEFAULT ''self''%'";
    assert_eq!(raw.query_row(dump, [], |row| row.get(0)), Ok(0));
}

#[test]
fn no_check_lists_what_features_add_to() {
    let world = World::unborn();
    for (table, column) in [
        ("alerts", "rule"),
        ("automaton", "sleep_reason"),
        ("egress", "ended"),
        ("ledger", "category"),
        ("metric_folds", "family"),
        ("payments", "purpose"),
        ("sessions", "reason"),
        ("wake_events", "cause"),
    ] {
        assert!(lists(&world, table, column).is_empty(), "{table}.{column}");
    }
}

#[tokio::test]
async fn a_value_outside_an_open_enumeration_is_refused_by_the_codec() {
    let world = World::born().await;
    let raw = world.raw();
    let wake = "INSERT INTO wake_events (cause, reason, label, source, at) VALUES ('x', '', 'self', '', 0)";
    raw.execute(wake, []).unwrap();
    assert!(world.store.pending_wakes().await.is_err());
    raw.execute("UPDATE automaton SET sleep_since = 1, sleep_reason = 'x'", []).unwrap();
    assert!(world.store.life().await.is_err());
}

#[tokio::test]
async fn a_value_outside_its_enumeration_is_refused_by_the_database() {
    let world = World::born().await;
    let raw = world.raw();
    for statement in [
        "UPDATE automaton SET state = 'zombie'",
        "INSERT INTO wake_events (cause, reason, label, source, at) VALUES ('timer', '', 'x', '', 0)",
        "INSERT INTO turns (id, session, status, opened_at) VALUES ('t', 'none', 'open', 0)",
    ] {
        raw.execute_batch("PRAGMA foreign_keys = ON").unwrap();
        assert!(raw.execute(statement, []).is_err(), "{statement}");
    }
}

#[test]
fn names_that_are_stored_stay() {
    assert_eq!(
        LedgerCategory::ALL.map(LedgerCategory::name),
        ["inference", "x402", "transfer", "revenue", "funding", "machine"]
    );
    assert_eq!(
        ApprovalState::ALL.map(ApprovalState::name),
        ["waiting", "approved", "denied", "expired", "used"]
    );
    assert_eq!(
        LinkKind::ALL.map(LinkKind::name),
        ["decision", "outcome", "payment", "approval", "changes"]
    );
    assert_eq!(TaskOrigin::ALL.map(TaskOrigin::name), ["default", "file", "agent"]);
    assert_eq!(TaskResult::ALL.map(TaskResult::name), ["success", "failure", "timeout", "lost"]);
}

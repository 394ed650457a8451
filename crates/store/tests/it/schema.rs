//! The schema and the enumerations of the program say the same.

use std::collections::BTreeSet;

use automaton_core::alert::Rule;
use automaton_core::egress::End;
use automaton_core::intent::Intent;
use automaton_core::message::{AnsweredBy, InboxState};
use automaton_core::record::{Authority, CallStatus, Outcome, StopReason, TurnStatus, WakeSource};
use automaton_core::spend::{Purpose, Rail, SpendState};
use automaton_core::state::AgentState;
use automaton_core::tier::SurvivalTier;
use automaton_core::time::Span;
use automaton_core::tool::Risk;
use automaton_core::trust::Label;
use automaton_store::{ApprovalState, Category, LinkKind, Origin, TaskResult};

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
        'sqlite_%' AND name NOT LIKE 'semantic_memory_words%'";
    let mut statement = raw.prepare(statement).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn intents() -> Vec<&'static str> {
    let text = String::new;
    let all = [
        Intent::Exec { command: text(), timeout_ms: 0 },
        Intent::ReadPath { path: text() },
        Intent::WritePath { path: text(), bytes: 0 },
        Intent::Message { recipient: text(), bytes: 0 },
        Intent::Remember { category: text(), key: text(), bytes: 0 },
        Intent::Recall,
        Intent::Sleep { span: Span::ZERO.into() },
        Intent::Observe,
        Intent::Plead { bytes: 0 },
        Intent::Economise,
        Intent::Schedule { entry: text(), change: text() },
        Intent::TopUp { usd: 5 },
        Intent::Transfer { to: text(), cents: 0 },
        Intent::FetchPaid { url: text(), cap_cents: 0 },
        Intent::Egress { method: text(), url: text(), origin: text() },
        Intent::Rent { memory_mb: 0, disk_gb: 0 },
        Intent::EndMachine { machine: text() },
        Intent::Publish { port: 1, price: text(), open: true },
    ];
    // A new kind of intent does not compile here until the list above has it.
    for intent in &all {
        match intent {
            Intent::Exec { .. }
            | Intent::ReadPath { .. }
            | Intent::WritePath { .. }
            | Intent::Message { .. }
            | Intent::Remember { .. }
            | Intent::Recall
            | Intent::Sleep { .. }
            | Intent::Observe
            | Intent::Plead { .. }
            | Intent::Economise
            | Intent::Schedule { .. }
            | Intent::TopUp { .. }
            | Intent::Transfer { .. }
            | Intent::FetchPaid { .. }
            | Intent::Egress { .. }
            | Intent::Rent { .. }
            | Intent::EndMachine { .. }
            | Intent::Publish { .. } => {}
        }
    }
    all.iter().map(Intent::kind).collect()
}

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
    check("alerts", "rule", names!(Rule));
    check("automaton", "state", names!(AgentState));
    check("automaton", "sleep_reason", names!(StopReason));
    check("state_changes", "from_state", names!(AgentState));
    check("state_changes", "to_state", names!(AgentState));
    check("sessions", "reason", names!(StopReason));
    check("wake_events", "cause", names!(WakeSource));
    check("turns", "status", names!(TurnStatus));
    check("turns", "voice", names!(Label));
    check("inbox_messages", "state", names!(InboxState));
    check("inbox_messages", "answered_by", names!(AnsweredBy));
    check("payments", "state", names!(SpendState));
    check("payments", "purpose", names!(Purpose));
    check("payments", "rail", names!(Rail));
    let steps: Vec<_> = names!(SpendState).iter().copied().chain(["refused"]).collect();
    check("payment_steps", "step", &steps);
    check("approvals", "state", names!(ApprovalState));
    check("approval_steps", "step", names!(ApprovalState));
    check("ledger", "category", names!(Category));
    check("tier_changes", "from_tier", names!(SurvivalTier));
    check("tier_changes", "to_tier", names!(SurvivalTier));
    check("tool_calls", "status", names!(CallStatus));
    check("tool_calls", "result_label", names!(Label));
    check("policy_decisions", "outcome", names!(Outcome));
    check("policy_decisions", "authority", names!(Authority));
    check("policy_decisions", "input_label", names!(Label));
    check("policy_decisions", "heard_label", names!(Label));
    let risks = [Risk::Safe, Risk::Caution, Risk::Dangerous, Risk::Forbidden];
    check("policy_decisions", "risk", &risks.map(Risk::name));
    check("intents", "kind", &intents());
    check("egress", "outcome", names!(Outcome));
    check("egress", "ended", names!(End));
    check("audit_chain", "kind", names!(LinkKind));
    check("heartbeat_schedule", "last_result", names!(TaskResult));
    check("heartbeat_history", "result", names!(TaskResult));
    check("heartbeat_schedule", "origin", names!(Origin));
    check("heartbeat_schedule", "tier_minimum", names!(SurvivalTier));
    for table in tables(&world) {
        if !["audit_chain", "audit_head"].contains(&table.as_str()) {
            check(&table, "label", names!(Label));
        }
    }
}

#[test]
fn every_table_is_strict_and_says_who_wrote_its_text() {
    let world = World::unborn();
    let raw = world.raw();
    let tables = tables(&world);
    assert!(tables.len() >= 16, "{tables:?}");
    for table in tables {
        let strict = "SELECT strict FROM pragma_table_list WHERE name = ?1";
        assert_eq!(raw.query_row(strict, [&table], |row| row.get(0)), Ok(1), "{table}");
        let mut statement = raw.prepare("SELECT name FROM pragma_table_info(?1)").unwrap();
        let columns: BTreeSet<String> =
            statement.query_map([&table], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        // The chain holds ids and hashes, no text that anybody wrote.
        if !table.starts_with("audit_") {
            assert!(columns.contains("label") && columns.contains("source"), "{table}");
        }
    }
}

#[tokio::test]
async fn a_value_outside_its_enumeration_is_refused_by_the_database() {
    let world = World::born().await;
    let raw = world.raw();
    for statement in [
        "UPDATE automaton SET state = 'zombie'",
        "INSERT INTO wake_events (cause, reason, label, source, at) VALUES ('x', '', 'self', '', 0)",
        "INSERT INTO wake_events (cause, reason, label, source, at) VALUES ('timer', '', 'x', '', 0)",
        "INSERT INTO turns (id, session, status, opened_at) VALUES ('t', 'none', 'open', 0)",
    ] {
        raw.execute_batch("PRAGMA foreign_keys = ON").unwrap();
        assert!(raw.execute(statement, []).is_err(), "{statement}");
    }
}

//! `policy_decisions` and `intents`: what was decided, and what would be done.
//!
//! Rows are only ever added, each with its link of the audit chain, in the
//! transaction that stores the judgement: before any effect.

use automaton_core::id::{ApprovalId, CallId, DecisionId, IntentId, TurnId};
use automaton_core::intent::SpanMillis;
use automaton_core::record::{Authority, Outcome};
use automaton_core::time::{Span, Timestamp};
use automaton_core::tool::Risk;
use automaton_core::trust::Label;
use rusqlite::{Connection, Row, params};
use serde::Serialize;

use crate::audit::{self, LinkKind};
use crate::codec::{As, get, json_of, maybe};
use crate::error::{Halt, StoreError};
use crate::thread::{Query, Tx, sql};
use crate::turns::JudgedCall;

/// What the policy decided about a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewDecision {
    /// How it came out.
    pub outcome: Outcome,
    /// The code of the rule that decided, or `ALLOWED`.
    pub code: String,
    /// One sentence.
    pub reason: String,
    /// How much harm the tool can do.
    pub risk: Risk,
    /// The rules that were asked, in order.
    pub rules_evaluated: Vec<String>,
    /// Those that spoke up.
    pub rules_triggered: Vec<String>,
    /// What it was decided under.
    #[serde(flatten)]
    pub under: Under,
}

/// What a decision was made under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Under {
    /// The least trusted label of what the turn answers.
    pub input: Label,
    /// The least trusted label of what the wake heard.
    pub heard: Label,
    /// Whose authority that gives.
    pub authority: Authority,
    /// The approval that it used.
    pub approval: Option<ApprovalId>,
    /// How long it took, by the injected clock.
    pub latency_ms: SpanMillis,
}

/// A decision, as recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DecisionRecord {
    /// Its id.
    pub id: DecisionId,
    /// The call it is about.
    pub call: CallId,
    /// The call's tool, as the model named it.
    pub tool: String,
    /// What was decided.
    #[serde(flatten)]
    pub decision: NewDecision,
    /// When it was stored.
    pub at: Timestamp,
}

/// Stores what was decided about a call and what it intends.
pub(crate) fn store(tx: &Tx<'_>, turn: TurnId, call: &JudgedCall, model: &str) -> Result<(), Halt> {
    if let Some(decision) = &call.decision {
        let id: DecisionId = tx.mint.id();
        let rules = json("the rules of a decision", &decision.rules_evaluated)?;
        tx.exec("INSERT OR IGNORE INTO rule_sets (names) VALUES (?1)", [&rules])?;
        tx.exec(
            sql!("decision_insert"),
            params![
                As(id),
                As(turn),
                As(call.id),
                call.tool,
                call.args_hash.map(|hash| *hash.as_bytes()),
                As(decision.outcome),
                decision.code,
                decision.reason,
                As(decision.risk),
                rules,
                json("the rules of a decision", &decision.rules_triggered)?,
                As(tx.now),
                As(decision.under.input),
                As(decision.under.heard),
                As(decision.under.authority),
                decision.under.approval.map(As),
                As(decision.under.latency_ms.span()),
            ],
        )?;
        audit::append(tx, LinkKind::Decision, &id.to_string())?;
    }
    for (ordinal, intent) in call.intents.iter().enumerate() {
        let id: IntentId = tx.mint.id();
        let body = json("an intent", intent)?;
        tx.exec(
            sql!("intent_insert"),
            params![As(id), As(call.id), As(ordinal), intent.kind(), body, model, As(tx.now)],
        )?;
        audit::append(tx, LinkKind::Intent, &id.to_string())?;
    }
    Ok(())
}

fn json(what: &'static str, value: &impl Serialize) -> Result<String, Halt> {
    let text = serde_json::to_string(value);
    text.map_err(|source| StoreError::Json { what, source }.into())
}

fn under(row: &Row<'_>) -> rusqlite::Result<Under> {
    let latency: Span = get(row, "latency_ms")?;
    Ok(Under {
        input: get(row, "input_label")?,
        heard: get(row, "heard_label")?,
        authority: get(row, "authority")?,
        approval: maybe(row, "approval")?,
        latency_ms: latency.into(),
    })
}

pub(crate) fn of_turn(connection: &Connection, turn: TurnId) -> Result<Vec<DecisionRecord>, Halt> {
    Ok(connection.all(sql!("decisions_of_turn"), [As(turn)], record)?)
}

/// A decision by its own id, or by that of the call that it is about.
pub(crate) fn by_id(connection: &Connection, id: &str) -> Result<Option<DecisionRecord>, Halt> {
    Ok(connection.one(sql!("decision_by_id"), [id], record)?)
}

fn record(row: &Row<'_>) -> rusqlite::Result<DecisionRecord> {
    Ok(DecisionRecord {
        id: get(row, "id")?,
        call: get(row, "call")?,
        tool: row.get("tool")?,
        decision: NewDecision {
            outcome: get(row, "outcome")?,
            code: row.get("code")?,
            reason: row.get("reason")?,
            risk: get(row, "risk")?,
            rules_evaluated: json_of(row, "rules_evaluated")?,
            rules_triggered: json_of(row, "rules_triggered")?,
            under: under(row)?,
        },
        at: get(row, "at")?,
    })
}

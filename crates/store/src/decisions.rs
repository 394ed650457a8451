//! `policy_decisions` and `intents`: what was decided, and what would be done.
//!
//! Rows are only ever added, each with its link of the audit chain, in the
//! transaction that stores the judgement: before any effect.

use automaton_core::id::{CallId, DecisionId, IntentId, TurnId};
use automaton_core::record::Outcome;
use automaton_core::time::Timestamp;
use automaton_core::tool::Risk;
use rusqlite::{Connection, Row, params};
use serde::Serialize;

use crate::audit::{self, LinkKind};
use crate::codec::{As, get};
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
        tx.exec(
            sql!("decision_insert"),
            params![
                As(id),
                As(turn),
                As(call.id),
                call.tool,
                call.args_hash.map(|hash| hash.to_string()),
                As(decision.outcome),
                decision.code,
                decision.reason,
                As(decision.risk),
                json("the rules of a decision", &decision.rules_evaluated)?,
                json("the rules of a decision", &decision.rules_triggered)?,
                As(tx.now),
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

pub(crate) fn of_turn(connection: &Connection, turn: TurnId) -> Result<Vec<DecisionRecord>, Halt> {
    Ok(connection.all(sql!("decisions_of_turn"), [As(turn)], |row| {
        Ok(DecisionRecord {
            id: get(row, "id")?,
            call: get(row, "call")?,
            tool: row.get("tool")?,
            decision: NewDecision {
                outcome: get(row, "outcome")?,
                code: row.get("code")?,
                reason: row.get("reason")?,
                risk: get(row, "risk")?,
                rules_evaluated: names(row, "rules_evaluated")?,
                rules_triggered: names(row, "rules_triggered")?,
            },
            at: get(row, "at")?,
        })
    })?)
}

fn names(row: &Row<'_>, column: &str) -> rusqlite::Result<Vec<String>> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|error| {
        let kind = rusqlite::types::Type::Text;
        rusqlite::Error::FromSqlConversionFailure(0, kind, Box::new(error))
    })
}

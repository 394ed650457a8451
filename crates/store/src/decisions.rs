//! `tool_calls` as they are judged: what was decided, and what would be done.
//!
//! A row is added with its link of the audit chain, in the transaction that stores the
//! judgement: before any effect. What was decided must never change then.

use automaton_core::id::{ApprovalId, CallId, DecisionId, TurnId};
use automaton_core::intent::SpanMillis;
use automaton_core::record::{Authority, CallStatus, DecisionOutcome};
use automaton_core::time::{Span, Timestamp};
use automaton_core::tool::Risk;
use automaton_core::trust::Label;
use rusqlite::{Connection, Row, params};
use serde::Serialize;

use crate::audit::{self, LinkKind};
use crate::codec::{CallText, Sql, get, json_of, maybe};
use crate::error::{StoreError, TxError};
use crate::thread::{ConnectionExt, Tx, sql};
use crate::turn_details::IntentDetails;
use crate::turns::JudgedCall;

/// Decision of the policy about a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewDecision {
    /// Outcome.
    pub outcome: DecisionOutcome,
    /// The code of the rule that decided, or `ALLOWED`.
    pub code: String,
    /// One sentence.
    pub reason: String,
    /// Harm that the tool can do.
    pub risk: Risk,
    /// The rules that were asked, in order.
    pub rules_evaluated: Vec<String>,
    /// Those that spoke up.
    pub rules_triggered: Vec<String>,
    /// Context of the decision.
    #[serde(flatten)]
    pub under: DecisionContext,
}

/// Context of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DecisionContext {
    /// The least trusted label of what the turn answers.
    pub input: Label,
    /// The least trusted label of what the wake heard.
    pub heard: Label,
    /// Authority that follows from the labels.
    pub authority: Authority,
    /// The approval that it used.
    pub approval: Option<ApprovalId>,
    /// Duration, by the injected clock.
    pub latency_ms: SpanMillis,
}

/// A decision, as recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DecisionRecord {
    /// Its id, which is that of the call.
    pub id: DecisionId,
    /// The call it is about.
    pub call: CallId,
    /// The call's tool, as the model named it.
    pub tool: String,
    /// The decision.
    #[serde(flatten)]
    pub decision: NewDecision,
    /// Time at which it was stored.
    pub at: Timestamp,
}

/// Stores a call, what was decided about it and what it intends. One without a place in its
/// turn is the request of a command.
pub(crate) fn store(
    tx: &Tx<'_>,
    turn: TurnId,
    place: Option<(usize, CallStatus)>,
    call: &JudgedCall,
    model: &str,
) -> Result<(), TxError> {
    let decision = call.decision.as_ref();
    let under = decision.map(|decision| decision.under);
    let names = |of: fn(&NewDecision) -> &Vec<String>| {
        let names = decision.map(|decision| json("the rules of a decision", of(decision)));
        names.transpose()
    };
    let rules = names(|decision| &decision.rules_evaluated)?;
    if rules.is_some() {
        tx.exec("INSERT OR IGNORE INTO rule_sets (names) VALUES (?1)", [&rules])?;
    }
    let result = call.result.as_ref();
    tx.exec(
        sql!("call_insert"),
        params![
            Sql(call.id),
            Sql(turn),
            place.map(|(ordinal, _)| Sql(ordinal)),
            call.tool,
            Sql(CallText(call.arguments.clone())),
            model,
            Sql(call.mutates),
            place.map(|(_, status)| Sql(status)),
            result.map(|result| Sql(CallText(result.text.clone()))),
            result.map(|result| Sql(result.label)),
            result.map(|result| result.source.as_str()),
            call.args_hash.map(|hash| *hash.as_bytes()),
            decision.map(|_| intents(tx, call)).transpose()?,
            decision.map(|decision| Sql(decision.outcome)),
            decision.map(|decision| decision.code.as_str()),
            decision.map(|decision| decision.reason.as_str()),
            decision.map(|decision| Sql(decision.risk)),
            rules,
            names(|decision| &decision.rules_triggered)?,
            under.map(|under| Sql(under.input)),
            under.map(|under| Sql(under.heard)),
            under.map(|under| Sql(under.authority)),
            under.and_then(|under| under.approval).map(Sql),
            under.map(|under| Sql(under.latency_ms.span())),
            decision.map(|_| Sql(tx.now)),
        ],
    )?;
    match decision {
        Some(_) => audit::append(tx, LinkKind::Decision, &call.id.to_string()),
        None => Ok(()),
    }
}

/// Encodes the intents of a call as JSON, each with an id.
fn intents(tx: &Tx<'_>, call: &JudgedCall) -> Result<String, TxError> {
    let intended = call.intents.iter().cloned();
    let intended: Vec<_> =
        intended.map(|intent| IntentDetails { id: tx.ids.id(), intent }).collect();
    json("the intents of a call", &intended)
}

fn json(what: &'static str, value: &impl Serialize) -> Result<String, TxError> {
    let text = serde_json::to_string(value);
    text.map_err(|source| StoreError::Json { what, source }.into())
}

fn under(row: &Row<'_>) -> rusqlite::Result<DecisionContext> {
    let latency: Span = get(row, "latency_ms")?;
    Ok(DecisionContext {
        input: get(row, "input_label")?,
        heard: get(row, "heard_label")?,
        authority: get(row, "authority")?,
        approval: maybe(row, "approval")?,
        latency_ms: latency.into(),
    })
}

pub(crate) fn of_turn(
    connection: &Connection,
    turn: TurnId,
) -> Result<Vec<DecisionRecord>, TxError> {
    Ok(connection.all(sql!("decisions_of_turn"), [Sql(turn)], record)?)
}

/// A decision by its id, which is that of the call that it is about.
pub(crate) fn by_id(connection: &Connection, id: &str) -> Result<Option<DecisionRecord>, TxError> {
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

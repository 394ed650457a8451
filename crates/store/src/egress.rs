//! `egress`: what commands in the sandbox sent, and what came of it.
//!
//! A request is judged like a call and written down like one: its decision and its intent
//! are a row of `tool_calls`, under an id of its own, before anything is sent. The row
//! here says which call's command it was, and takes the end; it may be deleted when it is
//! old, which the chain never is.

use automaton_core::egress::{EgressEndReason, EgressOutcome};
use automaton_core::id::{CallId, TurnId};
use automaton_core::intent::Intent;
use automaton_core::record::{CallStatus, DecisionOutcome};
use automaton_core::time::Timestamp;
use automaton_core::tool::Effect;
use rusqlite::{Row, params};
use serde::Serialize;

use crate::Store;
use crate::codec::{Sql, get, maybe};
use crate::decisions::{self, NewDecision};
use crate::error::{StoreError, TxError, missing};
use crate::reader::Reader;
use crate::thread::{CommitDurability, ConnectionExt, Tx, WriteOptions, sql};
use crate::turns::JudgedCall;

/// Name of such a request in the place of a tool.
const TOOL: &str = "egress";
/// Author of the intent: the program that sent the request.
const SOURCE: &str = "exec";

/// A request that was judged.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEgress {
    /// The call whose command sent it.
    pub call: CallId,
    /// The turn of that call.
    pub turn: TurnId,
    /// The method.
    pub method: String,
    /// Scheme, host and port.
    pub origin: String,
    /// The judged intent.
    pub intent: Intent,
    /// The decision.
    pub decision: NewDecision,
}

/// A request, as recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EgressRecord {
    /// Its id, which is that of its decision's subject.
    pub id: CallId,
    /// The call whose command sent it.
    pub call: CallId,
    /// Time of the decision.
    pub at: Timestamp,
    /// The method; `CONNECT` for a tunnel.
    pub method: String,
    /// Scheme, host and port.
    pub origin: String,
    /// Outcome of the decision.
    pub outcome: DecisionOutcome,
    /// The code of the decision.
    pub code: String,
    /// Outcome of the request; `None` if it was refused, is running, or is unknown.
    pub came: Option<EgressOutcome>,
}

impl Store {
    /// Writes down a request and what was decided about it; on the disk when this returns.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn record_egress(&self, new: NewEgress) -> Result<CallId, StoreError> {
        let write = WriteOptions::new("write a request down").sync(CommitDurability::Machine);
        self.write(write, move |tx| record(tx, &new)).await
    }

    /// Stores what came of a request.
    ///
    /// # Errors
    /// [`StoreError::Missing`] when it was not let through, or has ended already.
    pub async fn end_egress(&self, id: CallId, came: EgressOutcome) -> Result<(), StoreError> {
        self.write(WriteOptions::new("end a request"), move |tx| {
            let EgressOutcome { status, bytes_up, bytes_down, end } = came;
            let up = Sql(bytes_up);
            let down = Sql(bytes_down);
            let params = params![Sql(id), status, up, down, Sql(end), Sql(tx.now)];
            match tx.exec(sql!("egress_end"), params)? {
                0 => Err(missing("open request", &id)),
                _ => Ok(()),
            }
        })
        .await
    }
}

impl Reader {
    /// The newest requests of commands, newest first.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn egress(&self, limit: u32) -> Result<Vec<EgressRecord>, StoreError> {
        self.read("read the requests", |connection| {
            Ok(connection.all(sql!("egress_newest"), [limit], read)?)
        })
    }
}

fn record(tx: &Tx<'_>, new: &NewEgress) -> Result<CallId, TxError> {
    let NewEgress { call, turn, method, origin, intent, decision } = new;
    let id: CallId = tx.ids.id();
    let outcome = decision.outcome;
    let code = &decision.code;
    let judged = JudgedCall {
        id,
        tool: TOOL.to_owned(),
        arguments: String::new(),
        args_hash: None,
        mutates: Effect::Mutates,
        status: CallStatus::Planned,
        result: None,
        decision: Some(decision.clone()),
        intents: vec![intent.clone()],
        limits: Vec::new(),
        question: None,
        approval: None,
    };
    decisions::store(tx, *turn, None, &judged, SOURCE)?;
    tx.exec(
        sql!("egress_insert"),
        params![Sql(id), Sql(*call), method, origin, Sql(outcome), code, Sql(tx.now)],
    )?;
    Ok(id)
}

fn read(row: &Row<'_>) -> rusqlite::Result<EgressRecord> {
    let end: Option<EgressEndReason> = maybe(row, "ended")?;
    let came = match end {
        None => None,
        Some(end) => Some(EgressOutcome {
            status: row.get("status")?,
            bytes_up: get(row, "bytes_up")?,
            bytes_down: get(row, "bytes_down")?,
            end,
        }),
    };
    Ok(EgressRecord {
        id: get(row, "id")?,
        call: get(row, "call")?,
        at: get(row, "at")?,
        method: row.get("method")?,
        origin: row.get("origin")?,
        outcome: get(row, "outcome")?,
        code: row.get("code")?,
        came,
    })
}

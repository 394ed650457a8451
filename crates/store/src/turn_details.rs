//! Everything that the record has of one turn, read in one look.
//!
//! Only reads, and only what may be shown: of a payment never what was signed for it,
//! since whoever has that can take the money.

use alloy_primitives::Address;
use automaton_core::id::{CallId, PaymentId};
use automaton_core::intent::Intent;
use automaton_core::money::Microcents;
use automaton_core::payment::{PaymentState, Purpose, Rail};
use automaton_core::record::{TurnRecord, WakeCause};
use automaton_core::time::Timestamp;
use automaton_core::tool::Effect;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use serde::{Deserialize, Serialize};

use crate::codec::{Sql, get, json_of, labelled, maybe};
use crate::decisions::{self, DecisionRecord};
use crate::error::{StoreError, TxError};
use crate::history;
use crate::ledger::LedgerCategory;
use crate::reader::{Reader, TurnRef};
use crate::thread::{ConnectionExt, sql};

/// Record of one turn.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TurnDetails {
    /// The turn with its inputs, thought and calls.
    pub turn: TurnRecord,
    /// Time of the model call.
    pub asked_at: Option<Timestamp>,
    /// Time at which the answer was judged and stored.
    pub judged_at: Option<Timestamp>,
    /// Causes of its wake cycle.
    pub woke: Vec<WakeCauseDetails>,
    /// Decisions about its calls, in their order.
    pub decisions: Vec<DecisionRecord>,
    /// Effects of its calls, in their order.
    pub efforts: Vec<CallDetails>,
    /// The payments that it asked for, oldest first.
    pub payments: Vec<PaymentDetails>,
    /// Its bookings by category; costs are below zero.
    pub booked: Vec<LedgerDetails>,
}

/// A cause to wake that a cycle consumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WakeCauseDetails {
    /// Time of the cause.
    pub at: Timestamp,
    /// The cause.
    #[serde(flatten)]
    pub cause: WakeCause,
}

/// Effect of one call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallDetails {
    /// The call.
    pub call: CallId,
    /// Effect of the tool.
    pub effect: Effect,
    /// Time of the start.
    pub started_at: Option<Timestamp>,
    /// Intents; empty if the call never reached the policy.
    pub intents: Vec<IntentDetails>,
}

/// One intended effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IntentDetails {
    /// Its id in the audit.
    pub id: PaymentId,
    /// The intent.
    #[serde(flatten)]
    pub intent: Intent,
}

/// A payment, without what was signed for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PaymentDetails {
    /// The payment.
    pub id: PaymentId,
    /// Purpose.
    pub purpose: Purpose,
    /// Rail.
    pub rail: Rail,
    /// Origin that asked for it.
    pub origin: String,
    /// Recipient.
    pub payee: Address,
    /// Amount: in 10⁻⁶ USDC, or in 10⁻⁶ cents of credits, by its rail.
    pub units: u64,
    /// Worth of the amount.
    pub worth: Microcents,
    /// The call that it was made for.
    pub call: Option<CallId>,
    /// Reason, in words.
    pub note: String,
    /// Current state.
    pub state: PaymentState,
    /// The transaction, where it is known.
    pub transaction: Option<String>,
    /// Reason for a failure or a delay.
    pub reason: Option<String>,
    /// Time of the first record.
    pub at: Timestamp,
    /// Time of the latest change.
    pub changed_at: Timestamp,
}

/// A sum of the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LedgerDetails {
    /// Category.
    pub category: LedgerCategory,
    /// Amount; costs are below zero.
    pub amount: Microcents,
}

impl Reader {
    /// Everything about one turn, if there is such a one.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn turn_details(&self, which: TurnRef) -> Result<Option<TurnDetails>, StoreError> {
        self.read("read a turn", |connection| {
            // One read transaction: the agent may write in between.
            let tx = connection.unchecked_transaction()?;
            gather(&tx, which)
        })
    }
}

fn gather(connection: &Connection, which: TurnRef) -> Result<Option<TurnDetails>, TxError> {
    let Some(turn) = history::read_turn(connection, which)? else { return Ok(None) };
    let times = "SELECT asked_at, judged_at FROM turns WHERE id = ?1";
    let times = connection.one(times, [Sql(turn.id)], |row| {
        Ok((maybe(row, "asked_at")?, maybe(row, "judged_at")?))
    })?;
    let (asked_at, judged_at) = times.unwrap_or_default();
    let woke = "SELECT * FROM wake_events WHERE session = (SELECT session FROM turns WHERE id = ?1) ORDER BY seq";
    let efforts = connection.all(sql!("efforts_of"), [Sql(turn.id)], effort)?;
    Ok(Some(TurnDetails {
        asked_at,
        judged_at,
        woke: connection.all(woke, [Sql(turn.id)], |row| {
            let cause = WakeCause { source: get(row, "cause")?, reason: labelled(row, "reason")? };
            Ok(WakeCauseDetails { at: get(row, "at")?, cause })
        })?,
        decisions: decisions::of_turn(connection, turn.id)?,
        efforts,
        payments: connection.all(sql!("payments_of"), [Sql(turn.id)], payment)?,
        booked: connection.all(sql!("booked_of"), [Sql(turn.id)], |row| {
            Ok(LedgerDetails { category: get(row, "category")?, amount: get(row, "amount")? })
        })?,
        turn,
    }))
}

fn effort(row: &Row<'_>) -> rusqlite::Result<CallDetails> {
    Ok(CallDetails {
        call: get(row, "id")?,
        effect: get(row, "effect")?,
        started_at: maybe(row, "started_at")?,
        intents: match row.get_ref("intents")? {
            ValueRef::Null => Vec::new(),
            _ => json_of(row, "intents")?,
        },
    })
}

fn payment(row: &Row<'_>) -> rusqlite::Result<PaymentDetails> {
    Ok(PaymentDetails {
        id: get(row, "id")?,
        purpose: get(row, "purpose")?,
        rail: get(row, "rail")?,
        origin: row.get("origin")?,
        payee: get(row, "payee")?,
        units: get(row, "units")?,
        worth: get(row, "worth")?,
        call: maybe(row, "call")?,
        note: row.get("note")?,
        state: get(row, "state")?,
        transaction: row.get("tx")?,
        reason: row.get("reason")?,
        at: get(row, "at")?,
        changed_at: get(row, "changed_at")?,
    })
}

//! Storage of questions in `approvals`, with the payment or the call that waits for them.
//!
//! What is asked about is fixed by its hash, and the same call is asked about once. Nobody
//! is asked without end: beyond a limit a call is refused without a question.

use automaton_core::id::{ApprovalId, CallId, PaymentId};
use automaton_core::time::Timestamp;
use automaton_core::trust::Label;
use automaton_sqlite::chain::Hash;
use rusqlite::params;

use crate::approvals::{read_approval, step};
use crate::codec::{Sql, get};
use crate::error::TxError;
use crate::thread::{ConnectionExt, Tx, sql};

/// Questions that may wait at once; a call beyond is refused without one.
const WAITING_MAX: u32 = 50;

/// A question to the creator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRequest {
    /// Action that needs approval.
    pub summary: String,
    /// The code of the rule that asks.
    pub code: String,
    /// Reason of the rule.
    pub reason: String,
    /// Expiry.
    pub expires_at: Timestamp,
}

/// A question that was just asked about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AskedApproval {
    /// The call.
    pub call: CallId,
    /// The question.
    pub approval: ApprovalId,
}

/// Asks about a payment that was just written down.
pub(crate) fn ask(
    tx: &Tx<'_>,
    payment: PaymentId,
    question: &ApprovalRequest,
    label: Label,
    source: &str,
) -> Result<(), TxError> {
    // Everything that the payment is was written down with it, and does not change.
    let action = format!("payment {payment}: {}", question.summary);
    let asked = QuestionRow {
        subject: payment.to_string(),
        call: None,
        action: Hash::of(action.as_bytes()),
    };
    insert(tx, &asked, question, label, source).map(|_| ())
}

/// Asks about a call that was just refused; the same one is asked about once. Returns the
/// question, where it is new.
pub(crate) fn ask_call(
    tx: &Tx<'_>,
    (id, tool, arguments): (CallId, &str, &str),
    question: &ApprovalRequest,
    label: Label,
    source: &str,
) -> Result<Option<ApprovalId>, TxError> {
    let action = hash_of_call(tool, arguments);
    let waiting = "SELECT count(*) AS count FROM approvals WHERE state = 'waiting'";
    let waiting: u32 = tx.one(waiting, [], |row| get(row, "count"))?.unwrap_or(0);
    let same = tx.one(sql!("approval_same"), [Sql(action)], |_| Ok(()))?.is_some();
    if same || waiting >= WAITING_MAX {
        return Ok(None);
    }
    let asked = QuestionRow { subject: id.to_string(), call: Some((tool, arguments)), action };
    insert(tx, &asked, question, label, source).map(Some)
}

/// The hash of a call: of a JSON object with its arguments and its tool, in this order
/// and without spaces, whose keys are sorted throughout.
#[must_use]
pub fn call_sha256(tool: &str, arguments: &str) -> String {
    hash_of_call(tool, arguments).to_string()
}

fn hash_of_call(tool: &str, arguments: &str) -> Hash {
    Hash::of(format!("{{\"arguments\":{arguments},\"tool\":\"{tool}\"}}").as_bytes())
}

/// Subject of a question, as it is stored.
struct QuestionRow<'a> {
    subject: String,
    call: Option<(&'a str, &'a str)>,
    action: Hash,
}

fn insert(
    tx: &Tx<'_>,
    asked: &QuestionRow<'_>,
    question: &ApprovalRequest,
    label: Label,
    source: &str,
) -> Result<ApprovalId, TxError> {
    let id: ApprovalId = tx.ids.id();
    let QuestionRow { subject, call, action } = asked;
    let ApprovalRequest { summary, code, reason, expires_at } = question;
    let kind = if call.is_some() { "call" } else { "payment" };
    let tool = call.map(|call| call.0);
    let arguments = call.map(|call| call.1);
    let params = params![
        Sql(id),
        kind,
        subject,
        tool,
        arguments,
        Sql(*action),
        summary,
        code,
        reason,
        Sql(label),
        source,
        Sql(tx.now),
        Sql(*expires_at)
    ];
    tx.exec(sql!("approval_insert"), params)?;
    step(tx, &read_approval(tx, id)?, Label::Own, "policy")?;
    Ok(id)
}

//! `approvals` and `approval_steps`: what waits for the creator's word.
//!
//! ```text
//! waiting ──▶ approved ──▶ used (a call, once)
//!    └─────▶ denied | expired
//! ```
//!
//! A question is about a payment or a call, is asked in the transaction that writes that
//! down, and is answered once; a question that is too old has expired, which is a no. An
//! answer wakes the automaton, and changes what waits for it, in the same transaction.
//! Each arrow is a step of the audit chain. Nothing here may ever answer by itself.

use automaton_core::id::{ApprovalId, CallId, PaymentId, RunId};
use automaton_core::names::Names;
use automaton_core::record::{WakeCause, WakeSource};
use automaton_core::time::Timestamp;
use automaton_core::trust::{Label, Labelled};
use automaton_core::wire::control::ApprovalVerdict;
use rusqlite::{Connection, Row, params};
use serde::Serialize;

use crate::audit::{self, LinkKind};
use crate::codec::{Sql, get, labelled, maybe};
use crate::error::{StoreError, TxError, missing, unfit};
use crate::thread::{CommitDurability, ConnectionExt, Tx, WriteOptions, sql};
use crate::{Hash, Store, payments, wakes};

/// State of a question. Its [`name`](Self::name) is the one in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Names)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// Nobody has answered.
    Waiting,
    /// The creator said yes.
    Approved,
    /// The creator said no.
    Denied,
    /// Nobody answered in time.
    Expired,
    /// The creator said yes, and the call was made.
    Used,
}

/// Which questions are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalFilter {
    /// Those that nobody has answered.
    Waiting,
    /// Those that were answered or have expired, too.
    All,
}

/// By whose hand a question was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalAuthor {
    /// A program that can open the home's socket or its files.
    Home,
    /// The holder of the creator's key.
    Signature,
}

/// Subject of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalSubject {
    /// The payment that waits for the answer.
    Payment(PaymentId),
    /// The call that was not made, and would be made so.
    Call {
        /// The call.
        id: CallId,
        /// Its tool.
        tool: String,
        /// Its arguments as JSON with sorted keys.
        arguments: String,
    },
}

/// A question to the creator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Approval {
    /// Its id.
    pub id: ApprovalId,
    /// Subject.
    #[serde(flatten)]
    pub subject: ApprovalSubject,
    /// SHA-256 of exactly what would be done; an answer is to this alone.
    pub action_sha256: String,
    /// Action, with the label of its cause.
    pub summary: Labelled,
    /// The code of the rule that asks.
    pub code: String,
    /// Reason of the rule.
    pub reason: String,
    /// Current state.
    pub state: ApprovalState,
    /// Time of the question.
    pub at: Timestamp,
    /// Expiry.
    pub expires_at: Timestamp,
    /// Time of the answer.
    pub answered_at: Option<Timestamp>,
    /// The call that was made for it.
    pub used_by: Option<CallId>,
}

impl Store {
    /// Every question, newest first, `limit` at most.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn approvals(&self, limit: u32) -> Result<Vec<Approval>, StoreError> {
        let work = move |tx: &Tx<'_>| newest(tx, ApprovalFilter::All, limit);
        self.run("read the approvals", work).await
    }

    /// Answers a question: what waits for it is approved, or given up. The same
    /// answer again changes nothing, also when the approved call was made meanwhile.
    ///
    /// # Errors
    /// [`StoreError::Missing`]; [`StoreError::Unfit`] when it was answered otherwise
    /// or has expired.
    pub async fn answer(
        &self,
        id: ApprovalId,
        answer: ApprovalVerdict,
        hand: ApprovalAuthor,
    ) -> Result<Approval, StoreError> {
        let write = WriteOptions::new("answer an approval").sync(CommitDurability::Machine);
        self.write(write, move |tx| answer_one(tx, id, answer, hand)).await
    }

    /// One question.
    ///
    /// # Errors
    /// [`StoreError::Missing`].
    pub async fn approval(&self, id: ApprovalId) -> Result<Approval, StoreError> {
        self.run("read an approval", move |tx| read_approval(tx, id)).await
    }

    /// The question about a payment.
    ///
    /// # Errors
    /// [`StoreError::Missing`] when there is none.
    pub async fn approval_of_payment(&self, payment: PaymentId) -> Result<ApprovalId, StoreError> {
        self.run("read the approval of a payment", move |tx| {
            let statement = "SELECT id FROM approvals WHERE subject = ?1";
            let found = tx.one(statement, [Sql(payment)], |row| get(row, "id"))?;
            found.ok_or_else(|| missing("payment", &payment))
        })
        .await
    }

    /// Gives up what waited too long for its answer; how many questions expired.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn expire_approvals(&self) -> Result<usize, StoreError> {
        let late = "SELECT * FROM approvals WHERE state = 'waiting' AND expires_at <= ?1";
        let some = move |tx: &Tx<'_>| Ok(tx.one(late, [Sql(tx.now)], |_| Ok(()))?.is_some());
        // Asked at every look, and nearly always in vain.
        if !self.run("look for late approvals", some).await? {
            return Ok(0);
        }
        let write = WriteOptions::new("let approvals expire").sync(CommitDurability::Machine);
        self.write(write, move |tx| {
            let old = tx.all(late, [Sql(tx.now)], approval)?;
            for approval in &old {
                end(tx, approval, ApprovalState::Expired, Label::Own, "runtime")?;
            }
            Ok(old.len())
        })
        .await
    }
}

/// Uses an approval up for the call that is made now.
pub(crate) fn use_up(tx: &Tx<'_>, id: ApprovalId, call: CallId) -> Result<(), TxError> {
    if tx.exec(sql!("approval_use"), params![Sql(id), Sql(call)])? == 0 {
        return Err(unfit("approval", &id, "is not there to be used"));
    }
    step(tx, &read_approval(tx, id)?, Label::Own, "runtime")
}

/// Writes down where a question stands now.
pub(crate) fn step(
    tx: &Tx<'_>,
    approval: &Approval,
    label: Label,
    source: &str,
) -> Result<(), TxError> {
    let id: RunId = tx.ids.id();
    let Approval { id: of, state, .. } = approval;
    let params = params![Sql(id), Sql(*of), Sql(*state), Sql(label), source, Sql(tx.now)];
    tx.exec(sql!("approval_step"), params)?;
    audit::append(tx, LinkKind::Approval, &id.to_string())
}

pub(crate) fn read_approval(connection: &Connection, id: ApprovalId) -> Result<Approval, TxError> {
    let found = connection.one("SELECT * FROM approvals WHERE id = ?1", [Sql(id)], approval)?;
    found.ok_or_else(|| missing("approval", &id))
}

pub(crate) fn newest(
    connection: &Connection,
    which: ApprovalFilter,
    limit: u32,
) -> Result<Vec<Approval>, TxError> {
    let statement = match which {
        ApprovalFilter::All => "SELECT * FROM approvals ORDER BY seq DESC LIMIT ?1",
        ApprovalFilter::Waiting => sql!("approvals_waiting"),
    };
    Ok(connection.all(statement, [limit], approval)?)
}

fn answer_one(
    tx: &Tx<'_>,
    id: ApprovalId,
    answer: ApprovalVerdict,
    hand: ApprovalAuthor,
) -> Result<Approval, TxError> {
    let found = read_approval(tx, id)?;
    let state = match answer {
        ApprovalVerdict::Approve => ApprovalState::Approved,
        ApprovalVerdict::Deny => ApprovalState::Denied,
    };
    let is_made = (found.state, answer) == (ApprovalState::Used, ApprovalVerdict::Approve);
    if found.state == state || is_made {
        return Ok(found);
    }
    if found.state != ApprovalState::Waiting {
        return Err(unfit("approval", &id, format!("is {} already", found.state.name())));
    }
    if found.expires_at <= tx.now {
        return Err(unfit("approval", &id, "is too old; it counts as denied"));
    }
    let source = match hand {
        ApprovalAuthor::Home => "creator",
        ApprovalAuthor::Signature => "creator's signature",
    };
    end(tx, &found, state, Label::Creator, source)?;
    read_approval(tx, id)
}

fn end(
    tx: &Tx<'_>,
    approval: &Approval,
    state: ApprovalState,
    label: Label,
    source: &str,
) -> Result<(), TxError> {
    tx.exec(sql!("approval_answer"), params![Sql(approval.id), Sql(state), Sql(tx.now)])?;
    step(tx, &read_approval(tx, approval.id)?, label, source)?;
    let (verdict, by) = match state {
        ApprovalState::Approved => ("approved", payments::PaymentStep::Approved),
        ApprovalState::Denied => {
            ("denied", payments::PaymentStep::Failed("the creator said no".to_owned()))
        }
        ApprovalState::Waiting | ApprovalState::Expired | ApprovalState::Used => {
            let late = "the creator did not answer in time";
            (
                "did not answer in time, which is a no to",
                payments::PaymentStep::Failed(late.to_owned()),
            )
        }
    };
    if let ApprovalSubject::Payment(payment) = approval.subject {
        payments::advance(tx, payment, &by)?;
    }
    // What would be done is in the words of whoever caused it, and stays theirs.
    let Labelled { label: whose, text, .. } = &approval.summary;
    let cause = match label {
        Label::Creator => WakeCause {
            source: WakeSource::Manual,
            reason: Labelled::new(
                label.meet(*whose),
                source,
                format!("Your creator {verdict}: {text}"),
            ),
        },
        _ => WakeCause {
            source: WakeSource::Heartbeat,
            reason: Labelled::new(*whose, "approvals", format!("Your creator {verdict}: {text}")),
        },
    };
    wakes::push(tx, &cause)
}

fn approval(row: &Row<'_>) -> rusqlite::Result<Approval> {
    let tool: Option<String> = row.get("tool")?;
    let subject = match tool {
        None => ApprovalSubject::Payment(get(row, "subject")?),
        Some(tool) => ApprovalSubject::Call {
            id: get(row, "subject")?,
            tool,
            arguments: row.get("arguments")?,
        },
    };
    Ok(Approval {
        id: get(row, "id")?,
        subject,
        action_sha256: get::<Hash>(row, "action_sha256")?.to_string(),
        summary: labelled(row, "summary")?,
        code: row.get("code")?,
        reason: row.get("reason")?,
        state: get(row, "state")?,
        at: get(row, "at")?,
        expires_at: get(row, "expires_at")?,
        answered_at: maybe(row, "answered_at")?,
        used_by: maybe(row, "used_by")?,
    })
}

/// The oldest call that was approved and not made yet.
pub(crate) fn approved_call(connection: &Connection) -> Result<Option<Approval>, TxError> {
    Ok(connection.one(sql!("approval_approved"), [], approval)?)
}

//! `approvals`: what waits for the creator's word.
//!
//! A question is asked with what it is about, in the transaction that writes that
//! down, and answered once; a question that is too old has lapsed, which is a no.
//! An answer changes what waits for it in the same transaction. Nothing here may
//! ever answer by itself.

use automaton_core::id::{ApprovalId, IntentId};
use automaton_core::time::Timestamp;
use automaton_core::trust::{Label, Labelled};
use automaton_core::wire::control::Word;
use rusqlite::{Connection, Row, params};
use serde::Serialize;

use crate::Store;
use crate::codec::{As, get, labelled, maybe};
use crate::error::{Halt, StoreError, missing, unfit};
use crate::spends;
use crate::thread::{Db, Query, Sync, Tx, Write, sql};

/// Where a question stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// Nobody has answered.
    Waiting,
    /// The creator said yes.
    Approved,
    /// The creator said no.
    Denied,
    /// Nobody answered in time.
    Lapsed,
}

impl ApprovalState {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Waiting, Self::Approved, Self::Denied, Self::Lapsed];

    /// The name in the database.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Lapsed => "lapsed",
        }
    }
}

/// Which questions are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Those that nobody has answered.
    Waiting,
    /// Those that were answered or have lapsed, too.
    All,
}

/// The creator's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Yes.
    Approve,
    /// No.
    Deny,
}

impl From<Word> for Answer {
    fn from(word: Word) -> Self {
        match word {
            Word::Approve => Self::Approve,
            Word::Deny => Self::Deny,
        }
    }
}

/// A question to the creator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Approval {
    /// Its id.
    pub id: ApprovalId,
    /// The payment that waits for the answer.
    pub payment: IntentId,
    /// What would be done, and who caused it.
    pub summary: Labelled,
    /// The code of the rule that asks.
    pub code: String,
    /// Why it asks.
    pub reason: String,
    /// Where it stands.
    pub state: ApprovalState,
    /// When it was asked.
    pub at: Timestamp,
    /// When it lapses.
    pub expires_at: Timestamp,
    /// When it was answered.
    pub answered_at: Option<Timestamp>,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// What would be done.
    pub summary: String,
    /// The code of the rule that asks.
    pub code: String,
    /// Why it asks.
    pub reason: String,
    /// When it lapses.
    pub expires_at: Timestamp,
}

impl Store {
    /// Every question, newest first, `limit` at most.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn approvals(&self, limit: u32) -> Result<Vec<Approval>, StoreError> {
        let work = move |db: &mut Db| newest(&db.connection, Which::All, limit);
        self.run("read the approvals", work).await
    }

    /// Answers a question: what waits for it is approved, or given up. The same
    /// answer again changes nothing.
    ///
    /// # Errors
    /// [`StoreError::Missing`]; [`StoreError::Unfit`] when it was answered otherwise
    /// or has lapsed.
    pub async fn answer(&self, id: ApprovalId, answer: Answer) -> Result<Approval, StoreError> {
        let write = Write::new("answer an approval").sync(Sync::Machine);
        self.write(write, move |tx| answer_one(tx, id, answer)).await
    }

    /// Gives up what waited too long for its answer; how many questions lapsed.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn lapse_approvals(&self) -> Result<usize, StoreError> {
        let write = Write::new("let approvals lapse").sync(Sync::Machine);
        self.write(write, |tx| {
            let statement = "SELECT * FROM approvals WHERE state = 'waiting' AND expires_at <= ?1";
            let old = tx.all(statement, [As(tx.now)], approval)?;
            for approval in &old {
                end(tx, approval, ApprovalState::Lapsed)?;
            }
            Ok(old.len())
        })
        .await
    }
}

/// Asks about a payment that was just written down.
pub(crate) fn ask(
    tx: &Tx<'_>,
    payment: IntentId,
    question: &Question,
    (label, source): (Label, &str),
) -> Result<(), Halt> {
    let id: ApprovalId = tx.mint.id();
    let Question { summary, code, reason, expires_at } = question;
    let (label, at) = (As(label), As(tx.now));
    let params =
        params![As(id), As(payment), summary, code, reason, label, source, at, As(*expires_at)];
    tx.exec(sql!("approval_insert"), params)?;
    Ok(())
}

pub(crate) fn newest(
    connection: &Connection,
    which: Which,
    limit: u32,
) -> Result<Vec<Approval>, Halt> {
    let statement = match which {
        Which::All => "SELECT * FROM approvals ORDER BY seq DESC LIMIT ?1",
        Which::Waiting => sql!("approvals_waiting"),
    };
    Ok(connection.all(statement, [limit], approval)?)
}

fn answer_one(tx: &Tx<'_>, id: ApprovalId, answer: Answer) -> Result<Approval, Halt> {
    let one = |tx: &Tx<'_>| -> Result<Approval, Halt> {
        let found = tx.one("SELECT * FROM approvals WHERE id = ?1", [As(id)], approval)?;
        found.ok_or_else(|| missing("approval", &id))
    };
    let found = one(tx)?;
    let state = match answer {
        Answer::Approve => ApprovalState::Approved,
        Answer::Deny => ApprovalState::Denied,
    };
    if found.state == state {
        return Ok(found);
    }
    if found.state != ApprovalState::Waiting {
        return Err(unfit("approval", &id, format!("is {} already", found.state.name())));
    }
    if found.expires_at <= tx.now {
        return Err(unfit("approval", &id, "is too old; it counts as denied"));
    }
    end(tx, &found, state)?;
    one(tx)
}

fn end(tx: &Tx<'_>, approval: &Approval, state: ApprovalState) -> Result<(), Halt> {
    tx.exec(sql!("approval_answer"), params![As(approval.id), As(state), As(tx.now)])?;
    let by = match state {
        ApprovalState::Approved => spends::SpendStep::Approved,
        ApprovalState::Denied => spends::SpendStep::Failed("the creator said no".to_owned()),
        ApprovalState::Waiting | ApprovalState::Lapsed => {
            spends::SpendStep::Failed("the creator did not answer in time".to_owned())
        }
    };
    spends::go(tx, approval.payment, &by)
}

fn approval(row: &Row<'_>) -> rusqlite::Result<Approval> {
    Ok(Approval {
        id: get(row, "id")?,
        payment: get(row, "subject")?,
        summary: labelled(row, "summary")?,
        code: row.get("code")?,
        reason: row.get("reason")?,
        state: get(row, "state")?,
        at: get(row, "at")?,
        expires_at: get(row, "expires_at")?,
        answered_at: maybe(row, "answered_at")?,
    })
}

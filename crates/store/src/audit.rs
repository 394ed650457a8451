//! `audit_chain`: decisions, outcomes, payments and answers as a chain of hashes.
//!
//! Each link holds the hash of its row's columns and of the link before it;
//! `audit_head` holds how many links there are and the last hash. Verifying
//! computes everything again from the rows: an edited, added or deleted row, an
//! edited link and a cut tail are found. Whoever cuts the tail *and* rewrites
//! the head leaves a chain that is whole: finding that takes a head that was
//! kept outside this database, which `record` compares with.

use std::fmt;

use automaton_sqlite::chain::{Body, GENESIS, Hash, link};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};

use crate::Store;
use crate::codec::{As, get, maybe};
use crate::error::{Halt, StoreError, missing};
use crate::thread::{Query, Tx, sql};

/// What a link tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkKind {
    /// The policy decided about what a call intends.
    Decision,
    /// A call ended.
    Outcome,
    /// A payment came a step further, or a demand was refused.
    Payment,
    /// A question to the creator was asked, answered, or its answer used.
    Approval,
}

automaton_core::names! {
    /// The kind's name in the database.
    LinkKind {
        Decision => "decision", Outcome => "outcome", Payment => "payment",
        Approval => "approval",
    }
}

impl LinkKind {
    /// The statement that reads a subject's columns, in the order of their
    /// encoding. It must never change, or old links would break.
    pub(crate) const fn body(self) -> &'static str {
        match self {
            Self::Decision => sql!("body_decision"),
            Self::Outcome => sql!("body_outcome"),
            Self::Payment => sql!("body_payment"),
            Self::Approval => sql!("body_approval"),
        }
    }

    /// The columns that [`LinkKind::body`] reads, in their order.
    pub(crate) const fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Decision => &[
                "id",
                "turn",
                "ordinal",
                "tool",
                "source",
                "effect",
                "args_sha256",
                "intents",
                "outcome",
                "code",
                "reason",
                "risk",
                "names",
                "rules_triggered",
                "at",
                "input_label",
                "heard_label",
                "authority",
                "approval",
                "latency_ms",
            ],
            Self::Outcome => &[
                "id",
                "status",
                "result_sha256",
                "result_label",
                "result_source",
                "duration_ms",
                "at",
            ],
            Self::Payment => &["id", "payment", "step", "detail", "label", "source", "at"],
            Self::Approval => &["id", "approval", "step", "action_sha256", "label", "source", "at"],
        }
    }

    /// The statement that finds a subject without a link.
    const fn unlinked(self) -> &'static str {
        match self {
            Self::Decision => sql!("unlinked_decision"),
            Self::Outcome => sql!("unlinked_outcome"),
            Self::Payment => sql!("unlinked_payment"),
            Self::Approval => sql!("unlinked_approval"),
        }
    }
}

/// What verifying the chain found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainReport {
    /// Links that are there.
    pub links: u64,
    /// The hash that the chain ends with.
    pub head: Hash,
    /// The first thing that is wrong.
    pub broken: Option<Break>,
}

impl ChainReport {
    /// Whether nothing is wrong.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.broken.is_none()
    }
}

/// Where the chain is broken, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Break {
    /// The link, where it is about one.
    pub seq: Option<u64>,
    /// What is wrong.
    pub problem: Problem,
}

/// The ways in which a chain can be broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// A link before this one is missing.
    Gap,
    /// The link does not follow the one before it.
    Unfollowed,
    /// The link itself was edited.
    LinkEdited,
    /// The row that the link tells of is gone.
    SubjectGone(String),
    /// The row that the link tells of was edited.
    SubjectEdited(String),
    /// The stored result of a call is not the one whose hash is in the chain.
    ResultEdited(String),
    /// A row has no link.
    Unlinked(LinkKind, String),
    /// The chain ends elsewhere than its head says.
    TailCut {
        /// Links that there should be.
        expected: u64,
    },
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(seq) = self.seq {
            write!(f, "link {seq}: ")?;
        }
        match &self.problem {
            Problem::Gap => f.write_str("the link before it is missing"),
            Problem::Unfollowed => f.write_str("it does not follow the link before it"),
            Problem::LinkEdited => f.write_str("it was edited"),
            Problem::SubjectGone(id) => write!(f, "{id}, which it tells of, is gone"),
            Problem::SubjectEdited(id) => write!(f, "{id}, which it tells of, was edited"),
            Problem::ResultEdited(id) => write!(f, "the result of the call {id} was edited"),
            Problem::Unlinked(kind, id) => write!(f, "the {} {id} has no link", kind.name()),
            Problem::TailCut { expected } => {
                write!(f, "the chain does not end with link {expected}, as its head says")
            }
        }
    }
}

impl Store {
    /// Computes the whole chain again.
    ///
    /// # Errors
    /// When SQLite fails. A broken chain is a finding of the report.
    pub async fn verify_chain(&self) -> Result<ChainReport, StoreError> {
        self.run("verify the audit chain", |db| verify(&db.connection)).await
    }
}

/// Adds the link of a row that was just added.
pub(crate) fn append(tx: &Tx<'_>, kind: LinkKind, subject: &str) -> Result<(), Halt> {
    let (links, prev) = tx.chain.get().map_or_else(|| head(tx), Ok)?;
    let (body, _) = body(tx, kind, subject)?.ok_or_else(|| missing(kind.name(), &subject))?;
    let hash = link(&prev, kind.name(), subject, &body);
    let seq = links + 1;
    tx.exec(
        sql!("link_insert"),
        params![As(seq), As(kind), subject, As(body), As(prev), As(hash), As(tx.now)],
    )?;
    tx.chain.set(Some((seq, hash)));
    Ok(())
}

/// Writes down where the chain ends, when the transaction has added to it.
pub(crate) fn keep_head(tx: &Tx<'_>) -> Result<(), Halt> {
    if let Some((links, hash)) = tx.chain.get() {
        tx.exec("UPDATE audit_head SET links = ?1, sha256 = ?2", params![As(links), As(hash)])?;
    }
    Ok(())
}

pub(crate) fn verify(connection: &Connection) -> Result<ChainReport, Halt> {
    // One moment of the database, whoever writes meanwhile.
    let moment = connection.unchecked_transaction()?;
    let (expected, expected_head) = head(&moment)?;
    let (mut links, mut last, mut broken) = (0_u64, GENESIS, None);
    let mut statement = moment.prepare_cached("SELECT * FROM audit_chain ORDER BY seq")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if broken.is_none() {
            let problem = problem(&moment, row, (links, last))?;
            let seq = Some(get(row, "seq")?);
            broken = problem.map(|problem| Break { seq, problem });
        }
        links += 1;
        last = get(row, "sha256")?;
    }
    if broken.is_none() && (links, last) != (expected, expected_head) {
        broken = Some(Break { seq: None, problem: Problem::TailCut { expected } });
    }
    if broken.is_none() {
        broken = outside(&moment)?.map(|problem| Break { seq: None, problem });
    }
    Ok(ChainReport { links, head: last, broken })
}

/// What is wrong with a row of `audit_chain`, after so many links and this hash.
fn problem(
    connection: &Connection,
    row: &Row<'_>,
    (links, last): (u64, Hash),
) -> Result<Option<Problem>, Halt> {
    let (seq, prev, body_hash): (u64, _, _) =
        (get(row, "seq")?, get(row, "prev_sha256")?, get(row, "body_sha256")?);
    let (kind, subject): (LinkKind, String) = (get(row, "kind")?, row.get("subject_id")?);
    if seq != links + 1 {
        return Ok(Some(Problem::Gap));
    }
    if prev != last {
        return Ok(Some(Problem::Unfollowed));
    }
    if link(&prev, kind.name(), &subject, &body_hash) != get(row, "sha256")? {
        return Ok(Some(Problem::LinkEdited));
    }
    let at: i64 = row.get("at")?;
    Ok(match body(connection, kind, &subject)? {
        None => Some(Problem::SubjectGone(subject)),
        Some((body, _)) if body != body_hash => Some(Problem::SubjectEdited(subject)),
        Some((_, body_at)) if body_at != at => Some(Problem::LinkEdited),
        Some(_) => None,
    })
}

/// What is wrong beside the chain: rows that no link tells of, and results that
/// are not those whose hash is in it.
fn outside(connection: &Connection) -> Result<Option<Problem>, Halt> {
    for kind in LinkKind::ALL {
        let found = connection.one(kind.unlinked(), [], |row| row.get("id"))?;
        if let Some(id) = found {
            return Ok(Some(Problem::Unlinked(kind, id)));
        }
    }
    let mut statement = connection.prepare_cached(sql!("outcome_results"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let result: Option<String> = row.get("result")?;
        let hash: Option<Hash> = maybe(row, "result_sha256")?;
        if hash.is_none() || hash != result.map(|text| Hash::of(text.as_bytes())) {
            return Ok(Some(Problem::ResultEdited(row.get("id")?)));
        }
    }
    Ok(None)
}

pub(crate) fn head(connection: &Connection) -> Result<(u64, Hash), Halt> {
    let statement = "SELECT links, sha256 FROM audit_head";
    let found =
        connection.one(statement, [], |row| Ok((get(row, "links")?, get(row, "sha256")?)))?;
    found.ok_or_else(|| missing("head of the", &"audit chain"))
}

/// The hash of a subject's columns, and its time.
fn body(
    connection: &Connection,
    kind: LinkKind,
    subject: &str,
) -> Result<Option<(Hash, i64)>, Halt> {
    Ok(connection.one(kind.body(), [subject], |row| {
        let mut body = Body::new(kind.name());
        each_column(row, |_, value| {
            let so_far = std::mem::replace(&mut body, Body::new(""));
            body = match value {
                ValueRef::Null => so_far.maybe(None),
                ValueRef::Integer(number) => so_far.int(number),
                ValueRef::Text(text) => so_far.text(&String::from_utf8_lossy(text)),
                // No column of the audit is a real number; bytes tell it apart.
                ValueRef::Real(number) => so_far.bytes(&number.to_be_bytes()),
                ValueRef::Blob(bytes) => so_far.bytes(bytes),
            };
        })?;
        Ok((body.hash(), row.get("at")?))
    })?)
}

/// Goes through the columns of a subject that its link is of, in their order.
pub(crate) fn each_column(
    row: &Row<'_>,
    mut each: impl FnMut(&str, ValueRef<'_>),
) -> rusqlite::Result<()> {
    for column in 0..row.as_ref().column_count() {
        each(row.as_ref().column_name(column)?, row.get_ref(column)?);
    }
    Ok(())
}

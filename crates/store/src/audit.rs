//! `audit_chain`: decisions, outcomes, payments, answers and changes of rows as a chain of hashes.
//!
//! Each write of the store that adds rows adds one link: the hash of the digests of these
//! rows' columns and of the link before it; `audit_head` holds how many links there are and
//! the last hash. Writes that are committed together have a link each, in their order, and
//! one that fails takes its link with it: what a chain looks like never hangs on who else
//! was waiting. Verifying computes everything again from the rows: an edited, added or
//! deleted row, an edited link and a cut tail are found. Rows that may change are covered as
//! each write left them (`rows`). Whoever cuts the tail *and* rewrites
//! the head leaves a chain that is whole: finding that takes a head that was
//! kept outside this database, which `record` compares with.

use std::fmt;

use automaton_sqlite::chain::{CanonicalRow, Covered, GENESIS, Hash, link};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};

use crate::Store;
use crate::codec::{CallText, Sql, SqlText, get, maybe};
use crate::error::{StoreError, TxError, missing};
use crate::rows;
use crate::rows::changes::ChangeList;
use crate::thread::{ConnectionExt, Tx, sql};
use automaton_core::names::Names;

/// Subject of a link. Its [`name`](Self::name) is the one in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Names)]
pub enum LinkKind {
    /// The policy decided about what a call intends.
    Decision,
    /// A call ended.
    Outcome,
    /// A payment came a step further, or a demand was refused.
    Payment,
    /// A question to the creator was asked, answered, or its answer used.
    Approval,
    /// Rows that may change were added, changed or deleted: a list of them, under the number
    /// of its link.
    Changes,
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
            Self::Changes => sql!("changes_of"),
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
                "exit_code",
                "at",
            ],
            Self::Payment => &["id", "payment", "step", "detail", "label", "source", "at"],
            Self::Approval => &["id", "approval", "step", "action_sha256", "label", "source", "at"],
            // Those of a list are its rows.
            Self::Changes => &[],
        }
    }

    /// The statement that gives a subject the number of its link and its digest, where the link
    /// itself does not hold them.
    const fn cover(self) -> Option<&'static str> {
        let statement = match self {
            Self::Decision => {
                "UPDATE tool_calls SET decided_link = ?2, decided_sha256 = ?3 WHERE id = ?1"
            }
            Self::Outcome => {
                "UPDATE tool_calls SET ended_link = ?2, ended_sha256 = ?3 WHERE id = ?1"
            }
            Self::Payment => "UPDATE payment_steps SET link = ?2, sha256 = ?3 WHERE id = ?1",
            Self::Approval => "UPDATE approval_steps SET link = ?2, sha256 = ?3 WHERE id = ?1",
            Self::Changes => return None,
        };
        Some(statement)
    }
}

/// Result of a verification of the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainReport {
    /// Links that are there.
    pub links: u64,
    /// The hash that the chain ends with.
    pub head: Hash,
    /// The first thing that is wrong.
    pub broken: Option<ChainBreak>,
    /// Problems of rows that may change, the first hundred of them.
    pub rows: Vec<ChainBreak>,
}

impl ChainReport {
    /// Returns true if no problem was found.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.broken.is_none()
    }
}

/// Place and kind of a break in the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainBreak {
    /// The link, where it is about one.
    pub seq: Option<u64>,
    /// Kind of the problem.
    pub problem: ChainProblem,
}

/// The ways in which a chain can be broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChainProblem {
    /// A link before this one is missing.
    Gap,
    /// The link does not follow the one before it.
    Unfollowed,
    /// The link does not fit its rows: it was edited, or one was added or taken away.
    LinkEdited,
    /// A row that the link tells of was edited.
    SubjectEdited(String),
    /// The stored result of a call is not the one whose hash is in the chain.
    ResultEdited(String),
    /// A row has no link.
    Unlinked(LinkKind, String),
    /// The list of the rows that a link is about is gone.
    ListGone,
    /// The list of the rows that a link is about was edited, or put back.
    ListEdited,
    /// The database has a trigger or view that is not the program's, which changes rows when the
    /// program writes.
    ForeignTrigger(String),
    /// A list tells of a table that this program does not know.
    UnknownTable(String),
    /// A row is not what the link left.
    RowEdited {
        /// Its table.
        table: String,
        /// Its name there.
        row: String,
    },
    /// A row is there that no link tells of.
    RowAdded {
        /// Its table.
        table: String,
        /// Its name there.
        row: String,
    },
    /// A row is gone that the link left.
    RowDeleted {
        /// Its table.
        table: String,
        /// Its name there.
        row: String,
    },
    /// A row was not what the links before had left, when the write of the link changed it.
    RowStray {
        /// Its table.
        table: String,
        /// Its name there.
        row: String,
    },
    /// The chain ends elsewhere than its head says.
    TailCut {
        /// Links that there should be.
        expected: u64,
    },
}

impl fmt::Display for ChainBreak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(seq) = self.seq {
            write!(f, "link {seq}: ")?;
        }
        match &self.problem {
            ChainProblem::Gap => f.write_str("the link before it is missing"),
            ChainProblem::Unfollowed => f.write_str("it does not follow the link before it"),
            ChainProblem::LinkEdited => f.write_str(
                "it does not fit its rows: it was edited, or a row was added or taken away",
            ),
            ChainProblem::SubjectEdited(id) => write!(f, "{id}, which it tells of, was edited"),
            ChainProblem::ResultEdited(id) => write!(f, "the result of the call {id} was edited"),
            ChainProblem::Unlinked(kind, id) => write!(f, "the {} {id} has no link", kind.name()),
            ChainProblem::ListGone => f.write_str("the list of the rows that it changed is gone"),
            ChainProblem::ListEdited => {
                f.write_str("the list of the rows that it changed was edited")
            }
            ChainProblem::ForeignTrigger(name) => {
                write!(f, "the database has {name}, a trigger or view that is not the program's")
            }
            ChainProblem::UnknownTable(table) => {
                write!(f, "it tells of the table {table}, which this program does not know")
            }
            ChainProblem::RowEdited { table, row } => {
                write!(f, "row {row} of {table}, which it wrote, was edited")
            }
            ChainProblem::RowAdded { table, row } => {
                write!(f, "row {row} of {table} was added: no link tells of it")
            }
            ChainProblem::RowDeleted { table, row } => {
                write!(f, "row {row} of {table}, which it wrote, was deleted")
            }
            ChainProblem::RowStray { table, row } => {
                write!(
                    f,
                    "row {row} of {table} had been edited, added or deleted before it wrote it"
                )
            }
            ChainProblem::TailCut { expected } => {
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
        self.run("verify the audit chain", |tx| verify(tx)).await
    }
}

/// The link that a transaction adds.
#[derive(Debug)]
pub(crate) struct Growing {
    seq: u64,
    prev: Hash,
    rows: Vec<(LinkKind, String, Hash)>,
    changes: ChangeList,
}

/// Has the link of this transaction cover a row that was just added.
pub(crate) fn append(tx: &Tx<'_>, kind: LinkKind, subject: &str) -> Result<(), TxError> {
    let (digest, _) = body(tx, kind, subject)?.ok_or_else(|| missing(kind.name(), &subject))?;
    grow(tx, |link| {
        if let Some(statement) = kind.cover() {
            tx.exec(statement, params![subject, Sql(link.seq), Sql(digest)])?;
        }
        link.rows.push((kind, subject.to_owned(), digest));
        Ok(())
    })
}

/// Has the link of this transaction cover changes beside those that its triggers saw.
pub(crate) fn add_changes(tx: &Tx<'_>, changes: ChangeList) -> Result<(), TxError> {
    grow(tx, |link| {
        link.changes.list.extend(changes.list);
        link.changes.kept += changes.kept;
        link.changes.rows += changes.rows;
        Ok(())
    })
}

/// Adds to the link of this transaction, which begins with the first addition.
fn grow(tx: &Tx<'_>, add: impl FnOnce(&mut Growing) -> Result<(), TxError>) -> Result<(), TxError> {
    let mut chain = tx.chain.borrow_mut();
    match &mut *chain {
        Some(link) => add(link),
        none => {
            let (links, prev) = head(tx)?;
            let (rows, changes) = Default::default();
            add(none.insert(Growing { seq: links + 1, prev, rows, changes }))
        }
    }
}

/// Adds the link of a transaction whose work is done, and writes down where the
/// chain ends now.
pub(crate) fn close_link(tx: &Tx<'_>) -> Result<(), TxError> {
    let changed = rows::changes::find_changes(tx)?;
    if !changed.list.is_empty() {
        add_changes(tx, changed)?;
    }
    let Some(Growing { seq, prev, mut rows, changes }) = tx.chain.take() else { return Ok(()) };
    let changes = rows::changes::insert_list(tx, seq, changes)?;
    if let Some(digest) = changes {
        rows.push((LinkKind::Changes, seq.to_string(), digest));
    }
    rows.sort_by(|(a, one, _), (b, other, _)| (a.name(), one).cmp(&(b.name(), other)));
    let covered = rows.iter().map(|(kind, subject, digest)| {
        let kind = kind.name();
        Covered { kind, subject, digest }
    });
    let hash = link(&prev, tx.now.as_millis(), covered);
    tx.exec(sql!("link_insert"), params![Sql(seq), Sql(tx.now), Sql(hash), changes.map(Sql)])?;
    tx.exec("UPDATE audit_head SET links = ?1, sha256 = ?2", params![Sql(seq), Sql(hash)])?;
    Ok(())
}

/// A row of `audit_chain`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinkRow {
    pub(crate) seq: u64,
    pub(crate) at: i64,
    pub(crate) hash: Hash,
}

/// A row that says which link covers it.
#[derive(Debug)]
pub(crate) struct Subject {
    link: u64,
    pub(crate) kind: LinkKind,
    pub(crate) id: String,
    pub(crate) digest: Option<Hash>,
}

impl Subject {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            link: get(row, "link")?,
            kind: get(row, "kind")?,
            id: row.get("id")?,
            digest: maybe(row, "digest")?,
        })
    }
}

/// Goes through the links after a number, each with its rows; gives a row that comes after
/// the last link, if there is one.
pub(crate) fn walk(
    connection: &Connection,
    after: i64,
    mut each: impl FnMut(LinkRow, &[Subject]) -> Result<(), TxError>,
) -> Result<Option<Subject>, TxError> {
    let links = "SELECT seq, at, sha256 FROM audit_chain WHERE seq > ?1 ORDER BY seq";
    let mut links = connection.prepare_cached(links)?;
    let mut covered = connection.prepare_cached(sql!("covered"))?;
    let mut links = links.query([after])?;
    let mut covered = covered.query([after])?;
    let mut next = covered.next()?.map(Subject::read).transpose()?;
    while let Some(row) = links.next()? {
        let link = LinkRow { seq: get(row, "seq")?, at: row.get("at")?, hash: get(row, "sha256")? };
        let mut rows = Vec::new();
        while let Some(subject) = next.take_if(|subject| subject.link <= link.seq) {
            rows.push(subject);
            next = covered.next()?.map(Subject::read).transpose()?;
        }
        each(link, &rows)?;
    }
    Ok(next)
}

/// Computes the whole chain again, as it is in one moment: in one transaction.
pub(crate) fn verify(moment: &Connection) -> Result<ChainReport, TxError> {
    let (expected, expected_head) = head(moment)?;
    let floor = rows::changes::read_floor(moment)?;
    let mut links = 0_u64;
    let mut last = GENESIS;
    let mut broken = None;
    let rest = walk(moment, 0, |found, rows| {
        if broken.is_none() {
            let so_far = SoFar { links, last, floor };
            let problem = problem(moment, found, rows, so_far)?;
            broken = problem.map(|problem| ChainBreak { seq: Some(found.seq), problem });
        }
        (links, last) = (links + 1, found.hash);
        Ok(())
    })?;
    if broken.is_none() && (links, last) != (expected, expected_head) {
        broken = Some(ChainBreak { seq: None, problem: ChainProblem::TailCut { expected } });
    }
    if broken.is_none() {
        let unlinked = rest.map(|subject| ChainProblem::Unlinked(subject.kind, subject.id));
        let problem = unlinked.map_or_else(|| outside(moment), |problem| Ok(Some(problem)))?;
        broken = problem.map(|problem| ChainBreak { seq: None, problem });
    }
    let rows = rows::check::row_problems(moment)?;
    let broken = broken.or_else(|| rows.first().cloned());
    Ok(ChainReport { links, head: last, broken, rows })
}

/// Position of a verification in the chain.
#[derive(Debug, Clone, Copy)]
struct SoFar {
    /// Number of links before.
    links: u64,
    /// The hash of the last one.
    last: Hash,
    /// The last link whose list of changes may be gone.
    floor: u64,
}

/// Returns the problem of a link and its rows, given the position before it.
fn problem(
    connection: &Connection,
    found: LinkRow,
    rows: &[Subject],
    SoFar { links, last, floor }: SoFar,
) -> Result<Option<ChainProblem>, TxError> {
    if found.seq != links + 1 {
        return Ok(Some(ChainProblem::Gap));
    }
    let mut covered = Vec::with_capacity(rows.len());
    for Subject { link, kind, id, digest } in rows {
        if *kind == LinkKind::Changes {
            let problem = rows::check::list_problem(connection, found.seq, *digest, floor)?;
            let (None, Some(digest)) = (&problem, digest) else { return Ok(problem) };
            covered.push((kind.name(), id.as_str(), *digest));
            continue;
        }
        let body = body(connection, *kind, id)?;
        let Some((body, at)) = body.filter(|(body, _)| Some(*body) == *digest) else {
            return Ok(Some(ChainProblem::SubjectEdited(id.clone())));
        };
        if at != found.at || *link != found.seq {
            return Ok(Some(ChainProblem::LinkEdited));
        }
        covered.push((kind.name(), id.as_str(), body));
    }
    let covered = covered.iter().map(|(kind, subject, digest)| Covered { kind, subject, digest });
    Ok((link(&last, found.at, covered) != found.hash).then_some(ChainProblem::LinkEdited))
}

/// Returns a problem beside the chain: rows without a link, and results that differ from their
/// hash.
fn outside(connection: &Connection) -> Result<Option<ChainProblem>, TxError> {
    let unlinked = connection.one(sql!("unlinked"), [], |row| {
        Ok(ChainProblem::Unlinked(get(row, "kind")?, row.get("id")?))
    })?;
    if unlinked.is_some() {
        return Ok(unlinked);
    }
    let mut statement = connection.prepare_cached(sql!("outcome_results"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        // What cannot be read is not what was hashed.
        let result = CallText::decode(row.get_ref("result")?);
        let hash: Option<Hash> = maybe(row, "result_sha256")?;
        if hash.is_none() || hash != result.map(|text| Hash::of(text.0.as_bytes())) {
            return Ok(Some(ChainProblem::ResultEdited(row.get("id")?)));
        }
    }
    Ok(None)
}

pub(crate) fn head(connection: &Connection) -> Result<(u64, Hash), TxError> {
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
) -> Result<Option<(Hash, i64)>, TxError> {
    Ok(connection.one(kind.body(), [subject], |row| {
        let mut body = CanonicalRow::new(kind.name());
        each_column(row, |_, value| {
            let so_far = std::mem::replace(&mut body, CanonicalRow::new(""));
            body = rows::covered::add_value(so_far, value);
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

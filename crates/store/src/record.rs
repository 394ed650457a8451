//! The record as it leaves the database: link by link, with what each tells of.
//!
//! An export is JSON lines: one [`ExportHeader`] that says how many links there are and how
//! they end, then one [`ChainLink`] for each row of each. It can be verified without the database that it
//! came from, by the rules of `audit`. A head that was kept elsewhere shows whether a
//! chain, here or in an export, still holds what it held then. Nothing here may write.

use std::io::BufRead;

use automaton_core::error::Classified;
use automaton_core::time::Timestamp;
use automaton_sqlite::chain::{CanonicalRow, Covered, GENESIS, Hash, link};
use rusqlite::types::ValueRef;
use serde::{Deserialize, Serialize};

use crate::audit::{self, ChainBreak, ChainProblem, ChainReport, LinkKind};
use crate::codec::get;
use crate::error::{StoreError, TxError};
use crate::reader::Reader;
use crate::rows;
use crate::rows::changes::{Change, FLOOR, STRAY};
use crate::thread::ConnectionExt;

/// The first line of an export.
const TITLE: &str = "automaton record v2";
/// Rows that were changed by something else of which a report tells at most.
const STRAYS_MAX: usize = 100;
/// The longest line of an export, in bytes.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// End of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainHead {
    /// Number of links.
    pub entries: u64,
    /// The hash of the last one; zero where there is none.
    pub hash: Hash,
}

impl ChainHead {
    /// Hash of the last link; zero without one.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries == 0
    }
}

/// The first line of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportHeader {
    /// `automaton record v2`.
    pub record: String,
    /// Returns true if the record is empty.
    pub links: u64,
    /// The hash of the last one, in hexadecimal.
    pub head: String,
}

impl ExportHeader {
    /// The first line of an export of what ends like this.
    #[must_use]
    pub fn from_head(head: ChainHead) -> Self {
        Self { record: TITLE.to_owned(), links: head.entries, head: head.hash.to_string() }
    }
}

/// One row, with the link that covers it. The rows of a link follow each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChainLink {
    /// The number of the link, from 1.
    pub seq: u64,
    /// Kind of the row.
    pub kind: String,
    /// The id of that.
    pub subject: String,
    /// Time of writing, in milliseconds since 1970.
    pub at: Timestamp,
    /// The columns of the row, in the order of their encoding.
    pub row: Vec<Column>,
    /// The hash of the row, in hexadecimal.
    pub digest: String,
    /// The hash of the link before.
    pub prev: String,
    /// The hash of the link.
    pub sha256: String,
}

/// A column of a row; shown, its value in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, derive_more::Display)]
#[display("{value}")]
pub struct Column {
    name: String,
    value: ColumnValue,
}

/// Value of a column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, derive_more::Display)]
#[serde(rename_all = "snake_case")]
enum ColumnValue {
    #[display("-")]
    Null,
    Int(i64),
    Text(String),
    /// In hexadecimal.
    Bytes(String),
}

impl Column {
    /// The column's name in the database.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Difference between a chain and an earlier head of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, derive_more::Display)]
#[serde(rename_all = "snake_case")]
pub enum ChainDivergence {
    /// There were more links then.
    #[display("its tail was cut: only {links} entries are left")]
    Cut {
        /// Number of links now.
        links: u64,
    },
    /// The link that was the last one then is another one now.
    #[display("it was written anew: the entry that was the last one is {now} now")]
    Rewritten {
        /// Hash now, in hexadecimal.
        now: String,
    },
}

/// A file is no export, or one that ends early.
#[derive(Debug, thiserror::Error, Classified)]
#[class(User, hint = "name a file that `automaton audit export` wrote")]
pub enum ExportError {
    /// It cannot be read.
    #[error("line {0} of the export cannot be read")]
    Read(u64, #[source] std::io::Error),
    /// A line is too long.
    #[error("line {0} of the export is longer than {LINE_BYTES_MAX} bytes")]
    Long(u64),
    /// A line is not what it should be.
    #[error("line {0} of the export is none of a record")]
    Line(u64, #[source] serde_json::Error),
    /// The first line is that of something else.
    #[error("the file begins with '{0}', not with '{TITLE}'")]
    Title(String),
    /// It is empty.
    #[error("the export is empty")]
    Empty,
    /// A hash is none.
    #[error("line {0} of the export has a hash that is none")]
    Hash(u64),
}

impl Reader {
    /// Returns the head of the chain.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn head(&self) -> Result<ChainHead, StoreError> {
        let head = self.read("read the head of the record", audit::head)?;
        Ok(ChainHead { entries: head.0, hash: head.1 })
    }

    /// Returns the difference between the chain and an earlier head, if there is one.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn departure(&self, from: ChainHead) -> Result<Option<ChainDivergence>, StoreError> {
        let links = self.head()?.entries;
        let then = self.read("read a link", |connection| {
            let statement = "SELECT sha256 FROM audit_chain WHERE seq = ?1";
            let seq = i64::try_from(from.entries).unwrap_or(i64::MAX);
            Ok(connection.one(statement, [seq], |row| get(row, "sha256"))?)
        })?;
        Ok(departure(from, links, then))
    }

    /// Gives each row of each link after a number to `each`, oldest first, as they were in
    /// one moment.
    ///
    /// # Errors
    /// When SQLite fails, or `each` does.
    pub fn links<E: From<StoreError>>(
        &self,
        after: u64,
        mut each: impl FnMut(ChainLink) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut failed = None;
        let read = self.read("read the record", |connection| {
            let moment = connection.unchecked_transaction()?;
            let after = i64::try_from(after).unwrap_or(i64::MAX);
            let statement = "SELECT sha256 FROM audit_chain WHERE seq = ?1";
            let before = moment.one(statement, [after], |row| get(row, "sha256"))?;
            let mut prev: Hash = before.unwrap_or(GENESIS);
            audit::walk(&moment, after, |found, rows| {
                for subject in rows {
                    if failed.is_some() {
                        return Ok(());
                    }
                    let row = columns(&moment, subject.kind, &subject.id)?;
                    let link = ChainLink {
                        seq: found.seq,
                        kind: subject.kind.name().to_owned(),
                        subject: subject.id.clone(),
                        at: Timestamp::from_millis(found.at),
                        row,
                        digest: subject.digest.map(|hash| hash.to_string()).unwrap_or_default(),
                        prev: prev.to_string(),
                        sha256: found.hash.to_string(),
                    };
                    failed = each(link).err();
                }
                prev = found.hash;
                Ok(())
            })?;
            Ok(())
        });
        failed.map_or_else(|| read.map_err(E::from), Err)
    }
}

fn departure(from: ChainHead, links: u64, then: Option<Hash>) -> Option<ChainDivergence> {
    let then = if from.entries == 0 { Some(GENESIS) } else { then };
    match then {
        None => Some(ChainDivergence::Cut { links }),
        Some(then) if then != from.hash => {
            Some(ChainDivergence::Rewritten { now: then.to_string() })
        }
        Some(_) => None,
    }
}

/// The row that a link tells of; empty when it is gone.
fn columns(
    connection: &rusqlite::Connection,
    kind: LinkKind,
    subject: &str,
) -> Result<Vec<Column>, TxError> {
    if kind == LinkKind::Changes {
        return list_columns(connection, subject);
    }
    let read = connection.one(kind.body(), [subject], |row| {
        let mut columns = Vec::new();
        audit::each_column(row, |name, value| {
            let value = match value {
                ValueRef::Null => ColumnValue::Null,
                ValueRef::Integer(number) => ColumnValue::Int(number),
                ValueRef::Text(text) => {
                    ColumnValue::Text(String::from_utf8_lossy(text).into_owned())
                }
                ValueRef::Real(number) => ColumnValue::Bytes(hex(&number.to_be_bytes())),
                ValueRef::Blob(bytes) => ColumnValue::Bytes(hex(bytes)),
            };
            columns.push(Column { name: name.to_owned(), value });
        })?;
        Ok(columns)
    });
    Ok(read?.unwrap_or_default())
}

/// The rows that a link changed, each under its table and name, with the hash of what it holds;
/// empty when the list was folded.
fn list_columns(connection: &rusqlite::Connection, link: &str) -> Result<Vec<Column>, TxError> {
    let read = |row: &rusqlite::Row<'_>| {
        let Change { source, row, hash } = rows::changes::read_change(row)?;
        let value = hash.map_or(ColumnValue::Null, |hash| ColumnValue::Bytes(hash.to_string()));
        Ok(Column { name: format!("{source} {row}"), value })
    };
    Ok(connection.all(LinkKind::Changes.body(), [link], read)?)
}

fn hex(bytes: &[u8]) -> String {
    alloy_primitives::hex::encode(bytes)
}

/// Computes an export again, from what it says of each row; with how it differs from what
/// it held when a head was taken, where one is given.
///
/// # Errors
/// When the file is none. A broken chain is a finding of the report.
pub fn verify_export(
    mut export: impl BufRead,
    from: Option<ChainHead>,
) -> Result<(ChainReport, Option<ChainDivergence>), ExportError> {
    let first = line(&mut export, 1)?.ok_or(ExportError::Empty)?;
    let record: ExportHeader =
        serde_json::from_str(&first).map_err(|error| ExportError::Line(1, error))?;
    if record.record != TITLE {
        return Err(ExportError::Title(record.record.chars().take(60).collect()));
    }
    let mut check = Check::from(from);
    let mut open: Option<Group> = None;
    let mut number = 1;
    while let Some(text) = line(&mut export, number + 1)? {
        number += 1;
        let link: ChainLink =
            serde_json::from_str(&text).map_err(|error| ExportError::Line(number, error))?;
        let hash = |text: &str| text.parse::<Hash>().map_err(|_| ExportError::Hash(number));
        let prev = hash(&link.prev)?;
        let own = hash(&link.sha256)?;
        let digest = hash(&link.digest)?;
        let group = Group { seq: link.seq, at: link.at, prev, own, rows: Vec::new() };
        let goes_on = open.as_ref().is_some_and(|open| open.is_the_link_of(&group));
        if !goes_on && let Some(ended) = open.replace(group) {
            check.end(&ended);
        }
        let problem = if link.kind == LinkKind::Changes.name() {
            check.list_problem(&link, digest)
        } else {
            problem(&link, digest)
        };
        if let Some(problem) = problem {
            check.note_problem(link.seq, problem);
        }
        open.iter_mut()
            .for_each(|open| open.rows.push((link.kind.clone(), link.subject.clone(), digest)));
    }
    if let Some(ended) = open {
        check.end(&ended);
    }
    check.end_lists();
    let Check { links, last, then, mut broken, strays, .. } = check;
    if broken.is_none() && (links, last.to_string()) != (record.links, record.head) {
        let problem = ChainProblem::TailCut { expected: record.links };
        broken = Some(ChainBreak { seq: None, problem });
    }
    let broken = broken.or_else(|| strays.first().cloned());
    let departure = from.and_then(|from| departure(from, links, then));
    Ok((ChainReport { links, head: last, broken, rows: strays }, departure))
}

/// A link of an export, with the digests of its rows.
struct Group {
    seq: u64,
    at: Timestamp,
    prev: Hash,
    own: Hash,
    rows: Vec<(String, String, Hash)>,
}

impl Group {
    fn is_the_link_of(&self, other: &Self) -> bool {
        (self.seq, self.at, self.prev, self.own) == (other.seq, other.at, other.prev, other.own)
    }
}

/// Progress of the check of an export.
struct Check {
    links: u64,
    last: Hash,
    from: Option<ChainHead>,
    then: Option<Hash>,
    broken: Option<ChainBreak>,
    /// The last link whose list is said to be folded.
    floor: u64,
    /// The last link without its list.
    unlisted: Option<u64>,
    /// The first link with one.
    listed: Option<u64>,
    /// Rows that were not as the chain says when they were written next.
    strays: Vec<ChainBreak>,
}

impl Check {
    const fn from(from: Option<ChainHead>) -> Self {
        Self {
            links: 0,
            last: GENESIS,
            then: None,
            from,
            broken: None,
            floor: 0,
            unlisted: None,
            listed: None,
            strays: Vec::new(),
        }
    }

    /// Returns the problem of the list of changed rows of a link.
    fn list_problem(&mut self, found: &ChainLink, digest: Hash) -> Option<ChainProblem> {
        let seq = found.seq;
        if found.row.is_empty() {
            self.unlisted = self.unlisted.max(Some(seq));
            return None;
        }
        self.listed = self.listed.or(Some(seq));
        let mut list = CanonicalRow::new(LinkKind::Changes.name());
        for Column { name, value } in &found.row {
            let hash = match value {
                ColumnValue::Null => None,
                ColumnValue::Bytes(text) => text.parse::<Hash>().ok(),
                ColumnValue::Int(_) | ColumnValue::Text(_) => {
                    return Some(ChainProblem::ListEdited);
                }
            };
            if hash.is_none() && *value != ColumnValue::Null {
                return Some(ChainProblem::ListEdited);
            }
            list = rows::changes::add_entry(list, name, hash.as_ref());
            match name.split_once(' ') {
                Some((FLOOR, number)) => self.floor = number.parse().unwrap_or(self.floor),
                Some((STRAY, named)) if self.strays.len() < STRAYS_MAX => {
                    let problem = rows::check::stray_problem(named);
                    self.strays.push(ChainBreak { seq: Some(seq), problem });
                }
                _ => {}
            }
        }
        (list.hash() != digest).then_some(ChainProblem::ListEdited)
    }

    /// Finds lists that are missing although they were not folded, and folded ones that are there.
    fn end_lists(&mut self) {
        if let Some(seq) = self.unlisted.filter(|seq| *seq > self.floor) {
            self.note_problem(seq, ChainProblem::ListGone);
        }
        if let Some(seq) = self.listed.filter(|seq| *seq <= self.floor) {
            self.note_problem(seq, ChainProblem::ListEdited);
        }
    }

    /// Keeps the first thing that is wrong.
    fn note_problem(&mut self, seq: u64, problem: ChainProblem) {
        self.broken.get_or_insert(ChainBreak { seq: Some(seq), problem });
    }

    /// All rows of a link are there.
    fn end(&mut self, group: &Group) {
        let rows = group.rows.iter();
        let covered = rows.map(|(kind, subject, digest)| Covered { kind, subject, digest });
        if group.seq != self.links + 1 {
            self.note_problem(group.seq, ChainProblem::Gap);
        } else if group.prev != self.last {
            self.note_problem(group.seq, ChainProblem::Unfollowed);
        } else if link(&group.prev, group.at.as_millis(), covered) != group.own {
            self.note_problem(group.seq, ChainProblem::LinkEdited);
        }
        (self.links, self.last) = (self.links + 1, group.own);
        if self.from.is_some_and(|from| from.entries == self.links) {
            self.then = Some(group.own);
        }
    }
}

/// Returns the problem of a row of an export.
fn problem(found: &ChainLink, digest: Hash) -> Option<ChainProblem> {
    let mut body = CanonicalRow::new(&found.kind);
    for column in &found.row {
        body = match &column.value {
            ColumnValue::Null => body.maybe(None),
            ColumnValue::Int(number) => body.int(*number),
            ColumnValue::Text(text) => body.text(text),
            // What is no hexadecimal has no bytes, and so not those of the row.
            ColumnValue::Bytes(text) => {
                body.bytes(&alloy_primitives::hex::decode(text).unwrap_or_default())
            }
        };
    }
    // The hash is of what the columns hold, in their order; their names have to be theirs.
    let kind = LinkKind::by_name(&found.kind);
    let expected = kind.map_or(&[][..], LinkKind::columns).iter();
    let named = found.row.iter().map(Column::name).eq(expected.copied());
    if !named || body.hash() != digest {
        return Some(ChainProblem::SubjectEdited(found.subject.clone()));
    }
    let at = |column: &Column| {
        column.name == "at" && column.value == ColumnValue::Int(found.at.as_millis())
    };
    (!found.row.iter().any(at)).then_some(ChainProblem::LinkEdited)
}

/// One line of an export; nothing at its end.
fn line(export: &mut impl BufRead, number: u64) -> Result<Option<String>, ExportError> {
    let mut text = String::new();
    let mut capped = std::io::Read::take(&mut *export, LINE_BYTES_MAX);
    let read = capped.read_line(&mut text).map_err(|error| ExportError::Read(number, error))?;
    if read == 0 {
        return Ok(None);
    }
    if u64::try_from(read).unwrap_or(u64::MAX) == LINE_BYTES_MAX {
        return Err(ExportError::Long(number));
    }
    Ok(Some(text))
}

//! The list of covered rows that a transaction changed, which its link covers.

use std::borrow::Cow;

use automaton_sqlite::chain::{CanonicalRow, Hash};
use rusqlite::{Connection, params};

use crate::audit::LinkKind;
use crate::codec::{Sql, maybe};
use crate::error::TxError;
use crate::thread::{ConnectionExt, Tx, sql};

/// Stands for a table where a row says up to which link lists are gone.
pub(crate) const FLOOR: &str = "floor";
/// Stands for a table where a row was not as the chain says when it was written next.
pub(crate) const STRAY: &str = "stray";

/// A row, as a write left it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Change {
    /// Its table, or what stands for one.
    pub(crate) source: Cow<'static, str>,
    /// Its name there.
    pub(crate) row: String,
    /// The hash of what it holds; nothing where it was deleted.
    pub(crate) hash: Option<Hash>,
}

/// Changes of a transaction.
#[derive(Debug, Default)]
pub(crate) struct ChangeList {
    pub(crate) list: Vec<Change>,
    /// Entries by which `audit_changes` grows beside the list; negative if entries were deleted.
    pub(crate) kept: i64,
    /// Rows by which the covered tables grow.
    pub(crate) rows: i64,
}

/// Finds the changes of the touched rows, and the rows that were not as the chain says before.
pub(crate) fn find_changes(tx: &Tx<'_>) -> Result<ChangeList, TxError> {
    let mut changes = ChangeList::default();
    for ((place, row), before) in tx.watch.take_touched() {
        let Some(columns) = tx.watch.tables.get(place) else { continue };
        let source = columns.table.name;
        let known = known_hash(tx, source, &row)?;
        let now = columns.hash_of(tx, &row)?;
        if before != known {
            let row = format!("{source} {row}");
            changes.list.push(Change { source: Cow::Borrowed(STRAY), row, hash: before });
        }
        if now != known {
            changes.rows += i64::from(now.is_some()) - i64::from(known.is_some());
            changes.list.push(Change { source: Cow::Borrowed(source), row, hash: now });
        }
    }
    Ok(changes)
}

/// Inserts the list of a link, and returns its digest; `None` if the list is empty.
pub(crate) fn insert_list(
    tx: &Tx<'_>,
    link: u64,
    mut changes: ChangeList,
) -> Result<Option<Hash>, TxError> {
    if changes.list.is_empty() {
        return Ok(None);
    }
    changes.list.sort();
    for Change { source, row, hash } in &changes.list {
        tx.exec(sql!("change_insert"), params![source, row, Sql(link), hash.map(Sql)])?;
    }
    let entries = i64::try_from(changes.list.len()).unwrap_or(i64::MAX);
    let counted = params![entries + changes.kept, changes.rows];
    tx.exec("UPDATE audit_head SET changes = changes + ?1, rows = rows + ?2", counted)?;
    Ok(Some(list_digest(&changes.list)))
}

/// The digest of a list in its order.
pub(crate) fn list_digest<'a>(list: impl IntoIterator<Item = &'a Change>) -> Hash {
    let begin = CanonicalRow::new(LinkKind::Changes.name());
    let all = list.into_iter().fold(begin, |so_far, Change { source, row, hash }| {
        add_entry(so_far, &format!("{source} {row}"), hash.as_ref())
    });
    all.hash()
}

/// Adds an entry to the encoding of a list.
pub(crate) fn add_entry(list: CanonicalRow, named: &str, hash: Option<&Hash>) -> CanonicalRow {
    let list = list.text(named);
    match hash {
        Some(hash) => list.bytes(hash.as_bytes()),
        None => list.maybe(None),
    }
}

/// The list of a link, in its order.
pub(crate) fn read_list(connection: &Connection, link: u64) -> Result<Vec<Change>, TxError> {
    Ok(connection.all(sql!("changes_of"), [Sql(link)], read_change)?)
}

pub(crate) fn read_change(row: &rusqlite::Row<'_>) -> rusqlite::Result<Change> {
    Ok(Change {
        source: Cow::Owned(row.get("source")?),
        row: row.get("row")?,
        hash: maybe(row, "sha256")?,
    })
}

/// The number of the last link whose list is gone; 0 where all are there.
pub(crate) fn read_floor(connection: &Connection) -> Result<u64, TxError> {
    let found =
        connection.one(sql!("changes_floor"), [FLOOR], |row| row.get::<_, String>("row"))?;
    // What is no number was not written by the store, and its link does not hold.
    Ok(found.and_then(|number| number.parse().ok()).unwrap_or(0))
}

/// The hash of a row as the chain knows it; nothing where it was never there, or was deleted.
fn known_hash(tx: &Tx<'_>, source: &str, row: &str) -> Result<Option<Hash>, TxError> {
    let found = tx.one(sql!("change_newest"), params![source, row], |row| maybe(row, "sha256"))?;
    Ok(found.flatten())
}

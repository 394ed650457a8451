//! Compares the covered rows with what the chain says of them.

use std::collections::BTreeMap;

use automaton_sqlite::chain::Hash;
use automaton_sqlite::foreign_triggers;
use rusqlite::Connection;

use super::changes::{self, FLOOR, STRAY};
use super::covered::{COVERED, Columns};
use crate::audit::{ChainBreak, ChainProblem};
use crate::codec::{get, maybe};
use crate::error::TxError;
use crate::thread::{ConnectionExt, sql};

/// Problems with rows that a report names.
const NAMED_MAX: usize = 100;

/// Returns the problem of the list of a link, whose digest the chain has. Links up to `floor`
/// have no list any more, all others have theirs.
pub(crate) fn list_problem(
    connection: &Connection,
    link: u64,
    digest: Option<Hash>,
    floor: u64,
) -> Result<Option<ChainProblem>, TxError> {
    let list = changes::read_list(connection, link)?;
    let problem = match (list.is_empty(), link <= floor) {
        (true, true) => None,
        (true, false) => Some(ChainProblem::ListGone),
        (false, true) => Some(ChainProblem::ListEdited),
        (false, false) => {
            (Some(changes::list_digest(&list)) != digest).then_some(ChainProblem::ListEdited)
        }
    };
    Ok(problem)
}

/// Finds the problems of the covered rows, the first hundred of them.
pub(crate) fn row_problems(connection: &Connection) -> Result<Vec<ChainBreak>, TxError> {
    let mut problems = Problems(Vec::new());
    for name in foreign_triggers(connection, &crate::SCHEMA)? {
        problems.add(None, ChainProblem::ForeignTrigger(name));
    }
    strange_entries(connection, &mut problems)?;
    for columns in Columns::read_all(connection)? {
        let table = columns.table.name;
        let mut known = read_newest(connection, table)?;
        columns.each_row(connection, |row, hash| match known.remove(&row) {
            Some((_, Some(said))) if said == hash => {}
            Some((link, Some(_))) => {
                problems.add(Some(link), ChainProblem::RowEdited { table: table.to_owned(), row });
            }
            _ => problems.add(None, ChainProblem::RowAdded { table: table.to_owned(), row }),
        })?;
        for (row, (link, said)) in known {
            if said.is_some() {
                let table = table.to_owned();
                problems.add(Some(link), ChainProblem::RowDeleted { table, row });
            }
        }
    }
    Ok(problems.0)
}

/// The problems that a report names.
struct Problems(Vec<ChainBreak>);

impl Problems {
    fn add(&mut self, seq: Option<u64>, problem: ChainProblem) {
        if self.0.len() < NAMED_MAX {
            self.0.push(ChainBreak { seq, problem });
        }
    }
}

/// Entries that no link covers, rows that were not as the chain says when they were written
/// next, and entries of tables that this program does not know.
fn strange_entries(connection: &Connection, problems: &mut Problems) -> Result<(), TxError> {
    let uncovered = connection.all(sql!("changes_uncovered"), [], |row| get::<u64>(row, "link"))?;
    uncovered.into_iter().for_each(|link| problems.add(Some(link), ChainProblem::ListEdited));
    let strays = "SELECT link, row FROM audit_changes WHERE source = ?1 ORDER BY link";
    let strays = connection
        .all(strays, [STRAY], |row| Ok((get::<u64>(row, "link")?, row.get::<_, String>("row")?)))?;
    for (link, named) in strays {
        problems.add(Some(link), stray_problem(&named));
    }
    let sources = "SELECT DISTINCT source FROM audit_changes";
    for source in connection.all(sources, [], |row| row.get::<_, String>("source"))? {
        let is_known = |table: &str| table == source;
        if ![FLOOR, STRAY].into_iter().any(is_known) && !COVERED.iter().any(|it| is_known(it.name))
        {
            problems.add(None, ChainProblem::UnknownTable(source));
        }
    }
    Ok(())
}

/// The problem that an entry tells of, which names a table and a row.
pub(crate) fn stray_problem(named: &str) -> ChainProblem {
    let (table, row) = named.split_once(' ').unwrap_or(("", named));
    ChainProblem::RowStray { table: table.to_owned(), row: row.to_owned() }
}

/// The newest entry for each row of a table, with its link.
fn read_newest(
    connection: &Connection,
    table: &str,
) -> Result<BTreeMap<String, (u64, Option<Hash>)>, TxError> {
    let mut statement = connection.prepare_cached(sql!("changes_newest"))?;
    let mut rows = statement.query([table])?;
    let mut newest = BTreeMap::new();
    while let Some(row) = rows.next()? {
        newest.insert(row.get("row")?, (get(row, "link")?, maybe(row, "sha256")?));
    }
    Ok(newest)
}

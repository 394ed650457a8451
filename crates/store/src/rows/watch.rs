//! Sees which covered rows a transaction changes, and what they held before.
//!
//! The triggers are the connection's own: what another program writes is seen by none, and
//! so is never taken for a write of this one.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use automaton_sqlite::chain::Hash;
use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::ValueRef;

use super::covered::Columns;
use crate::thread::sql;

/// Rows that a transaction changed, by the place of their table and their name, each with the
/// hash of its content before; `None` for a new row.
type TouchedRows = BTreeMap<(usize, String), Option<Hash>>;

/// Covered tables of the writer's connection, with the rows that the running job changed.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) tables: Vec<Columns>,
    touched: Mutex<TouchedRows>,
}

impl Watch {
    /// Makes triggers of this connection that note each change of a covered row.
    pub(crate) fn start(connection: &Connection) -> rusqlite::Result<Arc<Self>> {
        let tables = Columns::read_all(connection)?;
        let watch = Arc::new(Self { tables, touched: Mutex::default() });
        let seen = Arc::clone(&watch);
        let touch = move |call: &Context<'_>| seen.touch(call).map(|()| None::<i64>);
        connection.create_scalar_function("row_touched", -1, FunctionFlags::SQLITE_UTF8, touch)?;
        for (place, columns) in watch.tables.iter().enumerate() {
            connection.execute_batch(&trigger_statements(place, columns))?;
        }
        Ok(watch)
    }

    /// Forgets the touched rows of a job that failed.
    pub(crate) fn clear(&self) {
        self.lock_rows().clear();
    }

    /// Takes the rows that were touched since.
    pub(crate) fn take_touched(&self) -> TouchedRows {
        std::mem::take(&mut *self.lock_rows())
    }

    fn lock_rows(&self) -> MutexGuard<'_, TouchedRows> {
        // A job that panicked ends the writer: nobody goes on with what is in here.
        self.touched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a row: the place of its table, its name, and its columns where there was one. What
    /// it held before the transaction is known at its first change only.
    fn touch(&self, call: &Context<'_>) -> rusqlite::Result<()> {
        let place: usize = call.get(0)?;
        let row = match call.get_raw(1) {
            ValueRef::Integer(number) => number.to_string(),
            name => name.as_str()?.to_owned(),
        };
        let table =
            self.tables.get(place).ok_or(rusqlite::Error::InvalidParameterCount(place, 0))?;
        if let Entry::Vacant(first) = self.lock_rows().entry((place, row)) {
            let held = call.len() > 2;
            let before = held.then(|| table.hash(|at| Ok(call.get_raw(at + 2)))).transpose()?;
            first.insert(before);
        }
        Ok(())
    }
}

/// The triggers of a table.
fn trigger_statements(place: usize, columns: &Columns) -> String {
    let parts = [
        ("$table", columns.table.name.to_owned()),
        ("$place", place.to_string()),
        ("$of", columns.names.join(", ")),
        ("$held", columns.list("old")),
        ("$old", columns.row_id("old")),
        ("$new", columns.row_id("new")),
    ];
    let mut statements = sql!("row_triggers").to_owned();
    for (name, value) in parts {
        statements = statements.replace(name, &value);
    }
    statements
}

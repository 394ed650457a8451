//! The tables whose rows are covered, and the hash of a row.
//!
//! Every column of such a table counts but those that [`CoveredTable::left_out`] lists, so a
//! new column is covered without anybody's doing. A column that holds nothing leaves no
//! trace in the hash: a migration may add one that is empty.

use automaton_sqlite::chain::{CanonicalRow, Hash};
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::error::TxError;
use crate::thread::ConnectionExt;

/// A table whose rows the chain covers.
#[derive(Debug)]
pub(crate) struct CoveredTable {
    pub(crate) name: &'static str,
    /// The columns that name a row.
    key: &'static [&'static str],
    /// Columns that no hash has, each with the reason.
    pub(crate) left_out: &'static [(&'static str, &'static str)],
    /// Condition that covered rows fulfil; empty if all rows are covered.
    only: &'static str,
}

const RUN: &str = "where the next and the last run stand: thousands a day, in `heartbeat_history`";
const LINKED: &str = "the place of the decision or outcome in the chain, which is checked with it";

/// The covered tables.
pub(crate) const COVERED: [CoveredTable; 9] = [
    CoveredTable { name: "inbox_messages", key: &["seq"], left_out: &[], only: "" },
    CoveredTable { name: "turns", key: &["seq"], left_out: &[], only: "" },
    CoveredTable { name: "turn_inputs", key: &["turn", "ordinal"], left_out: &[], only: "" },
    CoveredTable { name: "prompt_parts", key: &["seq"], left_out: &[], only: "" },
    CoveredTable {
        name: "tool_calls",
        key: &["seq"],
        left_out: &[
            ("decided_link", LINKED),
            ("decided_sha256", LINKED),
            ("ended_link", LINKED),
            ("ended_sha256", LINKED),
        ],
        // Decision and outcome outlive the turn, and have links for ever.
        only: "EXISTS (SELECT 1 FROM turns WHERE turns.seq = tool_calls.turn)",
    },
    CoveredTable { name: "digests", key: &["upto"], left_out: &[], only: "" },
    CoveredTable { name: "session_summaries", key: &["upto"], left_out: &[], only: "" },
    CoveredTable { name: "memories", key: &["id"], left_out: &[], only: "" },
    CoveredTable {
        name: "heartbeat_schedule",
        key: &["name"],
        left_out: &[
            ("anchor_at", RUN),
            ("next_run_at", RUN),
            ("retry_at", RUN),
            ("attempt", RUN),
            ("last_run_at", RUN),
            ("last_result", RUN),
            ("last_note", RUN),
            ("runs", RUN),
            ("failures", RUN),
            ("failing", RUN),
            ("fence", RUN),
            ("lease_run", RUN),
            ("leased_at", RUN),
            ("leased_until", RUN),
        ],
        only: "",
    },
];

/// A covered table with the columns that the hash of its rows is of, in their order.
#[derive(Debug)]
pub(crate) struct Columns {
    pub(crate) table: &'static CoveredTable,
    pub(crate) names: Vec<String>,
}

impl Columns {
    /// Reads the columns of all covered tables.
    pub(crate) fn read_all(connection: &Connection) -> rusqlite::Result<Vec<Self>> {
        let read = |table: &'static CoveredTable| {
            let statement = "SELECT name FROM pragma_table_info(?1) ORDER BY cid";
            let names = connection.all(statement, [table.name], |row| row.get::<_, String>(0))?;
            let covered = |name: &String| !table.left_out.iter().any(|(out, _)| out == name);
            Ok(Self { table, names: names.into_iter().filter(covered).collect() })
        };
        COVERED.iter().map(read).collect()
    }

    /// The expression that names a row, of the table or of `old` or `new` in a trigger.
    pub(crate) fn row_id(&self, of: &str) -> String {
        let columns: Vec<_> = self.table.key.iter().map(|key| format!("{of}.{key}")).collect();
        columns.join(" || '/' || ")
    }

    /// The covered columns, of the table or of `old` in a trigger.
    pub(crate) fn list(&self, of: &str) -> String {
        let columns: Vec<_> = self.names.iter().map(|name| format!("{of}.{name}")).collect();
        columns.join(", ")
    }

    /// The statement that reads the columns of one covered row.
    pub(crate) fn select_one(&self) -> String {
        let name = self.table.name;
        let by_key = match self.table.key {
            [one] => format!("{name}.{one} = ?1"),
            keys => {
                let first = "substr(?1, 1, instr(?1, '/') - 1)";
                let second = "substr(?1, instr(?1, '/') + 1)";
                let parts = keys.iter().zip([first, second]);
                let tests: Vec<_> = parts
                    .map(|(key, part)| format!("{name}.{key} = CAST({part} AS INTEGER)"))
                    .collect();
                tests.join(" AND ")
            }
        };
        let and = if self.table.only.is_empty() { "" } else { " AND " };
        format!("SELECT {} FROM {name} WHERE {by_key}{and}{}", self.list(name), self.table.only)
    }

    /// The statement that reads the name and the columns of each covered row.
    fn select_all(&self) -> String {
        let name = self.table.name;
        let id = self.row_id(name);
        let list = self.list(name);
        let only = if self.table.only.is_empty() { "TRUE" } else { self.table.only };
        format!("SELECT CAST({id} AS TEXT), {list} FROM {name} WHERE {only}")
    }

    /// Returns the hash of a covered row as it is now; `None` if there is no such row.
    pub(crate) fn hash_of(
        &self,
        connection: &Connection,
        row: &str,
    ) -> rusqlite::Result<Option<Hash>> {
        connection.one(&self.select_one(), [row], |found| self.hash(|at| found.get_ref(at)))
    }

    /// Goes through all covered rows: the name and the hash of each.
    pub(crate) fn each_row(
        &self,
        connection: &Connection,
        mut each: impl FnMut(String, Hash),
    ) -> Result<(), TxError> {
        let mut statement = connection.prepare(&self.select_all())?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            each(row.get(0)?, self.hash(|at| row.get_ref(at + 1))?);
        }
        Ok(())
    }

    /// The hash of a row, of which `value` gives each covered column by its place.
    pub(crate) fn hash<'a>(
        &self,
        mut value: impl FnMut(usize) -> rusqlite::Result<ValueRef<'a>>,
    ) -> rusqlite::Result<Hash> {
        let mut row = CanonicalRow::new(self.table.name);
        for (at, name) in self.names.iter().enumerate() {
            let value = value(at)?;
            if value == ValueRef::Null {
                continue;
            }
            row = add_value(row.text(name), value);
        }
        Ok(row.hash())
    }
}

/// Adds the value of a column to an encoding.
pub(crate) fn add_value(row: CanonicalRow, value: ValueRef<'_>) -> CanonicalRow {
    match value {
        ValueRef::Null => row.maybe(None),
        ValueRef::Integer(number) => row.int(number),
        ValueRef::Text(text) => match std::str::from_utf8(text) {
            Ok(text) => row.text(text),
            // The program writes no such text: bytes tell it apart from every one that it writes.
            Err(_) => row.bytes(text),
        },
        // No column of the audit is a real number.
        ValueRef::Real(number) => row.bytes(&number.to_be_bytes()),
        ValueRef::Blob(bytes) => row.bytes(bytes),
    }
}

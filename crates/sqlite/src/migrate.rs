//! Brings a database to the version of this program, one step a transaction.
//!
//! The version is SQLite's `user_version`, set in the transaction of the step, so a
//! step happened wholly or not at all; whose version it is says the `application_id`.
//! A file without one is from before the schemas were folded into one step each: it
//! must never be migrated. A migration that was ever released must never be changed.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use crate::error::SqliteError;

/// One step of a schema.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    version: u32,
    name: &'static str,
    sql: &'static str,
}

impl Migration {
    /// The step to `version` (one more each; what is older than the first has an old form),
    /// what it does in a word or two, and its statements.
    pub const fn new(version: u32, name: &'static str, sql: &'static str) -> Self {
        Self { version, name, sql }
    }
}

/// One kind of database: how its files are told from all others, and its schema.
#[derive(Debug, Clone, Copy)]
pub struct Schema {
    id: i32,
    migrations: &'static [Migration],
    carried: Option<u32>,
}

impl Schema {
    /// The databases that have this `application_id` (not 0), and the steps to their schema.
    pub const fn new(id: i32, migrations: &'static [Migration]) -> Self {
        Self { id, migrations, carried: None }
    }

    /// Takes over a file from before there were ids, too, if it has this version: its tables
    /// are those of version 1.
    #[must_use]
    pub const fn carrying(self, version: u32) -> Self {
        Self { carried: Some(version), ..self }
    }

    /// The newest version; 0 when there are no migrations.
    pub(crate) fn newest(&self) -> u32 {
        self.migrations.iter().map(|step| step.version).max().unwrap_or(0)
    }

    /// The oldest version that is read.
    fn oldest(&self) -> u32 {
        self.migrations.first().map_or(1, |step| step.version)
    }

    /// What a file is by its marks.
    pub(crate) fn kind(&self, marks: Marks) -> Kind {
        match marks {
            Marks { id, version } if id == self.id && version >= self.oldest() => {
                Kind::Ours(version)
            }
            Marks { id: 0, version: 0 } => Kind::Foreign,
            Marks { id: 0, version } if self.carried == Some(version) => Kind::Carried,
            Marks { id, version } if (id == 0 || id == self.id) && version > 0 => {
                Kind::Old { version, carried: self.carried }
            }
            Marks { .. } => Kind::Foreign,
        }
    }
}

/// What a file's header says of it: SQLite's `application_id` and `user_version`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Marks {
    id: i32,
    version: u32,
}

impl Marks {
    pub(crate) fn of(connection: &Connection) -> rusqlite::Result<Self> {
        let statement = "SELECT application_id, user_version \
                         FROM pragma_application_id, pragma_user_version";
        connection
            .query_row(statement, [], |row| Ok(Self { id: row.get(0)?, version: row.get(1)? }))
    }
}

/// What a file is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// One of the schema, at this version.
    Ours(u32),
    /// One of the old form that only lacks the id.
    Carried,
    /// One of the old form.
    Old { version: u32, carried: Option<u32> },
    /// One that somebody else made.
    Foreign,
}

/// Gives a file of the old form that is carried over its id.
pub(crate) fn carry(connection: &mut Connection, schema: &Schema) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Asked again under the lock: another process may have done it.
    if let Kind::Carried = schema.kind(Marks::of(&transaction)?) {
        mark(&transaction, schema, 1)?;
    }
    transaction.commit()
}

/// Runs the steps that the database has not seen.
pub(crate) fn migrate(
    connection: &mut Connection,
    path: &Path,
    schema: &Schema,
) -> Result<(), SqliteError> {
    for step in schema.migrations {
        run(connection, schema, step).map_err(|source| SqliteError::Migrate {
            path: path.to_owned(),
            version: step.version,
            name: step.name,
            source,
        })?;
    }
    Ok(())
}

/// Lists the triggers and views of a database that its schema does not have, or has otherwise.
/// The program's own statements set off such triggers.
///
/// # Errors
/// When SQLite fails.
#[expect(clippy::disallowed_methods, reason = "a database of no file has nothing to protect")]
pub fn foreign_triggers(connection: &Connection, schema: &Schema) -> rusqlite::Result<Vec<String>> {
    let made = Connection::open_in_memory()?;
    for step in schema.migrations {
        made.execute_batch(step.sql)?;
    }
    let own = triggers_and_views(&made)?;
    let found = triggers_and_views(connection)?;
    Ok(found.into_iter().filter(|one| !own.contains(one)).map(|(name, _)| name).collect())
}

/// The name and the definition of each trigger and view.
fn triggers_and_views(connection: &Connection) -> rusqlite::Result<Vec<(String, String)>> {
    let statement =
        "SELECT name, sql FROM main.sqlite_schema WHERE type IN ('trigger', 'view') ORDER BY name";
    let mut statement = connection.prepare(statement)?;
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

fn run(connection: &mut Connection, schema: &Schema, step: &Migration) -> rusqlite::Result<()> {
    if Marks::of(connection)?.version >= step.version {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Asked again under the lock: another process may have taken the step.
    if Marks::of(&transaction)?.version < step.version {
        transaction.execute_batch(step.sql)?;
        mark(&transaction, schema, step.version)?;
    }
    transaction.commit()
}

fn mark(connection: &Connection, schema: &Schema, version: u32) -> rusqlite::Result<()> {
    connection.pragma_update(None, "application_id", schema.id)?;
    connection.pragma_update(None, "user_version", version)
}

//! Migrates a database to the version of this program, one step a transaction.
//!
//! The version is SQLite's `user_version`, set in the step's transaction, so a step is applied
//! completely or not at all. The `application_id` tells the kind of database. A file without one
//! predates the schemas that were folded into one step each: it must never be migrated. A
//! released migration must never be changed.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use crate::error::SqliteError;

/// A step of a schema.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    version: u32,
    name: &'static str,
    sql: &'static str,
}

impl Migration {
    /// Creates the step to `version`. Each step's version is one higher, and anything older than
    /// the first has the old form. `name` describes the step in a word or two.
    pub const fn new(version: u32, name: &'static str, sql: &'static str) -> Self {
        Self { version, name, sql }
    }
}

/// A kind of database: its file identification and its schema.
#[derive(Debug, Clone, Copy)]
pub struct Schema {
    id: i32,
    migrations: &'static [Migration],
    carried: Option<u32>,
}

impl Schema {
    /// Creates a schema for databases with this `application_id` (not 0), with its steps.
    pub const fn new(id: i32, migrations: &'static [Migration]) -> Self {
        Self { id, migrations, carried: None }
    }

    /// Also accepts a file without an id that has this version. Its tables are those of version
    /// 1.
    #[must_use]
    pub const fn carrying(self, version: u32) -> Self {
        Self { carried: Some(version), ..self }
    }

    /// Returns the newest version, or 0 if there are no migrations.
    pub(crate) fn newest(&self) -> u32 {
        self.migrations.iter().map(|step| step.version).max().unwrap_or(0)
    }

    /// Returns the oldest version that is read.
    fn oldest(&self) -> u32 {
        self.migrations.first().map_or(1, |step| step.version)
    }

    /// Returns the kind of a file with these marks.
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

/// The marks in a file's header: SQLite's `application_id` and `user_version`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Marks {
    id: i32,
    version: u32,
}

impl Marks {
    pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let statement = "SELECT application_id, user_version \
                         FROM pragma_application_id, pragma_user_version";
        connection
            .query_row(statement, [], |row| Ok(Self { id: row.get(0)?, version: row.get(1)? }))
    }
}

/// The kind of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// A database of the schema, at this version.
    Ours(u32),
    /// A database of the old form that only lacks the id.
    Carried,
    /// A database of the old form.
    Old { version: u32, carried: Option<u32> },
    /// A database of another program.
    Foreign,
}

/// Adds the id to a file of the old form that is carried over.
pub(crate) fn carry(connection: &mut Connection, schema: &Schema) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Checked again under the lock, since another process may have done it.
    if let Kind::Carried = schema.kind(Marks::read(&transaction)?) {
        set_marks(&transaction, schema, 1)?;
    }
    transaction.commit()
}

/// Applies the missing steps.
pub(crate) fn migrate(
    connection: &mut Connection,
    path: &Path,
    schema: &Schema,
) -> Result<(), SqliteError> {
    for step in schema.migrations {
        apply_step(connection, schema, step).map_err(|source| SqliteError::Migrate {
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

fn apply_step(
    connection: &mut Connection,
    schema: &Schema,
    step: &Migration,
) -> rusqlite::Result<()> {
    if Marks::read(connection)?.version >= step.version {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Checked again under the lock, since another process may have applied the step.
    if Marks::read(&transaction)?.version < step.version {
        transaction.execute_batch(step.sql)?;
        set_marks(&transaction, schema, step.version)?;
    }
    transaction.commit()
}

fn set_marks(connection: &Connection, schema: &Schema, version: u32) -> rusqlite::Result<()> {
    connection.pragma_update(None, "application_id", schema.id)?;
    connection.pragma_update(None, "user_version", version)
}

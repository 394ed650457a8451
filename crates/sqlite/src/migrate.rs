//! Brings a database to the version of this program, one step a transaction.
//!
//! The version is SQLite's `user_version`, set in the transaction of the step,
//! so a step happened wholly or not at all. A migration that was ever released
//! must never be changed.

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
    /// The step to `version` (1 for the first, then one more each), what it does in a
    /// word or two, and its statements.
    pub const fn new(version: u32, name: &'static str, sql: &'static str) -> Self {
        Self { version, name, sql }
    }
}

/// The newest version among the migrations; 0 when there are none.
pub(crate) fn newest(migrations: &[Migration]) -> u32 {
    migrations.iter().map(|step| step.version).max().unwrap_or(0)
}

/// The database's version.
pub(crate) fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Runs the steps that the database has not seen.
pub(crate) fn migrate(
    connection: &mut Connection,
    path: &Path,
    migrations: &[Migration],
) -> Result<(), SqliteError> {
    for step in migrations {
        run(connection, step).map_err(|source| SqliteError::Migrate {
            path: path.to_owned(),
            version: step.version,
            name: step.name,
            source,
        })?;
    }
    Ok(())
}

fn run(connection: &mut Connection, step: &Migration) -> rusqlite::Result<()> {
    if version(connection)? >= step.version {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Asked again under the lock: another process may have taken the step.
    if version(&transaction)? < step.version {
        transaction.execute_batch(step.sql)?;
        transaction.pragma_update(None, "user_version", step.version)?;
    }
    transaction.commit()
}

//! Copies a database while it is in use.
//!
//! The copy is a consistent state of the source, whatever is written meanwhile. It must never
//! replace an existing file.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags};

use crate::error::SqliteError;
use crate::open::{check, connect, sql};

/// The pages copied at a time. Others may write in between.
const PAGES_PER_STEP: std::ffi::c_int = 256;

/// Copies the database of a connection to a new file that only its owner can read. If the copy
/// fails, no file is left.
///
/// # Errors
/// Returns `File` if the target exists or cannot be created, and `Sql` if copying fails.
pub fn backup(from: &Connection, target: &Path) -> Result<(), SqliteError> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(target)
        .map_err(|source| SqliteError::File { verb: "make", path: target.to_owned(), source })?;
    let copied = copy(from, target);
    if copied.is_err() {
        // silent-ok: the caller gets the original error.
        fs::remove_file(target).ok();
    }
    copied
}

/// Copies a database of any schema by its path, as it is at one moment, however much others
/// write. Every page of the copy is checked for damage.
///
/// # Errors
/// As [`backup`], and `Corrupt` if the copy is damaged.
pub fn copy_database(from: &Path, target: &Path) -> Result<(), SqliteError> {
    let source = connect(from, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // A read transaction keeps other writers from restarting the copy.
    source
        .execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema;")
        .map_err(sql("read", from))?;
    backup(&source, target)?;
    check_database(target)
}

/// Checks every page of a database of any schema for damage.
///
/// # Errors
/// Returns `Corrupt` if it is damaged.
pub fn check_database(path: &Path) -> Result<(), SqliteError> {
    check(&connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?, path)
}

fn copy(from: &Connection, target: &Path) -> Result<(), SqliteError> {
    let mut to = connect(target, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    Backup::new(from, &mut to)
        .and_then(|backup| backup.run_to_completion(PAGES_PER_STEP, Duration::ZERO, None))
        .map_err(sql("back up to", target))
}

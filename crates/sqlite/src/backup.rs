//! Copies a database while it is in use.
//!
//! The copy is a consistent moment of the source, whatever is written meanwhile,
//! and must never replace a file that exists.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags};

use crate::error::SqliteError;
use crate::open::{check, connect, sql};

/// Pages copied at a time; in between, others may write.
const PAGES_PER_STEP: std::ffi::c_int = 256;

/// Copies the database behind a connection to a new file that only its owner
/// can read. A copy that fails leaves no file.
///
/// # Errors
/// `File` when the target exists or cannot be made, `Sql` when copying fails.
pub fn backup(from: &Connection, target: &Path) -> Result<(), SqliteError> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(target)
        .map_err(|source| SqliteError::File { verb: "make", path: target.to_owned(), source })?;
    let copied = copy(from, target);
    if copied.is_err() {
        // silent-ok: the error that led here is what the caller must learn.
        fs::remove_file(target).ok();
    }
    copied
}

/// The same for a database of any schema, by its path, as it is at one moment, however
/// much others write; every page of the copy is read for damage.
///
/// # Errors
/// As [`backup`], and `Corrupt` when the copy is damaged.
pub fn copy_database(from: &Path, target: &Path) -> Result<(), SqliteError> {
    let source = connect(from, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // Within a transaction that reads, nobody's writing makes the copy begin again.
    source
        .execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema;")
        .map_err(sql("read", from))?;
    backup(&source, target)?;
    check_database(target)
}

/// Reads every page of a database of any schema, for damage.
///
/// # Errors
/// `Corrupt` when it is damaged.
pub fn check_database(path: &Path) -> Result<(), SqliteError> {
    check(&connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?, path)
}

fn copy(from: &Connection, target: &Path) -> Result<(), SqliteError> {
    let mut to = connect(target, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    Backup::new(from, &mut to)
        .and_then(|backup| backup.run_to_completion(PAGES_PER_STEP, Duration::ZERO, None))
        .map_err(sql("back up to", target))
}

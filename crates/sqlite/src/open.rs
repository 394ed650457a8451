//! Opens databases: creates, checks and migrates them.
//!
//! A new database is created under another name and renamed when complete, so an empty file at
//! the path is always damage. A refused file must never be changed, not even by folding its log
//! into it.

use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::{SqliteError, SqliteErrorKind};
use crate::migrate::{Kind, Marks, Schema, carry, migrate};
use crate::place::place_new;

/// The time that a statement waits for another process that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The page size in bytes. Most rows are short, and a write copies each touched page into the
/// write-ahead log. Pages of 4 KiB would make that several times as much. Small pages also leave
/// less empty space beside a long row.
const PAGE_BYTES: u32 = 512;

/// The pages of the write-ahead log after which it is folded back: 4 MiB.
const CHECKPOINT_PAGES: u32 = 8192;

/// Opens the database for writing. Creates it if it is missing, and migrates it if it is older.
/// Checks every page only if [`ended_well`] is false. Uses a write-ahead log, foreign keys and
/// `synchronous=NORMAL`: a commit survives the death of the process, and
/// [`crate::CommitDurability`] can add the death of the machine. Only the owner can read the
/// files.
///
/// # Errors
/// Any [`SqliteError`] except `Missing` and `Older`.
pub fn open(path: &Path, schema: &Schema) -> Result<Connection, SqliteError> {
    let clean = ended_well(path);
    if !exists(path)? {
        create(path, schema)?;
    }
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let found = read_header(&connection, path, schema)?;
    if !clean {
        check(&connection, path)?;
    }
    protect(path)?;
    configure(&connection).map_err(sql("configure", path))?;
    let version = match found {
        Found::Version(version) => version,
        Found::Carried => {
            carry(&mut connection, schema).map_err(sql("carry over", path))?;
            1
        }
    };
    if version < schema.newest() {
        migrate(&mut connection, path, schema)?;
    }
    Ok(connection)
}

/// Opens the database for reading. Never creates, changes or migrates it.
///
/// # Errors
/// Returns `Missing`, `Older`, and the errors of [`open`].
pub fn open_read_only(path: &Path, schema: &Schema) -> Result<Connection, SqliteError> {
    if !exists(path)? {
        return Err(SqliteError::Missing { path: path.to_owned() });
    }
    // A log can only be read through its shared index, which must be writable. `query_only`
    // refuses every write of this connection instead.
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let known = schema.newest();
    let found = match read_header(&connection, path, schema)? {
        Found::Version(version) => version,
        Found::Carried => 0,
    };
    if found < known {
        return Err(SqliteError::Older { path: path.to_owned(), found, known });
    }
    connection.pragma_update(None, "query_only", true).map_err(sql("configure", path))?;
    Ok(connection)
}

/// Returns true if the log is empty, as [`checkpoint`] and the last closing connection leave it.
/// SQLite writes to the file itself only from a log that is on disk with its name, so a program
/// that dies while writing leaves a log with content. So does a program that is still writing.
#[must_use]
pub fn ended_well(path: &Path) -> bool {
    !fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > 0)
}

/// Folds the log back into the file and empties it. While others read, it does as much as
/// possible.
///
/// # Errors
/// Fails if SQLite fails.
pub fn checkpoint(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// Runs work with `synchronous=FULL`: its committed transactions are on disk when it returns. The
/// log is synced as a whole, so every earlier commit is on disk then too. The work must not be
/// inside a transaction. The mode applies to one connection, since with a second one each would
/// drop its cached pages whenever the other has written.
pub(crate) fn with_full_sync<T, E: From<rusqlite::Error>>(
    connection: &mut Connection,
    work: impl FnOnce(&mut Connection) -> Result<T, E>,
) -> Result<T, E> {
    connection.pragma_update(None, "synchronous", "FULL")?;
    let done = work(connection);
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    done
}

#[expect(clippy::disallowed_methods, reason = "the one place that opens a database")]
pub(crate) fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, SqliteError> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .map_err(sql("open", path))?;
    // Until the file is known to be ours, closing must not fold the log into it.
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        // Otherwise a plan that depends on the bound values would be recompiled for each of them.
        .and_then(|_| connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true))
        .and_then(|_| connection.busy_timeout(BUSY_TIMEOUT))
        .map_err(sql("open", path))?;
    Ok(connection)
}

fn exists(path: &Path) -> Result<bool, SqliteError> {
    let found = path.try_exists().map_err(|source| SqliteError::File {
        verb: "find",
        path: path.to_owned(),
        source,
    })?;
    // A refused file may leave an empty log beside it, which contains nothing.
    if !found && fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > 0) {
        return Err(SqliteError::Orphaned { path: path.to_owned() });
    }
    Ok(found)
}

/// Creates a migrated database under another name, then renames it. Renaming fails if another
/// process was faster. Its database is equally good.
fn create(path: &Path, schema: &Schema) -> Result<(), SqliteError> {
    let draft = beside(path, &format!(".new-{}", std::process::id()));
    let made = build_draft(&draft, schema).and_then(|()| {
        match place_new(&draft, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => sync_directory(path),
            placed => placed,
        }
        .map_err(|source| SqliteError::File {
            verb: "make",
            path: path.to_owned(),
            source,
        })
    });
    for end in ["", "-wal", "-shm"] {
        // silent-ok: a leftover draft disturbs nothing.
        fs::remove_file(beside(&draft, end)).ok();
    }
    made
}

fn build_draft(draft: &Path, schema: &Schema) -> Result<(), SqliteError> {
    // SQLite gives the log and the index the mode of the database.
    let made = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(draft);
    let file =
        made.map_err(|source| SqliteError::File { verb: "make", path: draft.to_owned(), source })?;
    let mut connection = connect(draft, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // Nobody reads a draft, so it is synced once, at the end.
    connection
        .pragma_update(None, "page_size", PAGE_BYTES)
        .and_then(|()| connection.pragma_update(None, "journal_mode", "MEMORY"))
        .and_then(|()| connection.pragma_update(None, "synchronous", "OFF"))
        .map_err(sql("make", draft))?;
    migrate(&mut connection, draft, schema)?;
    connection
        .pragma_update(None, "journal_mode", "WAL")
        .and_then(|()| connection.close().map_err(|(_, error)| error))
        .map_err(sql("make", draft))?;
    file.sync_all().map_err(|source| SqliteError::File {
        verb: "make",
        path: draft.to_owned(),
        source,
    })
}

fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    fs::File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

/// The result of reading a file's header.
enum Found {
    /// A database of the schema, at this version.
    Version(u32),
    /// A database of the old form that is carried over.
    Carried,
}

/// Reads the kind and version of a database, and refuses other databases. Changes nothing.
fn read_header(
    connection: &Connection,
    path: &Path,
    schema: &Schema,
) -> Result<Found, SqliteError> {
    let path_owned = || path.to_owned();
    let marks = Marks::read(connection).map_err(|source| match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => SqliteError::NotADatabase { path: path_owned() },
        Some(ErrorCode::DatabaseCorrupt) => {
            SqliteError::Corrupt { path: path_owned(), detail: source.to_string() }
        }
        Some(_) | None => sql("read", path)(source),
    })?;
    let known = schema.newest();
    match schema.kind(marks) {
        Kind::Ours(found) if found > known => {
            Err(SqliteError::Newer { path: path_owned(), found, known })
        }
        Kind::Ours(found) => Ok(Found::Version(found)),
        Kind::Carried => Ok(Found::Carried),
        Kind::Old { version, carried } => {
            Err(SqliteError::OldForm { path: path_owned(), version, carried })
        }
        Kind::Foreign if fs::metadata(path).is_ok_and(|file| file.len() == 0) => {
            let detail = "the file is empty".to_owned();
            Err(SqliteError::Corrupt { path: path_owned(), detail })
        }
        Kind::Foreign => Err(SqliteError::Foreign { path: path_owned() }),
    }
}

/// Checks every page for damage.
pub(crate) fn check(connection: &Connection, path: &Path) -> Result<(), SqliteError> {
    let corrupt = |detail| SqliteError::Corrupt { path: path.to_owned(), detail };
    let verdict = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    match verdict {
        Ok(verdict) if verdict == "ok" => Ok(()),
        Ok(verdict) => Err(corrupt(verdict)),
        Err(error) if SqliteErrorKind::from_error(&error) == SqliteErrorKind::Damaged => {
            Err(corrupt(error.to_string()))
        }
        Err(error) => Err(sql("check", path)(error)),
    }
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    // A view or trigger in the file must not be able to call harmful functions.
    connection.pragma_update(None, "trusted_schema", false)
}

fn protect(path: &Path) -> Result<(), SqliteError> {
    for file in [path.to_owned(), beside(path, "-wal"), beside(path, "-shm")] {
        let open_to_others = fs::metadata(&file).is_ok_and(|m| m.permissions().mode() & 0o077 != 0);
        if open_to_others {
            fs::set_permissions(&file, Permissions::from_mode(0o600)).map_err(|source| {
                SqliteError::File { verb: "protect", path: file.clone(), source }
            })?;
        }
    }
    Ok(())
}

pub(crate) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

pub(crate) fn sql(verb: &'static str, path: &Path) -> impl FnOnce(rusqlite::Error) -> SqliteError {
    let path = path.to_owned();
    move |source| SqliteError::Sql { verb, path, source }
}

//! Opens databases: makes, checks, migrates.
//!
//! A new database is made under another name and put in its place whole, so an
//! empty file at the path is always damage and never a birth. A file that is
//! refused must never be changed, not even by folding its log into it.

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

/// How long a statement waits for another process that is writing.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The size of a page in bytes. Most rows are short, and a write copies each page that it
/// touches into the write-ahead log: with pages of 4 KiB that is several times as much. Less of
/// a page is left empty beside a long row, too.
const PAGE_BYTES: u32 = 512;

/// Pages of the write-ahead log after which it is folded back: 4 MiB.
const CHECKPOINT_PAGES: u32 = 8192;

/// Opens the database for writing; makes it when it is missing, migrates it when
/// it is older. Reads every page only when [`ended_well`] says no. Write-ahead log, foreign keys on, `synchronous=NORMAL`: a
/// commit survives the death of the process, [`crate::CommitDurability`] adds the death
/// of the machine. Only the owner can read the files.
///
/// # Errors
/// Everything in [`SqliteError`] but `Missing` and `Older`.
pub fn open(path: &Path, schema: &Schema) -> Result<Connection, SqliteError> {
    let clean = ended_well(path);
    if !exists(path)? {
        create(path, schema)?;
    }
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let found = header(&connection, path, schema)?;
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

/// Opens the database for reading. Never makes, changes or migrates it.
///
/// # Errors
/// `Missing`, `Older`, and what [`open`] has.
pub fn open_read_only(path: &Path, schema: &Schema) -> Result<Connection, SqliteError> {
    if !exists(path)? {
        return Err(SqliteError::Missing { path: path.to_owned() });
    }
    // A log can only be read through its shared index, which must be writable;
    // `query_only` refuses every write of this connection instead.
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let known = schema.newest();
    let found = match header(&connection, path, schema)? {
        Found::Version(version) => version,
        Found::Carried => 0,
    };
    if found < known {
        return Err(SqliteError::Older { path: path.to_owned(), found, known });
    }
    connection.pragma_update(None, "query_only", true).map_err(sql("configure", path))?;
    Ok(connection)
}

/// Whether nothing waits in the log, as [`checkpoint`] and the last connection that closes
/// leave it. SQLite writes to the file itself only from a log that is on the disk, with its
/// name, so that whatever cut a program off while it wrote there, a full log is left behind.
/// A log of somebody who still writes is full, too.
#[must_use]
pub fn ended_well(path: &Path) -> bool {
    !fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > 0)
}

/// Folds the log back into the file and empties it; does what it can while others read.
///
/// # Errors
/// When SQLite fails.
pub fn checkpoint(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// Does some work with `synchronous=FULL`: a transaction that commits in it is
/// on the disk when it returns. The log is synced as a whole, so every earlier
/// commit is on the disk then, too. The work must not be inside a transaction. The mode is
/// that of the one connection: a second one would make each forget its pages whenever the
/// other has written.
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
        // A plan that hangs on the bound values would be made anew for each of them.
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
    // An empty log is what a refused file leaves beside it, and holds nothing.
    if !found && fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > 0) {
        return Err(SqliteError::Orphaned { path: path.to_owned() });
    }
    Ok(found)
}

/// Makes a migrated database under another name, then gives it its own. That fails when another
/// process was faster, whose database is as good.
fn create(path: &Path, schema: &Schema) -> Result<(), SqliteError> {
    let draft = beside(path, &format!(".new-{}", std::process::id()));
    let made = draw_up(&draft, schema).and_then(|()| {
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
        // silent-ok: a draft that stays behind is in nobody's way.
        fs::remove_file(beside(&draft, end)).ok();
    }
    made
}

fn draw_up(draft: &Path, schema: &Schema) -> Result<(), SqliteError> {
    // SQLite gives the log and the index the mode of the database.
    let made = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(draft);
    let file =
        made.map_err(|source| SqliteError::File { verb: "make", path: draft.to_owned(), source })?;
    let mut connection = connect(draft, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // Whatever happens to a draft, nobody reads it: it is synced once, as a whole.
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

/// What a file turned out to be.
enum Found {
    /// A database of the schema, at this version.
    Version(u32),
    /// One of the old form that is carried over.
    Carried,
}

/// Reads whose database it is and its version, and refuses what is not ours; changes nothing.
fn header(connection: &Connection, path: &Path, schema: &Schema) -> Result<Found, SqliteError> {
    let path_owned = || path.to_owned();
    let marks = Marks::of(connection).map_err(|source| match source.sqlite_error_code() {
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

/// Reads every page, for damage.
pub(crate) fn check(connection: &Connection, path: &Path) -> Result<(), SqliteError> {
    let corrupt = |detail| SqliteError::Corrupt { path: path.to_owned(), detail };
    let verdict = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    match verdict {
        Ok(verdict) if verdict == "ok" => Ok(()),
        Ok(verdict) => Err(corrupt(verdict)),
        Err(error) if SqliteErrorKind::of(&error) == SqliteErrorKind::Damaged => {
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
    // A view or trigger in the file must not be able to call what is not harmless.
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

//! Tests of opening, refusing, migrating and copying databases, with real files.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use automaton_core::error::{Classified, ErrorClass};
use automaton_sqlite::{
    Migration, Schema, SqliteError, backup, checkpoint, ended_well, open, open_read_only,
    write_synced,
};

const FIRST: Migration = Migration::new(1, "init", "CREATE TABLE t (x INTEGER NOT NULL) STRICT;");
const SECOND: Migration = Migration::new(2, "more", "ALTER TABLE t ADD COLUMN y TEXT;");
const ONE: Schema = Schema::new(7, &[FIRST]);
const BOTH: Schema = Schema::new(7, &[FIRST, SECOND]);

fn home() -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("state.db");
    (home, path)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn count(connection: &rusqlite::Connection) -> i64 {
    connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
}

/// Asserts that opening fails, and that the file and its log are unchanged.
fn refused(path: &Path, schema: &Schema) -> SqliteError {
    let log = PathBuf::from(format!("{}-wal", path.display()));
    let bytes = || (fs::read(path).unwrap(), fs::read(&log).unwrap_or_default());
    let before = bytes();
    let error = open(path, schema).unwrap_err();
    assert!(open_read_only(path, schema).is_err() || matches!(error, SqliteError::Corrupt { .. }));
    assert!(bytes() == before, "a byte changed: {error}");
    error
}

#[test]
fn a_new_database_is_private_and_leaves_no_draft() {
    let (home, path) = home();
    let connection = open(&path, &ONE).unwrap();
    connection.execute("INSERT INTO t VALUES (1)", []).unwrap();
    for end in ["", "-wal", "-shm"] {
        assert_eq!(mode(&PathBuf::from(format!("{}{end}", path.display()))), 0o600, "{end}");
    }
    let mut names: Vec<_> =
        fs::read_dir(home.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["state.db", "state.db-shm", "state.db-wal"]);
}

#[test]
fn the_pragmas_hold() {
    let (_home, path) = home();
    let mut connection = open(&path, &ONE).unwrap();
    let ask = |c: &rusqlite::Connection, name: &str| {
        c.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, rusqlite::types::Value>(0))
            .unwrap()
    };
    assert_eq!(ask(&connection, "journal_mode"), "wal".to_owned().into());
    assert_eq!(ask(&connection, "page_size"), 512.into());
    assert_eq!(ask(&connection, "foreign_keys"), 1.into());
    assert_eq!(ask(&connection, "busy_timeout"), 5000.into());
    assert_eq!(ask(&connection, "synchronous"), 1.into());
    let inside: rusqlite::Result<_> = write_synced(&mut connection, |c| Ok(ask(c, "synchronous")));
    assert_eq!(inside.unwrap(), 2.into());
    assert_eq!(ask(&connection, "synchronous"), 1.into());
    let failed = write_synced(&mut connection, |c| {
        c.execute("INSERT INTO t VALUES (1)", [])?;
        Err::<(), _>(rusqlite::Error::InvalidQuery)
    });
    assert_eq!(failed, Err(rusqlite::Error::InvalidQuery));
    assert_eq!(ask(&connection, "synchronous"), 1.into(), "a failure puts the mode back, too");
    assert_eq!(count(&connection), 0);
}

#[test]
fn an_older_database_is_migrated_and_keeps_its_rows() {
    let (_home, path) = home();
    open(&path, &ONE).unwrap().execute("INSERT INTO t VALUES (1)", []).unwrap();
    let error = open_read_only(&path, &BOTH).unwrap_err();
    assert!(matches!(error, SqliteError::Older { found: 1, known: 2, .. }), "{error}");
    let connection = open(&path, &BOTH).unwrap();
    connection.execute("INSERT INTO t VALUES (2, 'two')", []).unwrap();
    assert_eq!(count(&connection), 2);
}

#[test]
fn a_failing_step_leaves_the_version_before_it() {
    let (_home, path) = home();
    drop(open(&path, &ONE).unwrap());
    const BROKEN: Migration = Migration::new(2, "broken", "CREATE TABLE u (x); NONSENSE;");
    let error = open(&path, &Schema::new(7, &[FIRST, BROKEN])).unwrap_err();
    assert!(error.to_string().ends_with("to version 2 (broken)"), "{error}");
    let connection = open(&path, &ONE).unwrap();
    assert!(connection.prepare("SELECT * FROM u").is_err(), "half of the step stayed");
}

#[test]
fn a_newer_database_is_refused_with_both_versions_even_with_a_hot_log() {
    let (_home, path) = home();
    let newer = open(&path, &BOTH).unwrap();
    newer.execute("INSERT INTO t VALUES (1, 'kept')", []).unwrap();
    let error = refused(&path, &ONE);
    assert!(error.to_string().contains("version 2") && error.to_string().ends_with("up to 1"));
    assert_eq!(error.kind(), ErrorClass::User);
    assert!(error.hint().unwrap().contains("newer program"));
    assert_eq!(count(&newer), 1);
}

#[test]
fn what_is_no_database_of_ours_is_refused_and_left_alone() {
    let (home, path) = home();
    fs::write(&path, "this is a letter, not a database ".repeat(300)).unwrap();
    assert!(matches!(refused(&path, &ONE), SqliteError::NotADatabase { .. }));

    fs::write(&path, "").unwrap();
    let error = refused(&path, &ONE);
    assert!(error.to_string().ends_with("is damaged: the file is empty"), "{error}");

    // A file without marks, and a database of another kind.
    for marks in ["PRAGMA application_id = 0; PRAGMA user_version = 0", "PRAGMA application_id = 8"]
    {
        let other = home.path().join("other.db");
        let connection = open(&other, &ONE).unwrap();
        connection.execute_batch(marks).unwrap();
        connection.close().unwrap();
        assert!(matches!(refused(&other, &ONE), SqliteError::Foreign { .. }), "{marks}");
        fs::remove_file(&other).unwrap();
    }
}

/// Turns a file into one from before the first release.
fn make_old(path: &Path, version: u32) {
    let connection = open(path, &ONE).unwrap();
    connection.execute("INSERT INTO t VALUES (1)", []).unwrap();
    connection.pragma_update(None, "application_id", 0).unwrap();
    connection.pragma_update(None, "user_version", version).unwrap();
    connection.close().unwrap();
}

#[test]
fn the_old_form_is_refused_with_what_to_do_and_left_alone() {
    let (_home, path) = home();
    make_old(&path, 22);
    let error = refused(&path, &BOTH);
    assert!(error.to_string().contains("has the old form 22, from before the first release"));
    assert_eq!(error.kind(), ErrorClass::User);
    let hint = error.hint().unwrap();
    let moved = format!("To begin anew, move {} into another folder", path.display());
    assert!(hint.starts_with(&moved) && hint.contains("left as it is"), "{hint}");
    let (_home, path) = home();
    drop(open(&path, &ONE).unwrap());
    let folded = Schema::new(7, &[SECOND]);
    assert!(matches!(refused(&path, &folded), SqliteError::OldForm { version: 1, .. }));
}

#[test]
fn the_old_form_that_is_carried_over_keeps_its_rows_and_is_migrated() {
    let (_home, path) = home();
    make_old(&path, 5);
    let carrying = BOTH.carrying(5);
    let error = open_read_only(&path, &carrying).unwrap_err();
    assert!(matches!(error, SqliteError::Older { known: 2, .. }), "a reader changes nothing");
    for rows in [2, 3] {
        let connection = open(&path, &carrying).unwrap();
        connection.execute("INSERT INTO t VALUES (2, 'two')", []).unwrap();
        assert_eq!(count(&connection), rows);
    }
    let (_home, older) = home();
    make_old(&older, 4);
    let hint = refused(&older, &carrying).hint().unwrap();
    assert!(hint.contains("writes version 5") && hint.contains("Do not delete it"), "{hint}");
}

#[test]
fn a_truncated_database_is_refused_and_left_alone() {
    let (home, path) = home();
    let connection = open(&path, &ONE).unwrap();
    for x in 0..5000 {
        connection.execute("INSERT INTO t VALUES (?1)", [x * 1_000_000_007_i64]).unwrap();
    }
    connection.close().unwrap();
    let whole = fs::read(&path).unwrap();
    for cut in [600, 4096, whole.len() / 2, whole.len() - 4096] {
        let damaged = home.path().join(format!("cut-{cut}.db"));
        fs::write(&damaged, &whole[..cut]).unwrap();
        let error = refused(&damaged, &ONE);
        assert!(matches!(error, SqliteError::Corrupt { .. }), "{cut}: {error:?}");
        assert!(error.hint().unwrap().contains("left as it is"));
    }
}

/// Creates a database with some pages, as a killed program leaves it.
fn torn(home: &Path) -> PathBuf {
    let path = home.join("state.db");
    let copy = home.join("torn.db");
    let connection = open(&path, &ONE).unwrap();
    for x in 0..5000 {
        connection.execute("INSERT INTO t VALUES (?1)", [x * 1_000_000_007_i64]).unwrap();
    }
    checkpoint(&connection).unwrap();
    assert!(ended_well(&path), "a log that is folded back is empty");
    connection.execute("INSERT INTO t VALUES (1)", []).unwrap();
    assert!(!ended_well(&path), "who still writes has not ended");
    for end in ["", "-wal"] {
        fs::copy(home.join(format!("state.db{end}")), home.join(format!("torn.db{end}"))).unwrap();
    }
    connection.close().unwrap();
    assert!(ended_well(&path));
    copy
}

/// Overwrites a page with garbage.
fn scribble(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    bytes[8192..12288].fill(0xa5);
    fs::write(path, bytes).unwrap();
}

#[test]
fn every_page_is_read_after_an_end_that_was_none_and_only_then() {
    let home = tempfile::tempdir().unwrap();
    let torn = torn(home.path());
    scribble(&torn);
    assert!(!ended_well(&torn));
    assert!(matches!(refused(&torn, &ONE), SqliteError::Corrupt { .. }));
    // Later damage is detected when the page is read.
    let clean = home.path().join("state.db");
    scribble(&clean);
    let connection = open(&clean, &ONE).unwrap();
    let read = connection.query_row("SELECT sum(x) FROM t", [], |row| row.get::<_, i64>(0));
    assert!(read.is_err());
}

#[test]
fn a_reader_that_stays_makes_no_bad_end_of_a_good_one() {
    let (_home, path) = home();
    let connection = open(&path, &ONE).unwrap();
    connection.execute("INSERT INTO t VALUES (1)", []).unwrap();
    let reader = open_read_only(&path, &ONE).unwrap();
    assert_eq!(count(&reader), 1);
    checkpoint(&connection).unwrap();
    connection.close().unwrap();
    assert!(ended_well(&path));
    drop(reader);
    assert!(ended_well(&path));
    assert_eq!(count(&open(&path, &ONE).unwrap()), 1);
}

#[test]
fn a_refused_file_that_is_moved_away_makes_room_for_a_new_one() {
    let (_home, path) = home();
    fs::write(&path, "").unwrap();
    refused(&path, &ONE);
    fs::rename(&path, path.with_extension("moved")).unwrap();
    open(&path, &ONE).unwrap();
}

#[test]
fn a_log_without_its_database_is_no_birth() {
    let (_home, path) = home();
    let connection = open(&path, &ONE).unwrap();
    connection.execute("INSERT INTO t VALUES (1)", []).unwrap();
    fs::rename(&path, path.with_extension("moved")).unwrap();
    assert!(matches!(open(&path, &ONE), Err(SqliteError::Orphaned { .. })));
    assert!(!path.exists());
}

#[test]
fn a_reader_needs_a_database_and_cannot_write() {
    let (_home, path) = home();
    assert!(matches!(open_read_only(&path, &ONE), Err(SqliteError::Missing { .. })));
    assert!(!path.exists());
    let writer = open(&path, &ONE).unwrap();
    let reader = open_read_only(&path, &ONE).unwrap();
    writer.execute("INSERT INTO t VALUES (1)", []).unwrap();
    assert_eq!(count(&reader), 1, "a reader sees what is only in the log");
    assert!(reader.execute("INSERT INTO t VALUES (2)", []).is_err());
}

#[test]
fn a_loose_file_is_made_private() {
    let (_home, path) = home();
    drop(open(&path, &ONE).unwrap());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    drop(open(&path, &ONE).unwrap());
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn a_backup_is_whole_private_and_replaces_nothing() {
    let (home, path) = home();
    let connection = open(&path, &ONE).unwrap();
    connection.execute("INSERT INTO t VALUES (1)", []).unwrap();
    let target = home.path().join("copy.db");
    backup(&connection, &target).unwrap();
    assert_eq!(mode(&target), 0o600);
    assert_eq!(count(&open(&target, &ONE).unwrap()), 1);
    let error = backup(&connection, &target).unwrap_err();
    assert!(matches!(error, SqliteError::File { verb: "make", .. }), "{error}");
    assert_eq!(count(&open(&target, &ONE).unwrap()), 1);
}

//! What the store does with files that are not as it left them, and with others
//! that write the same file.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use automaton_core::error::{Classified, ErrorClass, chain};
use automaton_core::faults::FaultPoint;
use automaton_core::soul::{Soul, SoulChange, SoulSource};
use automaton_core::trust::Label;
use automaton_store::{Reader, SqliteError, Store, StoreError};

use crate::{World, manual, raw, said};

#[tokio::test]
async fn what_was_stored_is_there_after_a_close_and_after_none() {
    let mut world = World::born().await;
    world.store.receive(said("one"), None).await.unwrap();
    world.store.clone().close().await.unwrap();
    let gone = world.store.receive(said("two"), None).await.unwrap_err();
    assert!(
        matches!(
            gone,
            StoreError::Database(SqliteError::WriterGone { operation: "store a message" })
        ),
        "{gone}"
    );
    world.crash();
    world.store.receive(said("three"), None).await.unwrap();
    world.crash();
    assert_eq!(world.store.inbox_counts().await.unwrap().received, 2);
    world.store.checkpoint().await.unwrap();
    let log = fs::metadata(world.home.path().join("state.db-wal")).unwrap();
    assert_eq!(log.len(), 0, "the log is folded back");
    assert!(world.reader().db_bytes().unwrap() > 4096);
}

#[tokio::test]
async fn the_files_are_private() {
    let world = World::born().await;
    for entry in fs::read_dir(world.home.path()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{entry:?}");
    }
}

#[tokio::test]
async fn a_newer_database_is_refused_with_both_versions() {
    let world = World::born().await;
    world.store.clone().close().await.unwrap();
    world.raw().pragma_update(None, "user_version", 999).unwrap();
    let before = fs::read(world.path()).unwrap();
    for error in [
        Store::open(&world.path(), world.ids.clone(), world.trap.clone()).err().unwrap(),
        Reader::open(&world.path()).err().unwrap(),
    ] {
        let text = chain(&error).to_string();
        assert!(text.contains("has version 999; this program knows versions up to "), "{text}");
        assert_eq!(error.kind(), ErrorClass::User);
        assert!(error.hint().unwrap().contains("newer program"));
    }
    assert_eq!(fs::read(world.path()).unwrap(), before);
}

#[tokio::test]
async fn a_damaged_database_is_refused_and_left_alone() {
    let world = World::born().await;
    for number in 0..50 {
        world.store.receive(said(&"text ".repeat(1000 + number)), None).await.unwrap();
    }
    world.store.clone().close().await.unwrap();
    let whole = fs::read(world.path()).unwrap();
    for cut in [0, 700, whole.len() / 2] {
        fs::write(world.path(), &whole[..cut]).unwrap();
        let error = Store::open(&world.path(), world.ids.clone(), world.trap.clone()).err();
        assert!(
            matches!(error, Some(StoreError::Database(SqliteError::Corrupt { .. }))),
            "{cut}: {error:?}"
        );
        assert_eq!(fs::read(world.path()).unwrap(), &whole[..cut], "it was touched");
    }
    fs::write(world.path(), &whole).unwrap();
    assert_eq!(world.open().inbox_counts().await.unwrap().received, 50);
}

#[tokio::test]
async fn the_death_of_the_writer_is_named_and_loses_nothing() {
    let mut world = World::born().await;
    *world.trap.armed.lock().unwrap() = Some(FaultPoint::MessageReceived);
    let error = world.store.receive(said("hello"), None).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot store a message: the thread that writes the database has ended"
    );
    assert!(world.store.life().await.is_err(), "it does not go on after a panic");
    assert!(world.store.clone().close().await.is_err());
    world.crash();
    assert_eq!(world.store.inbox_counts().await.unwrap().received, 1);
}

#[tokio::test]
async fn two_writers_take_turns() {
    let world = World::born().await;
    let other = world.open();
    let mut results = Vec::new();
    for number in 0..40 {
        let (a, b, text) = (manual(&format!("a{number}")), manual(&format!("b{number}")), "x");
        let (a, b, c, d) = tokio::join!(
            world.store.push_wake(a),
            other.push_wake(b),
            world.store.receive(said(text), None),
            other.receive(said(text), None),
        );
        results.extend([a, b, c.map(|_| ()), d.map(|_| ())]);
    }
    for result in results {
        result.unwrap();
    }
    assert_eq!(world.store.pending_wakes().await.unwrap().len(), 81);
    assert_eq!(world.store.inbox_counts().await.unwrap().received, 80);
    let check = world.raw().query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
    assert_eq!(check.unwrap(), "ok");
}

#[tokio::test]
async fn a_writer_that_never_lets_go_is_named() {
    let world = World::born().await;
    let raw = world.raw();
    raw.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = world.store.push_wake(manual("x")).await.unwrap_err();
    assert!(matches!(error, StoreError::Database(SqliteError::Operation { .. })), "{error:?}");
    assert_eq!(error.kind(), ErrorClass::Transient);
    raw.execute_batch("ROLLBACK").unwrap();
    world.store.push_wake(manual("x")).await.unwrap();
}

#[tokio::test]
async fn a_database_of_the_old_form_is_refused_with_what_to_do() {
    let world = World::unborn();
    let path = world.path().with_file_name("old.db");
    raw(&path).execute_batch("CREATE TABLE automaton (id); PRAGMA user_version = 22").unwrap();
    let before = fs::read(&path).unwrap();
    for error in [
        Store::open(&path, world.ids.clone(), world.trap.clone()).err().unwrap(),
        Reader::open(&path).err().unwrap(),
    ] {
        let text = chain(&error).to_string();
        assert!(text.contains("has the old form 22, from before the first release"), "{text}");
        assert_eq!(error.kind(), ErrorClass::User);
        assert!(error.hint().unwrap().contains("To begin anew, move "));
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn a_life_from_before_it_had_a_soul_goes_on() {
    let world = World::unborn();
    let path = world.path().with_file_name("before.db");
    let init = include_str!("../../migrations/0001_init.sql");
    raw(&path).execute_batch(init).unwrap();
    let born = "INSERT INTO path_labels (path, label, at) VALUES ('/root/a', 'web', 1);\
        PRAGMA application_id = 0x41555441; PRAGMA user_version = 2";
    raw(&path).execute_batch(born).unwrap();
    let older = Reader::open(&path).err().unwrap();
    assert!(older.hint().is_some(), "{older}");
    let store = Store::open(&path, world.ids.clone(), world.trap.clone()).unwrap();
    assert_eq!(store.soul().await.unwrap(), None);
    let noted = store.noted_label("/root/a".to_owned()).await.unwrap();
    assert_eq!(noted, Some((Label::Web, None)), "what was there is there");
    let soul = Soul::of_genesis("Keep bees.");
    let (source, reason) = (SoulSource::Genesis, "born".to_owned());
    let change = SoulChange { soul, from: 0, source, reason, approved_by: None };
    assert_eq!(store.change_soul(change).await.unwrap(), 1);
    store.close().await.unwrap();
}

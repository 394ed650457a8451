//! Tests of jobs that wait together, fail alone, and end, with a real file each. Nothing waits
//! for a time.

#![expect(clippy::disallowed_methods, reason = "a test awaits what it starts")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use tempfile::TempDir;
use tokio::task::{JoinHandle, yield_now};

use super::*;
use crate::{Migration, Schema, ended_well};

const SCHEMA: Schema = Schema::new(
    7,
    &[Migration::new(
        1,
        "init",
        "CREATE TABLE names (name TEXT PRIMARY KEY) STRICT; \
         CREATE TABLE orphans (name TEXT REFERENCES names DEFERRABLE INITIALLY DEFERRED) STRICT;",
    )],
);

/// The error type of a database's owner.
#[derive(Debug, thiserror::Error)]
enum OwnError {
    #[error(transparent)]
    Database(#[from] SqliteError),
    #[error("refused")]
    Refused,
}

type Done = Result<(), OwnError>;
type Work = Result<(), WriteError<OwnError>>;
type Spoil = fn(&Connection) -> Work;

const PROCESS: WriteOptions = WriteOptions::new("note a name");
const MACHINE: WriteOptions = PROCESS.sync(CommitDurability::Machine);

struct Place {
    home: TempDir,
    /// Commits that were synced.
    synced: Arc<AtomicUsize>,
}

impl Place {
    fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap(), synced: Arc::default() }
    }

    fn path(&self) -> PathBuf {
        self.home.path().join("names.db")
    }

    fn connect(&self) -> Connection {
        crate::open(&self.path(), &SCHEMA).unwrap()
    }

    fn hooks(&self) -> WriterHooks {
        let synced = Arc::clone(&self.synced);
        let count = move || {
            synced.fetch_add(1, Ordering::SeqCst);
        };
        WriterHooks { faults: None, synced: Some(Box::new(count)) }
    }

    fn start(&self) -> Writer {
        Writer::start(self.connect(), "writer", self.hooks()).unwrap()
    }

    fn synced(&self) -> usize {
        self.synced.load(Ordering::SeqCst)
    }

    /// Returns the names that another connection sees.
    fn stored(&self) -> Vec<String> {
        names(&self.connect()).unwrap()
    }
}

fn names(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut select = connection.prepare("SELECT name FROM names ORDER BY name")?;
    select.query_map([], |row| row.get(0))?.collect()
}

fn note(connection: &Connection, name: &str) -> Work {
    connection.execute("INSERT INTO names VALUES (?1)", [name])?;
    Ok(())
}

/// Queues a job behind the others.
async fn queue(
    writer: &Writer,
    write: WriteOptions,
    work: impl FnOnce(&Connection) -> Work + Send + 'static,
) -> JoinHandle<Done> {
    let writer = writer.clone();
    let pending = tokio::spawn(async move { writer.write(write, work).await });
    yield_now().await;
    pending
}

async fn name(writer: &Writer, name: &'static str) -> JoinHandle<Done> {
    queue(writer, MACHINE, move |connection| note(connection, name)).await
}

/// Keeps the thread busy until something is sent.
async fn hold(writer: &Writer) -> (SyncSender<()>, JoinHandle<Done>) {
    let (go, held): (_, Receiver<()>) = sync_channel(1);
    let (begun, is_held) = tokio::sync::oneshot::channel();
    let waits = move |_: &Connection| {
        begun.send(()).unwrap();
        held.recv().unwrap();
        Ok(())
    };
    let pending = queue(writer, PROCESS, waits).await;
    is_held.await.unwrap();
    (go, pending)
}

fn is_gone<T: std::fmt::Debug>(done: &Result<T, OwnError>) -> bool {
    matches!(done, Err(OwnError::Database(SqliteError::WriterGone { .. })))
}

#[tokio::test]
async fn what_waits_together_is_committed_and_synced_once() {
    let place = Place::new();
    let writer = place.start();
    let (go, held) = hold(&writer).await;
    let mut waiting = Vec::new();
    for one in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"] {
        waiting.push(name(&writer, one).await);
    }
    go.send(()).unwrap();
    held.await.unwrap().unwrap();
    for done in waiting {
        done.await.unwrap().unwrap();
    }
    assert_eq!((place.synced(), place.stored().len()), (1, 10));
}

#[tokio::test]
async fn one_that_asks_for_the_machine_syncs_all_and_others_do_not() {
    let place = Place::new();
    let writer = place.start();
    let mode = |told: &SyncSender<i64>| {
        let told = told.clone();
        move |connection: &Connection| {
            let mode = connection.query_row("PRAGMA synchronous", [], |row| row.get(0))?;
            told.send(mode).unwrap();
            Ok(())
        }
    };
    let (told, modes) = sync_channel(8);
    writer.write::<_, OwnError>(PROCESS, mode(&told)).await.unwrap();
    let (go, held) = hold(&writer).await;
    let first = queue(&writer, PROCESS, mode(&told)).await;
    let second = queue(&writer, MACHINE, mode(&told)).await;
    go.send(()).unwrap();
    for done in [held, first, second] {
        done.await.unwrap().unwrap();
    }
    let refuse = |_: &Connection| Err::<(), _>(WriteError::Refused(OwnError::Refused));
    writer.write(MACHINE, refuse).await.unwrap_err();
    writer.write::<_, OwnError>(PROCESS, mode(&told)).await.unwrap();
    drop(told);
    assert_eq!(modes.into_iter().collect::<Vec<_>>(), [1, 2, 2, 1]);
    assert_eq!(place.synced(), 1, "what was refused was not synced");
}

#[tokio::test]
async fn a_job_that_fails_takes_none_of_the_others_with_it() {
    let place = Place::new();
    let writer = place.start();
    let (go, held) = hold(&writer).await;
    let first = name(&writer, "a").await;
    let bad = queue(&writer, MACHINE, |connection| {
        note(connection, "b")?;
        note(connection, "a")
    });
    let bad = bad.await;
    let refused = queue(&writer, MACHINE, |connection| {
        note(connection, "c")?;
        Err(OwnError::Refused.into())
    });
    let refused = refused.await;
    let reader = writer.clone();
    let read = tokio::spawn(async move {
        let read = |connection: &Connection| Ok(names(connection)?);
        reader.read::<_, OwnError>("look", read).await
    });
    yield_now().await;
    let last = name(&writer, "d").await;
    go.send(()).unwrap();
    for good in [held, first, last] {
        good.await.unwrap().unwrap();
    }
    let bad = bad.await.unwrap().unwrap_err();
    assert_eq!(bad.to_string(), "cannot note a name");
    assert!(matches!(refused.await.unwrap(), Err(OwnError::Refused)));
    assert_eq!(read.await.unwrap().unwrap(), ["a"], "it sees what was asked for before it");
    assert_eq!(place.stored(), ["a", "d"]);
}

#[tokio::test]
async fn a_commit_that_fails_fails_all_and_the_thread_goes_on() {
    let place = Place::new();
    let writer = place.start();
    let orphan = |connection: &Connection| {
        connection.execute("INSERT INTO orphans VALUES ('nobody')", [])?;
        Ok(())
    };
    // SQLite itself does this on a full disk.
    let roll_back = |connection: &Connection| {
        connection.execute_batch("ROLLBACK")?;
        connection.execute("INSERT INTO names VALUES ('c'), ('c')", [])?;
        Ok(())
    };
    for (spoil, reason) in [(orphan as Spoil, "FOREIGN KEY"), (roll_back, "UNIQUE")] {
        let is_refused = |done: Done| {
            let error = done.unwrap_err();
            let OwnError::Database(SqliteError::Operation { operation: "note a name", source }) =
                error
            else {
                panic!("{error}")
            };
            assert!(source.to_string().contains(reason), "{source}");
        };
        // Alone, and among others.
        is_refused(queue(&writer, MACHINE, spoil).await.await.unwrap());
        let (go, held) = hold(&writer).await;
        let good = name(&writer, "a").await;
        let late = queue(&writer, MACHINE, spoil).await;
        go.send(()).unwrap();
        held.await.unwrap().unwrap();
        for failed in [good, late] {
            is_refused(failed.await.unwrap());
        }
        assert!(place.stored().is_empty());
    }
    assert_eq!(place.synced(), 0);
    name(&writer, "b").await.await.unwrap().unwrap();
    assert_eq!(place.stored(), ["b"]);
}

#[tokio::test]
async fn a_panic_answers_nobody_and_leaves_nothing() {
    let place = Place::new();
    let writer = place.start();
    let (go, held) = hold(&writer).await;
    let before = name(&writer, "a").await;
    let panics = queue(&writer, MACHINE, |_| panic!("a job of a test")).await;
    // More than the queue has room for.
    let mut lost = vec![before, panics];
    for _ in 0..2 * QUEUE {
        lost.push(name(&writer, "b").await);
    }
    go.send(()).unwrap();
    held.await.unwrap().unwrap();
    for lost in lost {
        let lost = lost.await.unwrap();
        assert!(is_gone(&lost), "{lost:?}");
    }
    let next = name(&writer, "c").await.await.unwrap();
    assert!(is_gone(&next));
    let text = "cannot note a name: the thread that writes the database has ended";
    assert_eq!(next.unwrap_err().to_string(), text);
    assert!(place.stored().is_empty());
}

#[tokio::test]
async fn who_finds_the_queue_full_waits_and_is_served() {
    let place = Place::new();
    let writer = place.start();
    let (go, held) = hold(&writer).await;
    let mut waiting = Vec::new();
    for number in 0..3 * QUEUE {
        let work = move |connection: &Connection| note(connection, &format!("{number:03}"));
        waiting.push(queue(&writer, PROCESS, work).await);
    }
    go.send(()).unwrap();
    held.await.unwrap().unwrap();
    for done in waiting {
        done.await.unwrap().unwrap();
    }
    assert_eq!(place.stored().len(), 3 * QUEUE);
}

#[tokio::test]
async fn an_end_comes_after_what_was_asked_for_before_it() {
    let place = Place::new();
    let writer = place.start();
    let (go, held) = hold(&writer).await;
    let before = name(&writer, "a").await;
    let end = tokio::spawn(writer.clone().close());
    yield_now().await;
    let after = name(&writer, "b").await;
    go.send(()).unwrap();
    for done in [held, before] {
        done.await.unwrap().unwrap();
    }
    end.await.unwrap().unwrap();
    assert!(ended_well(&place.path()), "the log is folded");
    assert!(is_gone(&after.await.unwrap()));
    assert!(matches!(writer.close().await, Err(SqliteError::WriterGone { .. })));
    assert_eq!(place.stored(), ["a"]);
}

#[tokio::test]
async fn without_a_thread_each_job_is_a_transaction_where_it_is_asked_for() {
    let place = Place::new();
    let writer = Writer::in_caller(place.connect(), place.hooks());
    for (one, synced) in [("a", 1), ("b", 2)] {
        let here = std::thread::current().id();
        let work = move |connection: &Connection| {
            assert_eq!(std::thread::current().id(), here);
            note(connection, one)
        };
        writer.write::<_, OwnError>(MACHINE, work).await.unwrap();
        assert_eq!(place.synced(), synced);
    }
    let twice = |connection: &Connection| {
        note(connection, "c")?;
        note(connection, "a")
    };
    writer.write::<_, OwnError>(PROCESS, twice).await.unwrap_err();
    assert_eq!(place.stored(), ["a", "b"]);
    writer.clone().close().await.unwrap();
    assert!(is_gone(&writer.read::<_, OwnError>("look", |_| Ok(())).await));
}

/// A job that checks, when it may answer, whether all work is stored.
struct ReadBarrier(Arc<Place>, SyncSender<Vec<String>>, &'static str);

impl Job for ReadBarrier {
    fn work(&mut self, connection: &Connection) -> Result<(), Option<rusqlite::Error>> {
        assert!(self.0.stored().is_empty(), "nobody sees what is not committed");
        note(connection, self.2).map_err(|_| None)
    }

    fn answer(self: Box<Self>, committed: Result<(), &rusqlite::Error>) {
        committed.unwrap();
        self.1.send(self.0.stored()).unwrap();
    }
}

impl Faults for ReadBarrier {
    fn reach(&self, point: FaultPoint) {
        assert_eq!(point, FaultPoint::CallStarted);
        self.1.send(vec!["reached".to_owned()]).unwrap();
    }
}

#[test]
fn fault_points_and_then_answers_come_after_the_commit_of_all() {
    let place = Arc::new(Place::new());
    let (told, answers) = sync_channel(8);
    let barrier = |name| ReadBarrier(Arc::clone(&place), told.clone(), name);
    let hooks = WriterHooks { faults: Some(Arc::new(barrier(""))), synced: None };
    let mut worker = Worker { connection: place.connect(), hooks };
    let last = MACHINE.reaches(FaultPoint::CallStarted);
    worker.commit(vec![(MACHINE, Box::new(barrier("a"))), (last, Box::new(barrier("b")))]);
    drop((worker, told));
    let answers: Vec<_> = answers.iter().take(3).collect();
    assert_eq!(answers, [vec!["reached"], vec!["a", "b"], vec!["a", "b"]]);
}

//! The one thread that writes, and the transactions that it runs.
//!
//! Every transaction is on the disk when its caller is answered, since most of
//! them are about money. What waits together goes to the disk together: each job
//! in a savepoint of one transaction, one sync for all of them, and only then the
//! answers. A panic in a job ends the thread and rolls back all that was not yet
//! answered: nobody may go on with a state that nobody knows. In a simulation
//! there is no such thread: whoever asks runs the transaction, alone, so that a
//! history depends on nothing but its seed.

use std::path::Path;
use std::sync::{Arc, Mutex};

use automaton_core::time::{Clock, Timestamp};
use automaton_sqlite::{checkpoint, with_full_sync};
use rusqlite::{Connection, Savepoint, TransactionBehavior, ffi};
use tokio::sync::{mpsc, oneshot};

use crate::db::DbFuture;
use crate::db::error::{DbError, DbTxError};

/// Jobs that may wait; a caller beyond them waits itself.
const QUEUE: usize = 64;
/// Jobs that go to the disk together, at most.
const TOGETHER_MAX: usize = 64;

/// Who runs the transactions.
#[derive(Clone)]
enum DbExecutor {
    /// The thread.
    Thread(mpsc::Sender<Order>),
    /// Whoever asks. A std mutex, since nothing is awaited while it is held.
    Caller(Arc<Mutex<WriterThread>>),
}

/// What the thread is told.
enum Order {
    Run(Box<dyn TransactionJob>),
    /// Fold the log back, and say how that went.
    Fold(oneshot::Sender<rusqlite::Result<()>>),
}

/// A connection, and who is told of each commit.
struct WriterThread {
    connection: Connection,
    synced: Box<dyn Fn() + Send>,
}

/// A handle on the thread, which ends with the last of them.
#[derive(Clone)]
pub(super) struct Writer {
    executor: DbExecutor,
    clock: Arc<dyn Clock>,
}

/// A running transaction, and one time for all it writes.
pub(super) struct DbTx<'a> {
    pub(super) sql: Savepoint<'a>,
    pub(super) now: Timestamp,
}

/// One transaction of somebody, among those that go to the disk together.
trait TransactionJob: Send {
    /// Its time.
    fn now(&self) -> Timestamp;
    /// Does its work; whether that is to be kept.
    fn work(&mut self, tx: &DbTx<'_>) -> bool;
    /// Answers, once it is known what became of all of them.
    fn answer(self: Box<Self>, committed: Result<(), &rusqlite::Error>);
}

/// A job before its work and after it. `operation` completes "cannot …".
struct QueuedJob<W, T> {
    operation: &'static str,
    now: Timestamp,
    work: Option<W>,
    done: Option<Result<T, DbTxError>>,
    caller: oneshot::Sender<Result<T, DbError>>,
}

impl<W, T> TransactionJob for QueuedJob<W, T>
where
    W: FnOnce(&DbTx<'_>) -> Result<T, DbTxError> + Send,
    T: Send,
{
    fn now(&self) -> Timestamp {
        self.now
    }

    fn work(&mut self, tx: &DbTx<'_>) -> bool {
        self.done = self.work.take().map(|work| work(tx));
        matches!(self.done, Some(Ok(_)))
    }

    fn answer(self: Box<Self>, committed: Result<(), &rusqlite::Error>) {
        let Self { operation, done, caller, .. } = *self;
        let done = match (done, committed) {
            // A refusal stands, whatever became of the others.
            (Some(Err(error)), _) => Err(error),
            (_, Err(error)) => Err(DbTxError::Sql(same(error))),
            (Some(done), Ok(())) => done,
            (None, Ok(())) => Err(DbError::WriterGone { operation }.into()),
        };
        // silent-ok: the caller stopped waiting; the work is done all the same.
        caller.send(done.map_err(|error| error.during(operation))).ok();
    }
}

impl Writer {
    pub(super) fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, DbError> {
        let mut connection = connect(path)?;
        let (jobs, mut queue) = mpsc::channel(QUEUE);
        let work = move || {
            let mut next = queue.blocking_recv();
            while let Some(order) = next.take() {
                let mut jobs = Vec::new();
                match order {
                    Order::Run(first) => jobs.push(first),
                    Order::Fold(asked) => {
                        // silent-ok: nobody waits for it any more.
                        asked.send(checkpoint(&connection)).ok();
                    }
                }
                // While these are being synced, the next ones gather.
                while !jobs.is_empty() && jobs.len() < TOGETHER_MAX {
                    match queue.try_recv() {
                        Ok(Order::Run(job)) => jobs.push(job),
                        Ok(fold) => {
                            next = Some(fold);
                            break;
                        }
                        Err(_) => break,
                    }
                }
                if !jobs.is_empty() {
                    together(&mut connection, jobs);
                }
                next = next.or_else(|| queue.blocking_recv());
            }
        };
        let named = std::thread::Builder::new().name("cloud-writer".to_owned());
        named.spawn(work).map_err(DbError::Spawn)?;
        Ok(Self { executor: DbExecutor::Thread(jobs), clock })
    }

    pub(super) fn open_here(
        path: &Path,
        clock: Arc<dyn Clock>,
        synced: Box<dyn Fn() + Send>,
    ) -> Result<Self, DbError> {
        let here = WriterThread { connection: connect(path)?, synced };
        Ok(Self { executor: DbExecutor::Caller(Arc::new(Mutex::new(here))), clock })
    }

    /// Runs one transaction; it runs even when nobody waits for it any more.
    /// `operation` completes "cannot …".
    pub(super) fn run<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&DbTx<'_>) -> Result<T, DbTxError> + Send + 'static,
    ) -> DbFuture<'_, T> {
        let now = self.clock.now();
        Box::pin(async move {
            let gone = || DbError::WriterGone { operation };
            let (caller, answered) = oneshot::channel();
            let job = Box::new(QueuedJob { operation, now, work: Some(work), done: None, caller });
            match &self.executor {
                DbExecutor::Thread(jobs) => jobs.send(Order::Run(job)).await.map_err(|_| gone())?,
                DbExecutor::Caller(here) => {
                    let mut here = here.lock().map_err(|_| gone())?;
                    together(&mut here.connection, vec![job]);
                    (here.synced)();
                }
            }
            answered.await.map_err(|_| gone())?
        })
    }

    /// Folds the log back into the file.
    pub(super) fn fold(&self) -> DbFuture<'_, ()> {
        let operation = "fold the log back";
        Box::pin(async move {
            let gone = || DbError::WriterGone { operation };
            let folded = match &self.executor {
                DbExecutor::Thread(jobs) => {
                    let (asked, answered) = oneshot::channel();
                    jobs.send(Order::Fold(asked)).await.map_err(|_| gone())?;
                    answered.await.map_err(|_| gone())?
                }
                DbExecutor::Caller(here) => {
                    let here = here.lock().map_err(|_| gone())?;
                    let folded = checkpoint(&here.connection);
                    (here.synced)();
                    folded
                }
            };
            folded.map_err(|source| DbError::Sql { operation, source })
        })
    }
}

fn connect(path: &Path) -> Result<Connection, DbError> {
    let connection = automaton_sqlite::open(path, &super::SCHEMA)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Does these jobs in one transaction, and answers each when that is on the disk.
fn together(connection: &mut Connection, mut jobs: Vec<Box<dyn TransactionJob>>) {
    let committed = with_full_sync(connection, |connection| commit(connection, &mut jobs));
    for job in jobs {
        job.answer(committed.as_ref().copied());
    }
}

/// A job that fails leaves nothing behind, and the others stay. An error here is
/// one of all of them: that of a savepoint, too, since a full disk for instance
/// has SQLite roll back everything.
fn commit(
    connection: &mut Connection,
    jobs: &mut [Box<dyn TransactionJob>],
) -> rusqlite::Result<()> {
    let mut sql = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for job in jobs {
        let mut tx = DbTx { sql: sql.savepoint()?, now: job.now() };
        if !job.work(&tx) {
            tx.sql.rollback()?;
        }
        tx.sql.commit()?;
    }
    sql.commit()
}

/// The same error once more, for each of those whom it concerns.
fn same(error: &rusqlite::Error) -> rusqlite::Error {
    let code = error.sqlite_error().copied().unwrap_or(ffi::Error::new(ffi::SQLITE_ABORT));
    rusqlite::Error::SqliteFailure(code, Some(error.to_string()))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test awaits what it starts")]
mod tests {
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    use automaton_core::time::Timestamp;
    use automaton_testkit::clock::FakeClock;
    use rusqlite::params;
    use tempfile::TempDir;

    use super::*;

    type CommitTask = tokio::task::JoinHandle<Result<(), DbError>>;

    fn fresh() -> (TempDir, Writer) {
        let home = tempfile::tempdir().unwrap();
        let clock = Arc::new(FakeClock::at(Timestamp::EPOCH));
        let writer = Writer::open(&home.path().join("cloud.db"), clock).unwrap();
        (home, writer)
    }

    /// The names that another connection sees.
    fn stored(home: &TempDir) -> Vec<String> {
        let other = automaton_sqlite::open(&home.path().join("cloud.db"), &super::super::SCHEMA);
        let other = other.unwrap();
        let mut select = other.prepare("SELECT nonce FROM nonces ORDER BY nonce").unwrap();
        let names: rusqlite::Result<_> = select.query_map([], |row| row.get(0)).unwrap().collect();
        names.unwrap()
    }

    fn note(tx: &DbTx<'_>, name: &str) -> Result<(), DbTxError> {
        let statement = "INSERT INTO nonces (nonce, expires_at) VALUES (?1, ?2)";
        tx.sql.execute(statement, params![name, tx.now.as_millis()])?;
        Ok(())
    }

    /// Asks for a job, and sees to it that it waits in the queue behind the others.
    async fn queue(
        writer: &Writer,
        work: impl FnOnce(&DbTx<'_>) -> Result<(), DbTxError> + Send + 'static,
    ) -> CommitTask {
        let writer = writer.clone();
        let pending = tokio::spawn(async move { writer.run("note a name", work).await });
        tokio::task::yield_now().await;
        pending
    }

    /// Keeps the thread busy until something is sent.
    async fn hold(writer: &Writer) -> (SyncSender<()>, CommitTask) {
        let (go, held): (_, Receiver<()>) = sync_channel(64);
        let (begun, is_held) = oneshot::channel();
        let waits = move |_: &DbTx<'_>| {
            begun.send(()).unwrap();
            held.recv().unwrap();
            Ok(())
        };
        let pending = queue(writer, waits).await;
        is_held.await.unwrap();
        (go, pending)
    }

    #[tokio::test]
    async fn a_job_that_fails_takes_none_of_the_others_with_it() {
        let (home, writer) = fresh();
        let (go, held) = hold(&writer).await;
        let first = queue(&writer, |tx| note(tx, "a")).await;
        let bad = queue(&writer, |tx| {
            note(tx, "b")?;
            note(tx, "a")
        });
        let bad = bad.await;
        let refused = queue(&writer, |tx| {
            note(tx, "c")?;
            Err(DbError::Overdrawn { what: "a test" }.into())
        });
        let refused = refused.await;
        let last = queue(&writer, |tx| note(tx, "d")).await;
        go.send(()).unwrap();
        for good in [held, first, last] {
            good.await.unwrap().unwrap();
        }
        assert!(matches!(bad.await.unwrap(), Err(DbError::Sql { .. })));
        assert!(matches!(refused.await.unwrap(), Err(DbError::Overdrawn { .. })));
        assert_eq!(stored(&home), ["a", "d"]);
    }

    #[tokio::test]
    async fn a_commit_that_fails_fails_all_and_the_thread_goes_on() {
        let (home, writer) = fresh();
        let (go, held) = hold(&writer).await;
        let good = queue(&writer, |tx| note(tx, "a")).await;
        let late = queue(&writer, |tx| {
            // What is only checked at the commit, and does not hold then.
            tx.sql.pragma_update(None, "defer_foreign_keys", true)?;
            let orphan =
                "INSERT INTO entries (posting, account, amount, balance_after) VALUES (9, 9, 1, 1)";
            tx.sql.execute(orphan, [])?;
            Ok(())
        });
        let late = late.await;
        go.send(()).unwrap();
        held.await.unwrap().unwrap();
        for failed in [good, late] {
            let error = failed.await.unwrap().unwrap_err();
            let DbError::Sql { operation: "note a name", source } = error else {
                panic!("{error}")
            };
            assert!(source.to_string().contains("FOREIGN KEY"), "{source}");
        }
        assert!(stored(&home).is_empty());
        writer.run("note a name", |tx| note(tx, "b")).await.unwrap();
        assert_eq!(stored(&home), ["b"]);
    }

    #[tokio::test]
    async fn a_panic_answers_nobody_and_leaves_nothing() {
        let (home, writer) = fresh();
        let (go, held) = hold(&writer).await;
        let before = queue(&writer, |tx| note(tx, "a")).await;
        let panics = queue(&writer, |_| panic!("a job of a test")).await;
        let after = queue(&writer, |tx| note(tx, "b")).await;
        go.send(()).unwrap();
        held.await.unwrap().unwrap();
        for lost in [before, panics, after] {
            assert!(matches!(lost.await.unwrap(), Err(DbError::WriterGone { .. })));
        }
        let next = writer.run("note a name", |tx| note(tx, "c")).await;
        assert!(matches!(next, Err(DbError::WriterGone { .. })));
        assert!(stored(&home).is_empty());
    }

    /// A job that looks, when it may answer, whether everybody's work is stored.
    struct ReadBarrier(Arc<TempDir>, SyncSender<Vec<String>>, &'static str);

    impl TransactionJob for ReadBarrier {
        fn now(&self) -> Timestamp {
            Timestamp::EPOCH
        }

        fn work(&mut self, tx: &DbTx<'_>) -> bool {
            assert!(stored(&self.0).is_empty(), "nobody sees what is not committed");
            note(tx, self.2).is_ok()
        }

        fn answer(self: Box<Self>, committed: Result<(), &rusqlite::Error>) {
            committed.unwrap();
            self.1.send(stored(&self.0)).unwrap();
        }
    }

    #[test]
    fn an_answer_comes_after_the_commit_of_all() {
        let home = Arc::new(tempfile::tempdir().unwrap());
        let mut connection = connect(&home.path().join("cloud.db")).unwrap();
        let (told, answers) = sync_channel(64);
        let job = |name| {
            Box::new(ReadBarrier(Arc::clone(&home), told.clone(), name)) as Box<dyn TransactionJob>
        };
        together(&mut connection, vec![job("a"), job("b")]);
        drop(told);
        let answers: Vec<_> = answers.into_iter().collect();
        assert_eq!(answers, [["a", "b"], ["a", "b"]]);
    }
}

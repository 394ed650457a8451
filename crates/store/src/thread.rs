//! The one thread that writes, and the transactions it runs.
//!
//! Jobs come through a bounded channel and run one after the other on one
//! connection. A panic in a job ends the thread: every caller, the one waiting
//! and all later ones, then gets [`StoreError::WriterGone`], and the transaction
//! is rolled back. It must never go on after a panic with a state nobody knows.
//! In a simulation there is no such thread: whoever asks runs the job, so that a
//! history depends on nothing but its seed.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use automaton_core::faults::{FaultPoint, Faults};
use automaton_core::id::IdGenerator;
use automaton_core::time::Timestamp;
use automaton_sqlite::with_full_sync;
use rusqlite::{Connection, Params, Row, Transaction, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use crate::Store;
use crate::audit;
use crate::error::{StoreError, TxError};

/// Jobs that may wait; a caller beyond them waits itself.
const QUEUE: usize = 64;

/// How long the end of a store waits for who reads.
const FOLD_TIMEOUT: Duration = Duration::from_millis(200);

type StoreJob = Box<dyn FnOnce(&mut WriterState) + Send>;

/// What the writer thread is told.
pub(crate) enum WriterMessage {
    Run(StoreJob),
    Close(oneshot::Sender<()>),
}

/// Who runs the jobs.
#[derive(Clone)]
pub(crate) enum Executor {
    /// The writer thread.
    Thread(mpsc::Sender<WriterMessage>),
    /// Whoever asks; nothing is left after the store was closed. A std mutex,
    /// since nothing is awaited while it is held.
    Caller(Arc<Mutex<Option<WriterState>>>),
}

/// What a job works on.
pub(crate) struct WriterState {
    pub(crate) connection: Connection,
    pub(crate) ids: IdGenerator,
    faults: Arc<dyn Faults>,
    /// Is told of each commit that survives the machine; only simulations listen.
    synced: Option<CommitHook>,
}

/// What a simulation is told by: everything that was committed is on the disk.
pub type CommitHook = Box<dyn Fn() + Send>;

/// How a write is done, besides its statements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteOptions {
    operation: &'static str,
    sync: CommitDurability,
    reaches: [Option<FaultPoint>; 3],
}

/// What a commit survives.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CommitDurability {
    /// The death of the process.
    Process,
    /// The death of the machine, at the price of an fsync.
    Machine,
}

impl WriteOptions {
    /// A write that survives the process. `operation` completes "cannot …".
    pub(crate) const fn new(operation: &'static str) -> Self {
        Self { operation, sync: CommitDurability::Process, reaches: [None; 3] }
    }

    pub(crate) const fn sync(self, sync: CommitDurability) -> Self {
        Self { sync, ..self }
    }

    /// The next of the fault points that lie right after the commit, three at most.
    pub(crate) const fn reaches(self, point: FaultPoint) -> Self {
        let [_, before, last] = self.reaches;
        Self { reaches: [before, last, Some(point)], ..self }
    }
}

impl Store {
    /// Opens the database, makes or migrates it, and starts the writer thread. After an end
    /// that was none of its own, blocks for as long as checking the file takes.
    ///
    /// # Errors
    /// [`StoreError::Open`] when the file is newer, damaged, foreign or out of
    /// reach; it is left as it is then.
    pub fn open(
        path: &Path,
        mint: IdGenerator,
        faults: Arc<dyn Faults>,
    ) -> Result<Self, StoreError> {
        let mut db = WriterState::open(path, mint, faults)?;
        let (orders, mut queue) = mpsc::channel(QUEUE);
        let work = move || {
            while let Some(order) = queue.blocking_recv() {
                match order {
                    WriterMessage::Run(job) => job(&mut db),
                    WriterMessage::Close(closed) => {
                        drop(db);
                        // silent-ok: nobody waits for the end any more.
                        closed.send(()).ok();
                        return;
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("store-writer".to_owned());
        thread.spawn(work).map_err(StoreError::Spawn)?;
        Ok(Self { executor: Executor::Thread(orders) })
    }

    /// The same without a thread, for a simulation: each job runs where it is
    /// asked for, and blocks there. Tells `synced` of each commit that survives
    /// the machine.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_here(
        path: &Path,
        mint: IdGenerator,
        faults: Arc<dyn Faults>,
        synced: CommitHook,
    ) -> Result<Self, StoreError> {
        let db = WriterState { synced: Some(synced), ..WriterState::open(path, mint, faults)? };
        Ok(Self { executor: Executor::Caller(Arc::new(Mutex::new(Some(db)))) })
    }

    /// Folds the log back, ends the writer thread after the jobs before, and waits until
    /// the database is closed, so that the next start has nothing to check. Clones of the handle then get [`StoreError::WriterGone`].
    ///
    /// # Errors
    /// [`StoreError::WriterGone`] when the thread had ended before; when SQLite fails.
    pub async fn close(self) -> Result<(), StoreError> {
        let fold = |db: &mut WriterState| {
            // A reader that stays for long is not waited for: then the next start checks.
            db.connection.busy_timeout(FOLD_TIMEOUT)?;
            Ok(automaton_sqlite::checkpoint(&db.connection)?)
        };
        self.run("close the store", fold).await?;
        let (closed, end) = oneshot::channel();
        let gone = || StoreError::WriterGone { operation: "close the store" };
        let orders = match &self.executor {
            Executor::Thread(orders) => orders,
            Executor::Caller(db) => {
                let open = db.lock().map_err(|_| gone())?.take();
                return open.map(drop).ok_or_else(gone);
            }
        };
        orders.send(WriterMessage::Close(closed)).await.map_err(|_| gone())?;
        // The thread has nothing left to do then but to return.
        end.await.map_err(|_| gone())
    }

    /// Runs a job and waits for its result. The job runs even when nobody waits.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&mut WriterState) -> Result<T, TxError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let gone = || StoreError::WriterGone { operation };
        let orders = match &self.executor {
            Executor::Thread(orders) => orders,
            Executor::Caller(db) => {
                let mut db = db.lock().map_err(|_| gone())?;
                let done = work(db.as_mut().ok_or_else(gone)?);
                return done.map_err(|halt| halt.during(operation));
            }
        };
        let (answer, answered) = oneshot::channel();
        let job: StoreJob = Box::new(move |db| {
            let done = work(db).map_err(|halt| halt.during(operation));
            // silent-ok: the caller stopped waiting; the work is done all the same.
            answer.send(done).ok();
        });
        orders.send(WriterMessage::Run(job)).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }

    /// Runs a job that is one transaction.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        write: WriteOptions,
        work: impl FnOnce(&Tx<'_>) -> Result<T, TxError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.run(write.operation, move |db| db.write(write, work)).await
    }
}

impl WriterState {
    /// The time now.
    pub(crate) fn now(&self) -> Timestamp {
        self.ids.now()
    }

    fn open(path: &Path, mint: IdGenerator, faults: Arc<dyn Faults>) -> Result<Self, StoreError> {
        let connection = automaton_sqlite::open(path, &crate::SCHEMA)?;
        connection.set_prepared_statement_cache_capacity(128);
        Ok(Self { connection, ids: mint, faults, synced: None })
    }

    /// One transaction, then its fault points.
    pub(crate) fn write<T>(
        &mut self,
        write: WriteOptions,
        work: impl FnOnce(&Tx<'_>) -> Result<T, TxError>,
    ) -> Result<T, TxError> {
        let Self { connection, ids: mint, .. } = self;
        let commit = |connection: &mut Connection| -> Result<T, TxError> {
            let sql = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let tx = Tx { sql, ids: mint, now: mint.now(), chain: RefCell::new(None) };
            let done = work(&tx)?;
            audit::close_link(&tx)?;
            tx.sql.commit()?;
            Ok(done)
        };
        let done = match write.sync {
            CommitDurability::Process => commit(connection),
            CommitDurability::Machine => with_full_sync(connection, commit),
        }?;
        if let (CommitDurability::Machine, Some(synced)) = (write.sync, &self.synced) {
            synced();
        }
        write.reaches.into_iter().flatten().for_each(|point| self.faults.reach(point));
        Ok(done)
    }
}

/// A running transaction: the connection, and one time for all it writes.
pub(crate) struct Tx<'a> {
    sql: Transaction<'a>,
    pub(crate) ids: &'a IdGenerator,
    pub(crate) now: Timestamp,
    /// The link of the audit chain that this transaction adds, once it covers a row.
    pub(crate) chain: RefCell<Option<audit::Growing>>,
}

impl Deref for Tx<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.sql
    }
}

/// Statements, prepared once a connection.
pub(crate) trait ConnectionExt: Borrow<Connection> {
    /// Runs a statement; gives the number of rows it changed.
    fn exec(&self, sql: &str, params: impl Params) -> rusqlite::Result<usize> {
        self.borrow().prepare_cached(sql)?.execute(params)
    }

    /// The first row, if there is one.
    fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Option<T>> {
        let mut statement = self.borrow().prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        rows.next()?.map(read).transpose()
    }

    /// Every row.
    fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        self.borrow().prepare_cached(sql)?.query_map(params, read)?.collect()
    }
}

impl ConnectionExt for Connection {}

/// A statement from its file.
macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!("sql/", $name, ".sql"))
    };
}
pub(crate) use sql;

#[cfg(test)]
mod tests {
    use automaton_core::entropy::SystemEntropy;
    use automaton_core::error::Classified;
    use automaton_core::faults::NoFaults;
    use automaton_core::time::SystemClock;

    use super::*;

    fn writer() -> (tempfile::TempDir, Store) {
        let home = tempfile::tempdir().unwrap();
        let mint = IdGenerator::new(Arc::new(SystemClock), Arc::new(SystemEntropy));
        let path = home.path().join("state.db");
        (home, Store::open(&path, mint, Arc::new(NoFaults)).unwrap())
    }

    async fn synchronous(writer: &Store) -> i64 {
        let ask = |db: &mut WriterState| {
            Ok(db.connection.query_row("PRAGMA synchronous", [], |row| row.get(0))?)
        };
        writer.run("ask", ask).await.unwrap()
    }

    #[tokio::test]
    async fn only_a_write_for_the_machine_is_synced() {
        let (_home, writer) = writer();
        let during = |tx: &Tx<'_>| Ok(tx.query_row("PRAGMA synchronous", [], |row| row.get(0))?);
        let plain: i64 = writer.write(WriteOptions::new("try"), during).await.unwrap();
        let synced: i64 = writer
            .write(WriteOptions::new("try").sync(CommitDurability::Machine), during)
            .await
            .unwrap();
        assert_eq!((plain, synced, synchronous(&writer).await), (1, 2, 1));
        let refuse = |_: &Tx<'_>| Err::<(), _>(StoreError::Unborn.into());
        writer
            .write(WriteOptions::new("fail").sync(CommitDurability::Machine), refuse)
            .await
            .unwrap_err();
        assert_eq!(synchronous(&writer).await, 1, "a failure puts the mode back, too");
    }

    #[tokio::test]
    async fn a_refused_write_leaves_nothing() {
        let (_home, writer) = writer();
        let half = |tx: &Tx<'_>| {
            tx.exec("UPDATE audit_head SET links = 9", [])?;
            Err::<(), _>(StoreError::Unborn.into())
        };
        writer.write(WriteOptions::new("fail"), half).await.unwrap_err();
        let links = |tx: &Tx<'_>| {
            Ok(tx.query_row("SELECT links FROM audit_head", [], |row| row.get::<_, i64>(0))?)
        };
        assert_eq!(writer.write(WriteOptions::new("look"), links).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_full_disk_is_named_and_loses_nothing() {
        let (_home, writer) = writer();
        // A page limit is the full disk that a test can make: SQLite gives the
        // same error for both.
        let limit =
            |db: &mut WriterState| Ok(db.connection.pragma_update(None, "max_page_count", 90)?);
        writer.run("limit", limit).await.unwrap();
        let write = |tx: &Tx<'_>| {
            let text = "x".repeat(60_000);
            tx.exec(sql!("state_change"), ("setup", "waking", text, 0))?;
            Ok(())
        };
        let mut stored = 0;
        let error = loop {
            match writer.write(WriteOptions::new("store a message"), write).await {
                Ok(()) => stored += 1,
                Err(error) => break error,
            }
            assert!(stored < 90, "the limit never came");
        };
        assert!(matches!(error, StoreError::Sql { .. }), "{error:?}");
        assert_eq!(error.to_string(), "cannot store a message: the disk is full");
        assert!(error.hint().unwrap().contains("disk space"));
        let count = |tx: &Tx<'_>| {
            Ok(tx.query_row("SELECT count(*) FROM state_changes", [], |row| row.get::<_, i32>(0))?)
        };
        assert_eq!(writer.write(WriteOptions::new("look"), count).await.unwrap(), stored);
    }
}

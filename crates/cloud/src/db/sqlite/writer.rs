//! The one thread that writes, and the transactions that it runs.
//!
//! Every transaction is on the disk when its caller is answered, since most of
//! them are about money. A panic in a job ends the thread and rolls its
//! transaction back: nobody may go on with a state that nobody knows. In a
//! simulation there is no such thread: whoever asks runs the transaction, so that
//! a history depends on nothing but its seed.

use std::path::Path;
use std::sync::{Arc, Mutex};

use automaton_core::time::{Clock, Timestamp};
use automaton_sqlite::with_full_sync;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use crate::db::Answer;
use crate::db::error::{DbError, Halt};

/// Jobs that may wait; a caller beyond them waits itself.
const QUEUE: usize = 64;

type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// Who runs the transactions.
#[derive(Clone)]
enum Hands {
    /// The thread.
    Thread(mpsc::Sender<Job>),
    /// Whoever asks. A std mutex, since nothing is awaited while it is held.
    Caller(Arc<Mutex<Here>>),
}

/// A connection, and who is told of each commit.
struct Here {
    connection: Connection,
    synced: Box<dyn Fn() + Send>,
}

/// A handle on the thread, which ends with the last of them.
#[derive(Clone)]
pub(super) struct Writer {
    hands: Hands,
    clock: Arc<dyn Clock>,
}

/// A running transaction, and one time for all it writes.
pub(super) struct Tx<'a> {
    pub(super) sql: Transaction<'a>,
    pub(super) now: Timestamp,
}

impl Writer {
    pub(super) fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, DbError> {
        let mut connection = connect(path)?;
        let (jobs, mut queue) = mpsc::channel::<Job>(QUEUE);
        let work = move || {
            while let Some(job) = queue.blocking_recv() {
                job(&mut connection);
            }
        };
        let named = std::thread::Builder::new().name("cloud-writer".to_owned());
        named.spawn(work).map_err(DbError::Spawn)?;
        Ok(Self { hands: Hands::Thread(jobs), clock })
    }

    pub(super) fn open_here(
        path: &Path,
        clock: Arc<dyn Clock>,
        synced: Box<dyn Fn() + Send>,
    ) -> Result<Self, DbError> {
        let here = Here { connection: connect(path)?, synced };
        Ok(Self { hands: Hands::Caller(Arc::new(Mutex::new(here))), clock })
    }

    /// Runs one transaction; it runs even when nobody waits for it any more.
    /// `operation` completes "cannot …".
    pub(super) fn run<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Tx<'_>) -> Result<T, Halt> + Send + 'static,
    ) -> Answer<'_, T> {
        let now = self.clock.now();
        Box::pin(async move {
            let gone = || DbError::WriterGone { operation };
            let work = move |connection: &mut Connection| {
                with_full_sync(connection, |connection| commit(connection, now, work))
            };
            let jobs = match &self.hands {
                Hands::Thread(jobs) => jobs,
                Hands::Caller(here) => {
                    let mut here = here.lock().map_err(|_| gone())?;
                    let done = work(&mut here.connection);
                    (here.synced)();
                    return done.map_err(|halt| halt.during(operation));
                }
            };
            let (answer, answered) = oneshot::channel();
            let job: Job = Box::new(move |connection| {
                let done = work(connection);
                // silent-ok: the caller stopped waiting; the work is done all the same.
                answer.send(done.map_err(|halt| halt.during(operation))).ok();
            });
            jobs.send(job).await.map_err(|_| gone())?;
            answered.await.map_err(|_| gone())?
        })
    }
}

fn connect(path: &Path) -> Result<Connection, DbError> {
    let connection = automaton_sqlite::open(path, super::MIGRATIONS)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

fn commit<T>(
    connection: &mut Connection,
    now: Timestamp,
    work: impl FnOnce(&Tx<'_>) -> Result<T, Halt>,
) -> Result<T, Halt> {
    let sql = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let tx = Tx { sql, now };
    let done = work(&tx)?;
    tx.sql.commit()?;
    Ok(done)
}

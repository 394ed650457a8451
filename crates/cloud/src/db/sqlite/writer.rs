//! The one thread that writes, and the transactions that it runs.
//!
//! Every transaction is on the disk when its caller is answered, since most of
//! them are about money. A panic in a job ends the thread and rolls its
//! transaction back: nobody may go on with a state that nobody knows.

use std::path::Path;
use std::sync::Arc;

use automaton_core::time::{Clock, Timestamp};
use automaton_sqlite::with_full_sync;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use crate::db::Answer;
use crate::db::error::{DbError, Halt};

/// Jobs that may wait; a caller beyond them waits itself.
const QUEUE: usize = 64;

type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// A handle on the thread, which ends with the last of them.
#[derive(Clone)]
pub(super) struct Writer {
    jobs: mpsc::Sender<Job>,
    clock: Arc<dyn Clock>,
}

/// A running transaction, and one time for all it writes.
pub(super) struct Tx<'a> {
    pub(super) sql: Transaction<'a>,
    pub(super) now: Timestamp,
}

impl Writer {
    pub(super) fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, DbError> {
        let mut connection = automaton_sqlite::open(path, super::MIGRATIONS)?;
        connection.set_prepared_statement_cache_capacity(64);
        let (jobs, mut queue) = mpsc::channel::<Job>(QUEUE);
        let work = move || {
            while let Some(job) = queue.blocking_recv() {
                job(&mut connection);
            }
        };
        let named = std::thread::Builder::new().name("cloud-writer".to_owned());
        named.spawn(work).map_err(DbError::Spawn)?;
        Ok(Self { jobs, clock })
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
            let (answer, answered) = oneshot::channel();
            let job: Job = Box::new(move |connection| {
                let done = with_full_sync(connection, |connection| commit(connection, now, work));
                // silent-ok: the caller stopped waiting; the work is done all the same.
                answer.send(done.map_err(|halt| halt.during(operation))).ok();
            });
            let gone = || DbError::WriterGone { operation };
            self.jobs.send(job).await.map_err(|_| gone())?;
            answered.await.map_err(|_| gone())?
        })
    }
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

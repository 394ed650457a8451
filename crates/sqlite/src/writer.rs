//! The only writer of a database, and its transactions.
//!
//! Jobs come through a bounded queue. Waiting jobs share one transaction. If there are several,
//! each has its own savepoint, so that a failing job rolls back alone. One commit covers all of
//! them, and is synced if any of them asks for that. Fault points and replies come after it. A
//! panic in a job ends the thread and rolls back everything that was not yet answered: every
//! caller, waiting or later, gets [`SqliteError::WriterGone`]. No caller may continue with an
//! unknown state. A simulation has no such thread: the caller runs the job, alone in its
//! transaction, so that a history depends only on its seed. There is no runtime here: the thread
//! blocks, and callers can wait for it in any runtime.

use std::future::poll_fn;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use automaton_core::faults::{FaultPoint, Faults};
use futures_channel::oneshot;
use rusqlite::{Connection, Transaction, TransactionBehavior, ffi};

use crate::error::{SqliteError, WriteError};
use crate::open::{checkpoint, with_full_sync};

/// The most jobs that wait, and that are committed together. Further callers wait for room.
const QUEUE: usize = 64;

/// The time that closing waits for readers.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(200);

/// A callback for when all commits are on disk.
pub type CommitHook = Box<dyn Fn() + Send>;

/// The failure that a commit survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CommitDurability {
    /// The death of the process.
    Process,
    /// The death of the machine, at the price of an fsync.
    Machine,
}

/// The options of a write, besides its statements.
#[derive(Debug, Clone, Copy)]
pub struct WriteOptions {
    operation: &'static str,
    /// `None` for a read.
    sync: Option<CommitDurability>,
    reaches: [Option<FaultPoint>; 3],
}

impl WriteOptions {
    /// Creates options for a write that survives the process. `operation` completes "cannot …".
    #[must_use]
    pub const fn new(operation: &'static str) -> Self {
        Self { operation, sync: Some(CommitDurability::Process), reaches: [None; 3] }
    }

    /// Sets the failure that the commit must survive.
    #[must_use]
    pub const fn sync(self, sync: CommitDurability) -> Self {
        Self { sync: Some(sync), ..self }
    }

    /// Adds a fault point directly after the commit. There are at most three.
    #[must_use]
    pub const fn reaches(self, point: FaultPoint) -> Self {
        let [_, before, last] = self.reaches;
        Self { reaches: [before, last, Some(point)], ..self }
    }
}

/// The callbacks for commits.
#[derive(Default)]
pub struct WriterHooks {
    /// Called for each commit with a fault point, before anybody is answered.
    pub faults: Option<Arc<dyn Faults>>,
    /// Called for each commit that survives the machine.
    pub synced: Option<CommitHook>,
}

/// A handle of a database's writer. Cheap to clone. The thread ends with the last handle.
#[derive(Clone)]
pub struct Writer {
    executor: Executor,
}

/// The executor of jobs.
#[derive(Clone)]
enum Executor {
    /// The writer thread.
    Thread { orders: SyncSender<Order>, waiting: WaitingCallers },
    /// The caller. `None` after closing. The lock is not held across an await.
    Caller(Arc<Mutex<Option<Worker>>>),
}

/// Callers that wait for room in the queue.
type WaitingCallers = Arc<Mutex<Vec<Waker>>>;

type LoneWork = Box<dyn FnOnce(&mut Option<Worker>) + Send>;

/// An order to the writer.
enum Order {
    /// Work in a transaction, which may be that of others, too.
    Together(WriteOptions, Box<dyn Job>),
    /// Work outside any transaction. Closing is one, and leaves no worker.
    Alone(LoneWork),
}

/// A job that is committed together with others.
trait Job: Send {
    /// Does the work. On failure nothing of it may remain. Returns SQLite's error, if that was
    /// the cause.
    fn work(&mut self, connection: &Connection) -> Result<(), Option<rusqlite::Error>>;
    /// Answers the caller, once the result of the commit is known.
    fn answer(self: Box<Self>, committed: Result<(), &rusqlite::Error>);
}

/// A job, before or after its work.
struct QueuedJob<W, T, E> {
    operation: &'static str,
    work: Option<W>,
    done: Option<Result<T, WriteError<E>>>,
    caller: oneshot::Sender<Result<T, E>>,
}

impl<W, T, E> Job for QueuedJob<W, T, E>
where
    W: FnOnce(&Connection) -> Result<T, WriteError<E>> + Send,
    T: Send,
    E: From<SqliteError> + Send,
{
    fn work(&mut self, connection: &Connection) -> Result<(), Option<rusqlite::Error>> {
        self.done = self.work.take().map(|work| work(connection));
        match &self.done {
            Some(Err(WriteError::Sql(error))) => Err(Some(copy_error(error))),
            Some(Err(WriteError::Refused(_))) | None => Err(None),
            Some(Ok(_)) => Ok(()),
        }
    }

    fn answer(self: Box<Self>, committed: Result<(), &rusqlite::Error>) {
        let Self { operation, done, caller, .. } = *self;
        let done = match (done, committed) {
            // A refusal stands, whatever became of the others.
            (Some(Err(halt)), _) => Err(halt),
            (_, Err(error)) => Err(WriteError::Sql(copy_error(error))),
            (Some(done), Ok(())) => done,
            (None, Ok(())) => {
                Err(WriteError::Refused(SqliteError::WriterGone { operation }.into()))
            }
        };
        // silent-ok: the caller stopped waiting. The work is done anyway.
        caller.send(done.map_err(|halt| halt.during(operation))).ok();
    }
}

impl Writer {
    /// Starts a writer thread with this name.
    ///
    /// # Errors
    /// Returns [`SqliteError::Spawn`].
    pub fn start(
        connection: Connection,
        name: &str,
        hooks: WriterHooks,
    ) -> Result<Self, SqliteError> {
        let (orders, inbox) = sync_channel(QUEUE);
        let waiting = WaitingCallers::default();
        let inbox = Inbox { orders: inbox, waiting: WakeOnDrop(Arc::clone(&waiting)) };
        let mut worker = Some(Worker { connection, hooks });
        let work = move || {
            while worker.is_some()
                && let Some(orders) = inbox.next()
            {
                carry_out(&mut worker, orders);
            }
        };
        let thread = std::thread::Builder::new().name(name.to_owned());
        thread.spawn(work).map_err(SqliteError::Spawn)?;
        Ok(Self { executor: Executor::Thread { orders, waiting } })
    }

    /// Creates a writer without a thread, for a simulation. Each job runs in its caller and
    /// blocks it.
    #[must_use]
    pub fn in_caller(connection: Connection, hooks: WriterHooks) -> Self {
        let worker = Some(Worker { connection, hooks });
        Self { executor: Executor::Caller(Arc::new(Mutex::new(worker))) }
    }

    /// Does work in a transaction, and waits until it is committed. The work is done even if the
    /// caller stops waiting.
    ///
    /// # Errors
    /// Returns the refusal of the work, SQLite's failure, or [`SqliteError::WriterGone`].
    pub async fn write<T: Send + 'static, E: From<SqliteError> + Send + 'static>(
        &self,
        write: WriteOptions,
        work: impl FnOnce(&Connection) -> Result<T, WriteError<E>> + Send + 'static,
    ) -> Result<T, E> {
        let operation = write.operation;
        let (caller, answered) = oneshot::channel();
        let job = Box::new(QueuedJob { operation, work: Some(work), done: None, caller });
        self.order(Order::Together(write, job)).await;
        answered.await.map_err(|_| SqliteError::WriterGone { operation })?
    }

    /// Does work that only reads, in the order of the calls: it sees earlier writes. `operation`
    /// completes "cannot …".
    ///
    /// # Errors
    /// As [`Writer::write`].
    pub async fn read<T: Send + 'static, E: From<SqliteError> + Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, WriteError<E>> + Send + 'static,
    ) -> Result<T, E> {
        self.write(WriteOptions { sync: None, ..WriteOptions::new(operation) }, work).await
    }

    /// Does work that is impossible in a transaction. `operation` completes "cannot …".
    ///
    /// # Errors
    /// As [`Writer::write`].
    pub async fn alone<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, SqliteError> {
        self.run_on_worker(operation, |open| open.as_mut().map(|it| work(&mut it.connection))).await
    }

    /// Folds the log back into the file.
    ///
    /// # Errors
    /// As [`Writer::write`].
    pub async fn checkpoint(&self) -> Result<(), SqliteError> {
        let fold = |open: &mut Option<Worker>| {
            open.as_ref().map(|it| checkpoint(&it.connection).map(|()| it.synced()))
        };
        self.run_on_worker("fold the log back", fold).await
    }

    async fn run_on_worker<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&mut Option<Worker>) -> Option<rusqlite::Result<T>> + Send + 'static,
    ) -> Result<T, SqliteError> {
        let (caller, answered) = oneshot::channel();
        let alone = move |open: &mut Option<Worker>| {
            // silent-ok: the caller stopped waiting. The work is done anyway.
            work(open).and_then(|done| caller.send(done).ok());
        };
        self.order(Order::Alone(Box::new(alone))).await;
        let done = answered.await.map_err(|_| SqliteError::WriterGone { operation })?;
        done.map_err(|source| SqliteError::Operation { operation, source })
    }

    /// Finishes earlier jobs, folds the log back and closes the database, so that the next start
    /// has nothing to check. Later callers get [`SqliteError::WriterGone`].
    ///
    /// # Errors
    /// Returns [`SqliteError::WriterGone`] if the writer had ended before. Fails if SQLite cannot
    /// fold the log.
    pub async fn close(self) -> Result<(), SqliteError> {
        let end = |open: &mut Option<Worker>| open.take().map(Worker::close);
        self.run_on_worker("close the database", end).await
    }

    /// Queues an order once there is room. If no writer is left, the order is dropped, and with
    /// it its reply channel.
    async fn order(&self, order: Order) {
        match &self.executor {
            Executor::Thread { orders, waiting } => {
                let mut order = Some(order);
                poll_fn(|context| {
                    // Held while the queue is checked, so that no wake-up is missed.
                    let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
                    let Some(Err(TrySendError::Full(back))) =
                        order.take().map(|order| orders.try_send(order))
                    else {
                        return Poll::Ready(());
                    };
                    order = Some(back);
                    if !waiting.iter().any(|waker| waker.will_wake(context.waker())) {
                        waiting.push(context.waker().clone());
                    }
                    Poll::Pending
                })
                .await;
            }
            Executor::Caller(worker) => {
                // A panicked caller has left an unknown state.
                if let Ok(mut worker) = worker.lock() {
                    carry_out(&mut worker, vec![order]);
                }
            }
        }
    }
}

/// The queue of the thread.
struct Inbox {
    orders: Receiver<Order>,
    /// Dropped after the orders, so that woken callers find the queue closed.
    waiting: WakeOnDrop,
}

struct WakeOnDrop(WaitingCallers);

impl Inbox {
    /// Returns the waiting orders, or `None` when no handle is left. Further orders gather while
    /// these are synced.
    fn next(&self) -> Option<Vec<Order>> {
        // silent-ok: the last handle is gone, which is a way to end.
        let first = self.orders.recv().ok()?;
        // silent-ok: nothing else waits.
        let more = std::iter::from_fn(|| self.orders.try_recv().ok());
        let orders = std::iter::once(first).chain(more).take(QUEUE).collect();
        self.waiting.wake();
        Some(orders)
    }
}

impl WakeOnDrop {
    fn wake(&self) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.drain(..).for_each(Waker::wake);
    }
}

impl Drop for WakeOnDrop {
    fn drop(&mut self) {
        self.wake();
    }
}

/// Carries out orders in order. Orders after a close are dropped.
fn carry_out(worker: &mut Option<Worker>, orders: Vec<Order>) {
    let mut jobs = Vec::new();
    for order in orders {
        let Some(open) = worker else { return };
        match order {
            Order::Together(write, job) => jobs.push((write, job)),
            Order::Alone(work) => {
                open.commit(std::mem::take(&mut jobs));
                work(worker);
            }
        }
    }
    if let Some(open) = worker {
        open.commit(jobs);
    }
}

/// The connection, and the callbacks for its commits.
struct Worker {
    connection: Connection,
    hooks: WriterHooks,
}

impl Worker {
    /// Commits jobs in one transaction, then answers each.
    fn commit(&mut self, mut jobs: Vec<(WriteOptions, Box<dyn Job>)>) {
        if jobs.is_empty() {
            return;
        }
        let connection = &mut self.connection;
        let done = match jobs.iter().map(|(write, _)| write.sync).max().flatten() {
            None => commit(connection, TransactionBehavior::Deferred, &mut jobs),
            Some(CommitDurability::Process) => {
                commit(connection, TransactionBehavior::Immediate, &mut jobs)
            }
            Some(CommitDurability::Machine) => with_full_sync(connection, |connection| {
                commit(connection, TransactionBehavior::Immediate, &mut jobs)
            }),
        };
        if let Ok(kept) = &done {
            if kept.iter().any(|write| write.sync == Some(CommitDurability::Machine)) {
                self.synced();
            }
            if let Some(faults) = &self.hooks.faults {
                kept.iter()
                    .flat_map(|write| write.reaches)
                    .flatten()
                    .for_each(|it| faults.reach(it));
            }
        }
        let committed = done.map(drop);
        for (_, job) in jobs {
            job.answer(committed.as_ref().copied());
        }
    }

    fn synced(&self) {
        if let Some(synced) = &self.hooks.synced {
            synced();
        }
    }

    fn close(self) -> rusqlite::Result<()> {
        // Closing does not wait for a slow reader: then the next start checks the database.
        self.connection.busy_timeout(CLOSE_TIMEOUT)?;
        checkpoint(&self.connection)
    }
}

/// Commits the successful jobs, and returns the options of those that write. An error affects all
/// of them: on a full disk, for instance, SQLite may roll back everything.
fn commit(
    connection: &mut Connection,
    behavior: TransactionBehavior,
    jobs: &mut [(WriteOptions, Box<dyn Job>)],
) -> rusqlite::Result<Vec<WriteOptions>> {
    let mut sql = connection.transaction_with_behavior(behavior)?;
    let mut kept = Vec::new();
    // A single job rolls back the whole transaction. A savepoint would copy each changed page.
    if let [(write, job)] = jobs
        && write.sync.is_some()
    {
        match job.work(&sql) {
            Ok(()) => sql.commit().map(|()| kept.push(*write))?,
            Err(failed) => sql.rollback().map_err(|lost| failed.unwrap_or(lost))?,
        }
        return Ok(kept);
    }
    for (write, job) in jobs {
        if write.sync.is_none() {
            // silent-ok: the job keeps its error for its reply, and has changed nothing.
            job.work(&sql).ok();
            continue;
        }
        let mut savepoint = sql.savepoint()?;
        match job.work(&savepoint) {
            Ok(()) => kept.push(*write),
            Err(failed) => savepoint.rollback().map_err(|lost| failed.unwrap_or(lost))?,
        }
        savepoint.commit()?;
    }
    sql.commit()?;
    Ok(kept)
}

/// Copies an error for each of the callers that it concerns.
fn copy_error(error: &rusqlite::Error) -> rusqlite::Error {
    let code = error.sqlite_error().copied().unwrap_or(ffi::Error::new(ffi::SQLITE_ABORT));
    rusqlite::Error::SqliteFailure(code, Some(error.to_string()))
}

/// Does one transaction that is on disk when it returns, for single writers without a thread.
/// Failing work leaves nothing behind.
///
/// # Errors
/// Returns the failure of the work or of SQLite.
pub fn write_synced<T, E: From<rusqlite::Error>>(
    connection: &mut Connection,
    work: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
) -> Result<T, E> {
    with_full_sync(connection, |connection| {
        let sql = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = work(&sql)?;
        sql.commit()?;
        Ok(done)
    })
}

#[cfg(test)]
mod tests;

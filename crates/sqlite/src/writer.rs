//! The one hand that writes to a database, and the transactions that it runs.
//!
//! Jobs come through a bounded queue. What waits together goes into one transaction, each
//! job in a savepoint of it where there are several, so that one that fails rolls back alone; one commit for all of
//! them, synced when any of them asks for that, and only then the fault points and the
//! answers. A panic in a job ends the thread and rolls back all that was not yet answered:
//! every caller, those that wait and all later ones, gets [`SqliteError::WriterGone`].
//! Nobody may go on with a state that nobody knows. In a simulation there is no such
//! thread: whoever asks runs the job, alone in its transaction, so that a history depends on
//! nothing but its seed. There is no runtime here: the thread waits by itself, and who
//! waits for it does so in any.

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

/// Jobs that may wait, and jobs that are committed together, at most; a caller beyond them
/// waits itself.
const QUEUE: usize = 64;

/// How long the end of a writer waits for who reads.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(200);

/// Who is told that everything that was committed is on the disk.
pub type CommitHook = Box<dyn Fn() + Send>;

/// What a commit survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CommitDurability {
    /// The death of the process.
    Process,
    /// The death of the machine, at the price of an fsync.
    Machine,
}

/// How a write is done, besides its statements.
#[derive(Debug, Clone, Copy)]
pub struct WriteOptions {
    operation: &'static str,
    /// Nothing where it only reads.
    sync: Option<CommitDurability>,
    reaches: [Option<FaultPoint>; 3],
}

impl WriteOptions {
    /// A write that survives the process. `operation` completes "cannot …".
    #[must_use]
    pub const fn new(operation: &'static str) -> Self {
        Self { operation, sync: Some(CommitDurability::Process), reaches: [None; 3] }
    }

    /// What the commit that holds it has to survive.
    #[must_use]
    pub const fn sync(self, sync: CommitDurability) -> Self {
        Self { sync: Some(sync), ..self }
    }

    /// The next of the fault points that lie right after the commit that holds it, three at
    /// most.
    #[must_use]
    pub const fn reaches(self, point: FaultPoint) -> Self {
        let [_, before, last] = self.reaches;
        Self { reaches: [before, last, Some(point)], ..self }
    }
}

/// Who is told of commits.
#[derive(Default)]
pub struct WriterHooks {
    /// Of each that holds a write with a fault point; before anybody is answered.
    pub faults: Option<Arc<dyn Faults>>,
    /// Of each that survives the machine.
    pub synced: Option<CommitHook>,
}

/// A handle on the writer of a database. Cheap to clone; the thread ends with the last of
/// them.
#[derive(Clone)]
pub struct Writer {
    executor: Executor,
}

/// Who runs the jobs.
#[derive(Clone)]
enum Executor {
    /// The thread.
    Thread { orders: SyncSender<Order>, waiting: WaitingCallers },
    /// Whoever asks; nothing is left after the end. Nothing is awaited while it is held.
    Caller(Arc<Mutex<Option<Worker>>>),
}

/// Those who wait for a place in the queue.
type WaitingCallers = Arc<Mutex<Vec<Waker>>>;

type LoneWork = Box<dyn FnOnce(&mut Option<Worker>) + Send>;

/// What the writer is told.
enum Order {
    /// Work in a transaction, which may be that of others, too.
    Together(WriteOptions, Box<dyn Job>),
    /// Work outside any transaction; also the end of it all, which leaves no worker.
    Alone(LoneWork),
}

/// The work of somebody, among that which is committed together.
trait Job: Send {
    /// Does it; what SQLite failed with, if it did, where nothing of it is to stay.
    fn work(&mut self, connection: &Connection) -> Result<(), Option<rusqlite::Error>>;
    /// Answers, once it is known what became of all of them.
    fn answer(self: Box<Self>, committed: Result<(), &rusqlite::Error>);
}

/// A job before its work and after it.
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
            Some(Err(WriteError::Sql(error))) => Err(Some(same(error))),
            Some(Err(WriteError::Refused(_))) | None => Err(None),
            Some(Ok(_)) => Ok(()),
        }
    }

    fn answer(self: Box<Self>, committed: Result<(), &rusqlite::Error>) {
        let Self { operation, done, caller, .. } = *self;
        let done = match (done, committed) {
            // A refusal stands, whatever became of the others.
            (Some(Err(halt)), _) => Err(halt),
            (_, Err(error)) => Err(WriteError::Sql(same(error))),
            (Some(done), Ok(())) => done,
            (None, Ok(())) => {
                Err(WriteError::Refused(SqliteError::WriterGone { operation }.into()))
            }
        };
        // silent-ok: the caller stopped waiting; the work is done all the same.
        caller.send(done.map_err(|halt| halt.during(operation))).ok();
    }
}

impl Writer {
    /// Has a thread of this name write.
    ///
    /// # Errors
    /// [`SqliteError::Spawn`].
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

    /// The same without a thread, for a simulation: each job is done where it is asked for,
    /// and blocks there.
    #[must_use]
    pub fn in_caller(connection: Connection, hooks: WriterHooks) -> Self {
        let worker = Some(Worker { connection, hooks });
        Self { executor: Executor::Caller(Arc::new(Mutex::new(worker))) }
    }

    /// Does some work in a transaction, and waits until that is committed. It is done even
    /// when nobody waits for it any more.
    ///
    /// # Errors
    /// What the work refuses with, what SQLite fails with, [`SqliteError::WriterGone`].
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

    /// The same for work that only reads, in the order of its asking: it sees what was
    /// written before. `operation` completes "cannot …".
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

    /// Does what cannot be done in a transaction. `operation` completes "cannot …".
    ///
    /// # Errors
    /// As [`Writer::write`].
    pub async fn alone<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, SqliteError> {
        self.on_worker(operation, |open| open.as_mut().map(|it| work(&mut it.connection))).await
    }

    /// Folds the log back into the file.
    ///
    /// # Errors
    /// As [`Writer::write`].
    pub async fn checkpoint(&self) -> Result<(), SqliteError> {
        let fold = |open: &mut Option<Worker>| {
            open.as_ref().map(|it| checkpoint(&it.connection).map(|()| it.synced()))
        };
        self.on_worker("fold the log back", fold).await
    }

    async fn on_worker<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&mut Option<Worker>) -> Option<rusqlite::Result<T>> + Send + 'static,
    ) -> Result<T, SqliteError> {
        let (caller, answered) = oneshot::channel();
        let alone = move |open: &mut Option<Worker>| {
            // silent-ok: the caller stopped waiting; the work is done all the same.
            work(open).and_then(|done| caller.send(done).ok());
        };
        self.order(Order::Alone(Box::new(alone))).await;
        let done = answered.await.map_err(|_| SqliteError::WriterGone { operation })?;
        done.map_err(|source| SqliteError::Operation { operation, source })
    }

    /// Does what was asked for before, folds the log back and waits until the database is
    /// closed, so that the next start has nothing to check. Whoever asks later gets
    /// [`SqliteError::WriterGone`].
    ///
    /// # Errors
    /// [`SqliteError::WriterGone`] when it had ended before; when SQLite cannot fold the log.
    pub async fn close(self) -> Result<(), SqliteError> {
        let end = |open: &mut Option<Worker>| open.take().map(Worker::close);
        self.on_worker("close the database", end).await
    }

    /// Gives an order, once there is room for it. Where nobody is left who could carry it
    /// out, it is dropped, and with it the way of its answer.
    async fn order(&self, order: Order) {
        match &self.executor {
            Executor::Thread { orders, waiting } => {
                let mut order = Some(order);
                poll_fn(|context| {
                    // Held while the queue is looked at, so that no call to wake up is missed.
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
                // One who panicked has left a state that nobody knows.
                if let Ok(mut worker) = worker.lock() {
                    carry_out(&mut worker, vec![order]);
                }
            }
        }
    }
}

/// What the thread is told.
struct Inbox {
    orders: Receiver<Order>,
    /// After the orders, since who waits has to find that nobody takes them any more.
    waiting: WakeOnDrop,
}

struct WakeOnDrop(WaitingCallers);

impl Inbox {
    /// What waits together; nothing once nobody can ask any more. While it is being
    /// synced, the next ones gather.
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

/// Carries these out in their order; what comes after an end is dropped.
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

/// The connection, and who is told of its commits.
struct Worker {
    connection: Connection,
    hooks: WriterHooks,
}

impl Worker {
    /// Does these in one transaction, and answers each when that is committed.
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
        // A reader that stays for long is not waited for: then the next start checks.
        self.connection.busy_timeout(CLOSE_TIMEOUT)?;
        checkpoint(&self.connection)
    }
}

/// Commits what of these succeeds; those of them that write. An error here is one of all of
/// them: a full disk for instance can have SQLite roll everything back.
fn commit(
    connection: &mut Connection,
    behavior: TransactionBehavior,
    jobs: &mut [(WriteOptions, Box<dyn Job>)],
) -> rusqlite::Result<Vec<WriteOptions>> {
    let mut sql = connection.transaction_with_behavior(behavior)?;
    let mut kept = Vec::new();
    // One that is alone rolls all of it back: a savepoint would copy each page that it changes.
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
            // silent-ok: the job keeps its error for its answer, and has changed nothing.
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

/// The same error once more, for each of those whom it concerns.
fn same(error: &rusqlite::Error) -> rusqlite::Error {
    let code = error.sqlite_error().copied().unwrap_or(ffi::Error::new(ffi::SQLITE_ABORT));
    rusqlite::Error::SqliteFailure(code, Some(error.to_string()))
}

/// Does one transaction that is on the disk when it returns, for who writes alone and in no
/// thread. Work that fails leaves nothing behind.
///
/// # Errors
/// What the work fails with, or SQLite.
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

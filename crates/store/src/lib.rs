//! What the automaton stores: its life, its turns, its messages, its memory.
//!
//! [`Store`] is an async handle on the one thread that writes; every method is
//! one transaction, and those that a crash can make somebody repeat are
//! idempotent. [`Reader`] is for commands that only look. Each table has its
//! repository: the module of its name, and the statements under `sql/`.
//!
//! Nothing here may ever decide what to do next; it refuses what would break the
//! record: an effect without a stored decision, a message answered twice, a call
//! started twice, a link of the audit chain changed.

mod audit;
mod calls;
mod codec;
mod decisions;
mod error;
mod history;
mod inbox;
mod life;
mod memory;
mod outbox;
mod reader;
mod recover;
mod retention;
mod schedule;
mod sessions;
mod thread;
mod turns;
mod wakes;

use std::path::Path;
use std::sync::Arc;

use automaton_core::faults::Faults;
use automaton_core::id::Mint;
use automaton_sqlite::Migration;

pub use audit::{Break, ChainReport, LinkKind, Problem};
pub use automaton_sqlite::SqliteError;
pub use automaton_sqlite::chain::Hash;
pub use decisions::{DecisionRecord, NewDecision};
pub use error::StoreError;
pub use inbox::{CRASHES_MAX, INBOX_WAITING_MAX, InboxCounts};
pub use life::{Life, NewAutomaton};
pub use memory::{FACTS_MAX, Fact, FactQuery, NewFact, Upsert};
pub use outbox::OutboxMessage;
pub use reader::{Reader, TurnRef};
pub use recover::Recovered;
pub use retention::{Deleted, Limits};
pub use schedule::{Lease, ScheduledTask, Task, TaskFinish, TaskResult};
pub use sessions::{ClosedSession, SessionRecord};
pub use turns::{Blame, Ingest, JudgedCall, Judgement, OpenedTurn};
pub use wakes::WAKES_PENDING_MAX;

/// The schema, step by step.
pub(crate) const MIGRATIONS: &[Migration] =
    &[Migration { version: 1, name: "init", sql: include_str!("../migrations/0001_init.sql") }];

/// The database of one automaton. Cheap to clone.
///
/// Dropping a future of a method does not undo its write: the job is with the
/// writer by then, and runs.
#[derive(Clone)]
pub struct Store {
    writer: thread::Writer,
}

impl Store {
    /// Opens the database, makes or migrates it, and starts the writer thread.
    /// Blocks for as long as checking the file takes.
    ///
    /// # Errors
    /// [`StoreError::Open`] when the file is newer, damaged, foreign or out of
    /// reach; it is left as it is then.
    pub fn open(path: &Path, mint: Mint, faults: Arc<dyn Faults>) -> Result<Self, StoreError> {
        let writer = thread::Writer::spawn(thread::open(path)?, mint, faults)?;
        Ok(Self { writer })
    }

    /// Ends the writer thread after the jobs before, and waits for it. Clones of
    /// the handle then get [`StoreError::WriterGone`].
    ///
    /// # Errors
    /// [`StoreError::WriterGone`] when the thread had ended before.
    pub async fn close(self) -> Result<(), StoreError> {
        self.writer.close().await
    }

    /// Folds the write-ahead log back into the database file.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn checkpoint(&self) -> Result<(), StoreError> {
        let fold = |db: &mut thread::Db| {
            Ok(db.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?)
        };
        self.writer.run("fold the log back", fold).await
    }
}

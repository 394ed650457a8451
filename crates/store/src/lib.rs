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

mod approvals;
mod audit;
mod calls;
mod codec;
mod costs;
mod decisions;
mod error;
mod hibernation;
mod history;
mod inbox;
mod ledger;
mod life;
mod memory;
mod outbox;
mod pnl;
mod reader;
mod recover;
mod retention;
mod schedule;
mod sessions;
mod spends;
mod thread;
mod turns;
mod wakes;

use automaton_sqlite::Migration;

pub use approvals::{Answer, Approval, ApprovalState, Question, Which};
pub use audit::{Break, ChainReport, LinkKind, Problem};
pub use automaton_sqlite::SqliteError;
pub use automaton_sqlite::chain::Hash;
pub use costs::{Asked, NewAnswer, Totals};
pub use decisions::{DecisionRecord, NewDecision};
pub use error::StoreError;
pub use inbox::{CRASHES_MAX, INBOX_WAITING_MAX, InboxCounts};
pub use ledger::{Category, Revenue};
pub use life::{Life, NewAutomaton};
pub use memory::{FACTS_MAX, Fact, FactQuery, NewFact, Upsert};
pub use outbox::OutboxMessage;
pub use reader::{Reader, TurnRef};
pub use recover::Recovered;
pub use retention::{Deleted, Limits};
pub use schedule::{Lease, ScheduledTask, Task, TaskFinish, TaskResult};
pub use sessions::ClosedSession;
pub use spends::{Recent, RefusedDemand, SpendStep};
pub use thread::Synced;
pub use turns::{Blame, Ingest, JudgedCall, Judgement, OpenedTurn};
pub use wakes::WAKES_PENDING_MAX;

/// The schema, step by step.
pub(crate) const MIGRATIONS: &[Migration] = &[
    Migration { version: 1, name: "init", sql: include_str!("../migrations/0001_init.sql") },
    Migration { version: 2, name: "spends", sql: include_str!("../migrations/0002_spends.sql") },
    Migration { version: 3, name: "books", sql: include_str!("../migrations/0003_books.sql") },
    Migration {
        version: 4,
        name: "treasury",
        sql: include_str!("../migrations/0004_treasury.sql"),
    },
];

/// The database of one automaton. Cheap to clone.
///
/// Dropping a future of a method does not undo its write: the job is with the
/// writer by then, and runs.
#[derive(Clone)]
pub struct Store {
    hands: thread::Hands,
}

impl Store {
    /// Folds the write-ahead log back into the database file.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn checkpoint(&self) -> Result<(), StoreError> {
        let fold = |db: &mut thread::Db| {
            Ok(db.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?)
        };
        self.run("fold the log back", fold).await
    }
}

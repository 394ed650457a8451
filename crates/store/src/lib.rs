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

mod account;
mod alerts;
mod approvals;
mod audit;
mod calls;
mod codec;
mod conversation;
mod costs;
mod decisions;
mod dossier;
mod egress;
mod error;
mod hibernation;
mod history;
mod inbox;
mod ledger;
mod life;
mod memory;
mod metrics;
mod open;
mod origins;
mod outbox;
mod paths;
mod pnl;
mod prompts;
mod questions;
mod rates;
mod reader;
mod record;
mod recover;
mod retention;
mod schedule;
mod sessions;
mod shown;
mod spends;
mod stretch;
mod tallies;
mod thread;
mod turns;
mod vitals;
mod wakes;
mod windows;

use automaton_sqlite::{Migration, Schema};

pub use account::HowFar;
pub use approvals::{Answer, Approval, ApprovalState, Hand, Subject, Which};
pub use audit::{Break, ChainReport, LinkKind, Problem};
pub use automaton_sqlite::SqliteError;
pub use automaton_sqlite::chain::Hash;
pub use conversation::{Speaker, Standing, Utterance};
pub use costs::{Asked, NewAnswer, Totals, Unheard};
pub use decisions::{DecisionRecord, NewDecision, Under};
pub use dossier::{Booked, Dossier, Effort, Intended, Payment, Woke};
pub use egress::{EgressRecord, NewEgress};
pub use error::StoreError;
pub use inbox::{CRASHES_MAX, Claims, INBOX_WAITING_MAX, InboxCounts};
pub use ledger::{Category, Revenue};
pub use life::{Life, NewAutomaton};
pub use memory::{FACTS_MAX, Fact, FactQuery, NewFact, Upsert};
pub use metrics::Measures;
pub use open::{OPEN_MESSAGES_MAX, OpenMessage};
pub use outbox::OutboxMessage;
pub use prompts::{KeptLayer, KeptPrompt};
pub use questions::{Question, call_sha256};
pub use rates::RateLimit;
pub use reader::{Reader, TurnRef};
pub use record::{BadExport, Departure, Head, Link, Record, verify_export};
pub use recover::Recovered;
pub use retention::{Deleted, Limits};
pub use schedule::{
    AGENT_TASKS_MAX, Booking, Lease, Origin, RETRY_DELAY, Rhythm, ScheduledTask, Task, TaskFinish,
    TaskResult, TaskRun, Times, WAKES_PER_WINDOW,
};
pub use sessions::ClosedSession;
pub use shown::{KeptDigest, Place};
pub use spends::{Recent, RefusedDemand, SpendStep};
pub use tallies::{Histogram, Tallies};
pub use thread::Synced;
pub use turns::{Blame, CallQuestion, Delivered, Ingest, JudgedCall, Judgement, OpenedTurn};
pub use vitals::TierChange;
pub use wakes::WAKES_PENDING_MAX;

/// The schema, step by step, of databases with the id `AUTA`.
pub(crate) const SCHEMA: Schema = Schema::new(
    0x4155_5441,
    &[Migration::new(1, "init", include_str!("../migrations/0001_init.sql"))],
);

/// Free bytes that are worth copying the database for.
const VACUUM_BYTES_MIN: i64 = 1 << 20;

/// The largest database that is copied, since nobody can write meanwhile.
const VACUUM_BYTES_MAX: i64 = 256 << 20;

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
        let fold = |db: &mut thread::Db| Ok(automaton_sqlite::checkpoint(&db.connection)?);
        self.run("fold the log back", fold).await
    }

    /// Gives free space back to the disk when it is a good part of the file, and the
    /// file is small enough to be copied while everybody waits; how many bytes.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn vacuum(&self) -> Result<u64, StoreError> {
        let pack = |db: &mut thread::Db| {
            let free = "SELECT (freelist_count * page_size) AS free, (page_count * page_size) AS size \
                 FROM pragma_freelist_count, pragma_page_count, pragma_page_size";
            let read = |row: &rusqlite::Row<'_>| Ok((row.get("free")?, row.get("size")?));
            let (free, size): (i64, i64) = db.connection.query_row(free, [], read)?;
            if free < VACUUM_BYTES_MIN || free < size / 4 || size > VACUUM_BYTES_MAX {
                return Ok(0);
            }
            db.connection.execute_batch("VACUUM")?;
            Ok(free.unsigned_abs())
        };
        self.run("give space back", pack).await
    }
}

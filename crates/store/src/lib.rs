//! The automaton's store: its life, its turns, its messages, its memory.
//!
//! [`Store`] is an async handle on the one writer; every method is one transaction, and
//! those that a crash can make somebody repeat are idempotent. [`Reader`] is for commands
//! that only look. Each table has its repository: the module of its name, and the
//! statements under `sql/`.
//!
//! Nothing here may ever decide what to do next; it refuses what would break the
//! record: an effect without a stored decision, a message answered twice, a call
//! started twice, a link of the audit chain changed.

mod account;
mod alerts;
mod approval_requests;
mod approvals;
mod audit;
mod calls;
mod choices;
mod codec;
mod conversation;
mod costs;
mod decisions;
mod egress;
mod error;
mod hibernation;
mod history;
mod history_position;
mod inbox;
mod ledger;
mod life;
mod lifetime_counters;
mod memory;
mod metrics;
mod open;
mod origins;
mod outbox;
mod paths;
mod payments;
mod pnl;
mod prompts;
mod published;
mod rates;
mod reader;
mod record;
mod recover;
mod releases;
mod retention;
mod rows;
mod sales;
mod schedule;
mod sessions;
mod soul;
mod summaries;
mod task_requests;
mod thread;
mod turn_details;
mod turn_reads;
mod turns;
mod unattended_usage;
mod vectors;
mod vitals;
mod wakes;
mod windows;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use automaton_core::id::IdGenerator;
use automaton_sqlite::{Migration, Schema, Writer};

pub use account::{AccountPage, Cursor};
pub use approval_requests::{ApprovalRequest, AskedApproval, call_sha256};
pub use approvals::{Approval, ApprovalAuthor, ApprovalFilter, ApprovalState, ApprovalSubject};
pub use audit::{ChainBreak, ChainProblem, ChainReport, LinkKind};
pub use automaton_sqlite::SqliteError;
pub use automaton_sqlite::chain::Hash;
pub use choices::{ChosenModel, ModelSpend};
pub use conversation::{ConversationMessage, MessageStatus, Speaker};
pub use costs::{
    AnswerEnd, AskedAnswer, CostReservation, CostTotals, NewCostReservation, UnsettledCost,
};
pub use decisions::{DecisionContext, DecisionRecord, NewDecision};
pub use egress::{EgressRecord, NewEgress};
pub use error::StoreError;
pub use history_position::{DigestRow, HistoryPosition};
pub use inbox::{CRASHES_MAX, ClaimOptions, INBOX_WAITING_MAX, InboxCounts};
pub use ledger::{LedgerCategory, Revenue};
pub use life::{AutomatonRow, NewAutomaton};
pub use lifetime_counters::{Histogram, LifetimeCounters};
pub use memory::{FACTS_MAX, OUTSIDE_MAX, WORKING_MAX};
pub use metrics::LifetimeMetrics;
pub use open::{OPEN_MESSAGES_MAX, OpenMessage};
pub use outbox::OutboxMessage;
pub use payments::{PaymentStep, RecentPayments, RefusedDemand};
pub use prompts::{PromptLayerRow, PromptRow};
pub use published::{PublicationState, PublishedPort};
pub use rates::RateLimit;
pub use reader::{Reader, TurnRef};
pub use record::{
    ChainDivergence, ChainHead, ChainLink, Column, ExportError, ExportHeader, verify_export,
};
pub use recover::RecoverySummary;
pub use releases::MachineRelease;
pub use retention::{RetentionPolicy, RetentionResult};
pub use sales::{PortSales, total_amount};
pub use schedule::{
    AGENT_TASKS_MAX, Lease, LeaseRequest, RETRY_DELAY, ScheduleRule, ScheduleTimes, ScheduledTask,
    TaskConfig, TaskFinish, TaskOrigin, TaskResult, TaskRun, WAKES_PER_WINDOW,
};
pub use sessions::ClosedSession;
pub use soul::{SoulEvidence, SoulReflectionRow};
pub use summaries::{NewSummary, UnsummarizedTurns};
pub use thread::CommitHook;
pub use turn_details::{
    CallDetails, IntentDetails, LedgerDetails, PaymentDetails, TurnDetails, WakeCauseDetails,
};
pub use turn_reads::{StartedTurn, TurnRecall, TurnRequest, WakeQuery, WakeSnapshot};
pub use turns::{
    CallApprovalRequest, FailureCause, JudgedCall, Judgement, OpenedTurn, OutgoingMessage,
};
pub use vectors::EmbeddingProgress;
pub use vitals::TierChange;
pub use wakes::WAKES_PENDING_MAX;

/// The schema, step by step, of databases with the id `AUTA`.
pub(crate) const SCHEMA: Schema = Schema::new(
    0x4155_5441,
    &[
        Migration::new(2, "init", include_str!("../migrations/0001_init.sql")),
        Migration::new(3, "mind", include_str!("../migrations/0002_mind.sql")),
        Migration::new(4, "vectors", include_str!("../migrations/0003_vectors.sql")),
        Migration::new(5, "summaries", include_str!("../migrations/0004_summaries.sql")),
        Migration::new(6, "centroid", include_str!("../migrations/0005_centroid.sql")),
        Migration::new(7, "vector_parts", include_str!("../migrations/0006_vector_parts.sql")),
        Migration::new(8, "thinking_hours", include_str!("../migrations/0007_thinking_hours.sql")),
    ],
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
    writer: Writer,
    watch: Arc<rows::watch::Watch>,
    ids: IdGenerator,
    vectors: Arc<Mutex<vectors::VectorCache>>,
    /// Number of times that vectors were stored.
    vectors_kept: Arc<AtomicU64>,
    awaited: costs::AwaitedAnswers,
}

impl Store {
    /// Folds the write-ahead log back into the database file.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn checkpoint(&self) -> Result<(), StoreError> {
        Ok(self.writer.checkpoint().await?)
    }

    /// Gives free space back to the disk when it is a good part of the file, and the
    /// file is small enough to be copied while everybody waits; how many bytes.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn vacuum(&self) -> Result<u64, StoreError> {
        let pack = |connection: &mut rusqlite::Connection| {
            let free = "SELECT (freelist_count * page_size) AS free, (page_count * page_size) AS size \
                 FROM pragma_freelist_count, pragma_page_count, pragma_page_size";
            let read = |row: &rusqlite::Row<'_>| Ok((row.get("free")?, row.get("size")?));
            let (free, size): (i64, i64) = connection.query_row(free, [], read)?;
            if free < VACUUM_BYTES_MIN || free < size / 4 || size > VACUUM_BYTES_MAX {
                return Ok(0);
            }
            connection.execute_batch("VACUUM")?;
            Ok(free.unsigned_abs())
        };
        Ok(self.writer.alone("give space back", pack).await?)
    }
}

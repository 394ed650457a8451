//! A look at the database for commands, beside the process that lives in it.
//!
//! Opens its own connection, which refuses every write, and never migrates. What
//! it returns is the last committed state.

use std::path::Path;

use automaton_core::id::{ApprovalId, MessageId, TurnId};
use automaton_core::memory::{MemoryId, MemoryItem, MemoryMatches, MemoryQuery};
use automaton_core::record::{TurnRecord, WakeCause};
use automaton_core::time::Timestamp;
use automaton_core::trust::Labelled;
use rusqlite::Connection;

use crate::approvals::{self, Approval, ApprovalFilter};
use crate::audit::{self, ChainReport};
use crate::codec::get;
use crate::decisions::{self, DecisionRecord};
use crate::error::{StoreError, TxError};
use crate::inbox::{self, InboxCounts};
use crate::life::{self, AutomatonRow};
use crate::memory;
use crate::outbox::{self, OutboxMessage};
use crate::schedule::{self, ScheduledTask, TaskRun};
use crate::sessions::{self, ClosedSession};
use crate::thread::{ConnectionExt, sql};
use crate::vectors::{self, EmbeddingProgress, VectorCache};
use crate::{history, unattended_usage, wakes};

/// A read-only connection. Blocks; not for async code.
#[derive(Debug)]
pub struct Reader {
    connection: Connection,
}

/// A turn as a person names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnRef {
    /// The newest.
    Last,
    /// By its id.
    Id(TurnId),
    /// By its number in the automaton's life.
    Seq(u64),
}

impl Reader {
    /// Opens the database for reading.
    ///
    /// # Errors
    /// [`StoreError::Database`] when it is missing, older, newer or no database.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { connection: automaton_sqlite::open_read_only(path, &crate::SCHEMA)? })
    }

    pub(crate) fn read<T>(
        &self,
        operation: &'static str,
        read: impl FnOnce(&Connection) -> Result<T, TxError>,
    ) -> Result<T, StoreError> {
        read(&self.connection).map_err(|error| error.during(operation))
    }

    /// The automaton as a whole.
    ///
    /// # Errors
    /// [`StoreError::Unborn`] before its birth.
    pub fn life(&self) -> Result<AutomatonRow, StoreError> {
        self.read("read the life", life::life)
    }

    /// The newest turns of every status, oldest first.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn turns(&self, limit: u32) -> Result<Vec<TurnRecord>, StoreError> {
        self.read("read the turns", |connection| {
            history::turns(connection, sql!("turns_newest"), [limit])
        })
    }

    /// A decision, by its id or by that of its call.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn decision(&self, id: &str) -> Result<Option<DecisionRecord>, StoreError> {
        self.read("read a decision", |connection| decisions::by_id(connection, id))
    }

    /// The newest committed turns from a number on, oldest first: what a prompt
    /// is made of.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn recent_turns(&self, from_seq: u64, limit: u32) -> Result<Vec<TurnRecord>, StoreError> {
        self.read("read the turns", |connection| history::committed(connection, from_seq, limit))
    }

    /// Returns the candidates for a query of the memory.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn memories(&self, query: &MemoryQuery) -> Result<MemoryMatches, StoreError> {
        self.read("read the memory", |connection| {
            let mut found = memory::matches(connection, query)?;
            vectors::similar(connection, query, &mut found, &mut VectorCache::default())?;
            Ok(found)
        })
    }

    /// Returns the progress of vectors.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn embedding_progress(&self) -> Result<EmbeddingProgress, StoreError> {
        self.read("count the vectors", vectors::embedded)
    }

    /// Returns the working memory, most important first.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn working_memory(&self) -> Result<Vec<MemoryItem>, StoreError> {
        self.read("read the memory", memory::working)
    }

    /// One remembered item, also one that holds no more.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn memory(&self, id: MemoryId) -> Result<Option<MemoryItem>, StoreError> {
        self.read("read the memory", |connection| memory::item(connection, id))
    }

    /// These items, as far as they are there, in this order.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn memories_of(&self, ids: &[MemoryId]) -> Result<Vec<MemoryItem>, StoreError> {
        self.read("read the memory", |connection| {
            let items = ids.iter().map(|id| memory::item(connection, *id));
            items.filter_map(Result::transpose).collect()
        })
    }

    /// So many of all items that were ever remembered, oldest first, after one.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn memories_after(&self, id: MemoryId, most: u32) -> Result<Vec<MemoryItem>, StoreError> {
        self.read("read the memory", |connection| memory::every(connection, id, most))
    }

    /// Returns the start of the history that begins with this turn; `None` before the first.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn history_since(&self, from_seq: u64) -> Result<Option<Timestamp>, StoreError> {
        self.read("read the turns", |connection| history::since(connection, from_seq))
    }

    /// Returns the number of messages in each state.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn inbox_counts(&self) -> Result<InboxCounts, StoreError> {
        self.read("count the messages", inbox::counts)
    }

    /// Messages that wait, oldest first.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn waiting_messages(
        &self,
        limit: u32,
    ) -> Result<Vec<(MessageId, Timestamp, Labelled)>, StoreError> {
        self.read("read the inbox", |connection| inbox::waiting(connection, limit))
    }

    /// Messages to the creator after a number, oldest first.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn outbox_since(&self, after: u64, limit: u32) -> Result<Vec<OutboxMessage>, StoreError> {
        self.read("read the outbox", |connection| outbox::since(connection, after, limit))
    }

    /// Every heartbeat task, by name.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn schedule(&self) -> Result<Vec<ScheduledTask>, StoreError> {
        self.read("read the schedule", schedule::every)
    }

    /// Returns the latest runs of a heartbeat task, newest first, at most `limit`.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn task_runs(&self, name: &str, limit: u32) -> Result<Vec<TaskRun>, StoreError> {
        self.read("read the runs", |connection| schedule::runs(connection, name, limit))
    }

    /// The wake events that no session has consumed, oldest first.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn pending_wakes(&self) -> Result<Vec<(Timestamp, WakeCause)>, StoreError> {
        self.read("read the wake events", wakes::pending)
    }

    /// Returns true if the creator caused the newest wake cycle, or one that it continues.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn is_creators_wake(&self) -> Result<bool, StoreError> {
        self.read("read whose the wake cycle is", unattended_usage::creators)
    }

    /// The wake cycle that ended last.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn last_session(&self) -> Result<Option<ClosedSession>, StoreError> {
        self.read("read the last wake cycle", sessions::last)
    }

    /// Questions to the creator, newest first, `limit` at most.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn approvals(
        &self,
        which: ApprovalFilter,
        limit: u32,
    ) -> Result<Vec<Approval>, StoreError> {
        self.read("read the approvals", |connection| approvals::newest(connection, which, limit))
    }

    /// One question to the creator.
    ///
    /// # Errors
    /// [`StoreError::Missing`].
    pub fn approval(&self, id: ApprovalId) -> Result<Approval, StoreError> {
        self.read("read an approval", |connection| approvals::read_approval(connection, id))
    }

    /// Computes the audit chain again.
    ///
    /// # Errors
    /// When SQLite fails. A broken chain is a finding of the report.
    pub fn verify_chain(&self) -> Result<ChainReport, StoreError> {
        self.read("verify the audit chain", |connection| {
            // One moment of the database, whoever writes meanwhile.
            let moment = connection.unchecked_transaction()?;
            audit::verify(&moment)
        })
    }

    /// The size of the database in bytes, without free pages and without what is
    /// still in the log only.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn db_bytes(&self) -> Result<u64, StoreError> {
        self.read("measure the database", db_bytes)
    }
}

pub(crate) fn db_bytes(connection: &Connection) -> Result<u64, TxError> {
    let statement = "SELECT (page_count - freelist_count) * page_size AS bytes \
         FROM pragma_page_count, pragma_freelist_count, pragma_page_size";
    Ok(connection.one(statement, [], |row| get(row, "bytes"))?.unwrap_or(0))
}

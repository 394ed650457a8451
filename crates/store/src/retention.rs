//! Deletes what is old, so that the database stays small for a whole life.
//!
//! A row goes when it is older than the limit, or when its table has too many;
//! each call deletes at most a batch a table, so that the writer is never held
//! for long. The audit chain, decisions, intents, outcomes and bookings must
//! never be deleted, nor a turn that the prompt's history needs. What becomes of each table:
//!
//! | table | rows |
//! |---|---|
//! | `turns` | the old go, but for the newest |
//! | `turn_inputs` | go with their turn |
//! | `prompt_parts` | go with their last prompt |
//! | `inbox_messages` | the old go that were answered or given up, once no turn shows them |
//! | `outbox_messages` | the old go |
//! | `wake_events` | the old go that were consumed |
//! | `sessions` | the old go of which no turn and no event is left |
//! | `state_changes` | the old go |
//! | `egress` | the old go |
//! | `unsettled_answers` | the old go |
//! | `heartbeat_history` | the old go, but for the newest of each task |
//! | `heartbeat_dedup` | go when they expire |
//! | `rate_uses` | go once no limit looks at them |
//! | `metric_snapshots` | go after a week |
//! | `alerts` | as many as `alerts` keeps |
//! | `tier_changes` | as many as `vitals` keeps |
//! | `digests` | as many as `shown` keeps |
//! | `session_summaries` | as many as `summaries` keeps; the memory has them, too |
//! | `memories` | what ended goes when it is old, of events the least important of the oldest |
//! | `memory_counts` | one for each tier and kind of source |
//! | `memory_vectors` | go with their memory, and when the model is exchanged |
//! | `embedding_progress` | one |
//! | `memory_words` | an index of `memories` |
//! | `memory_words_outside` | another |
//! | `soul_history` | stay; of versions that are not among the newest only the hash |
//! | `soul_reflection` | one |
//! | `path_labels` | as many as `paths` takes |
//! | `heartbeat_schedule` | as many as there are tasks |
//! | `account_reads` | one for each cloud |
//! | `port_sales` | one for each port that ever sold |
//! | `published_ports` | one for each port that is open |
//! | `rule_sets` | one for each list of rules |
//! | `metric_bounds` | fixed |
//! | `metric_folds` | one for each bucket, cause, and tool with an end |
//! | `automaton` | one |
//! | `audit_head` | one |
//! | `inference_totals` | one |
//! | `window_time` | one |
//! | `vitals` | one |
//! | `hibernation` | one |
//! | `machine_releases` | go when the creator was told |
//! | `tool_calls` | stay: the audit; arguments and results, and what was not judged, go with their turn |
//! | `thinking_hours` | stay, one for each hour and wake cycle: a clock that is set back frees nothing |
//! | `audit_chain` | stay: the audit |
//! | `audit_changes` | folded when there are more than two for each row that they cover |
//! | `payment_steps` | stay: the audit |
//! | `approval_steps` | stay: the audit |
//! | `approvals` | stay: the creator's word |
//! | `payments` | stay: money |
//! | `ledger` | stay: money |

use automaton_core::time::Span;
use rusqlite::params;

use crate::Store;
use crate::codec::Sql;
use crate::error::{StoreError, TxError};
use crate::rows::fold::fold_lists;
use crate::thread::{ConnectionExt, Tx, WriteOptions, sql};

/// Rows of one table that one call deletes at most.
const BATCH: u32 = 500;

/// Events that are remembered at most.
const EVENTS_MAX: u32 = 100_000;

/// Runs of each heartbeat task that are kept at any age.
const RUNS_KEPT: u64 = 20;

/// Retention of old rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// Time for which rows are kept.
    pub keep: Span,
    /// Time for which runs of heartbeat tasks are kept; the newest of each task stay.
    pub keep_heartbeat: Span,
    /// The newest turns that are kept whatever their age.
    pub turns_kept: u64,
    /// Rows of one table that are kept at most, the newest.
    pub rows_max: u64,
}

/// Deleted rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RetentionResult {
    /// Turns, with their inputs and calls.
    pub turns: u64,
    /// Messages that were answered or given up, and that no kept turn shows.
    pub messages: u64,
    /// Messages to the creator.
    pub outbox: u64,
    /// Wake events that were consumed.
    pub wakes: u64,
    /// Wake cycles of which no turn and no event is left.
    pub sessions: u64,
    /// Runs of heartbeat tasks.
    pub heartbeat: u64,
    /// Changes of state.
    pub state_changes: u64,
    /// Requests of commands.
    pub egress: u64,
    /// Memories that ended long ago, and events beyond as many as are kept.
    pub memories: u64,
    /// True if a batch was full, so that another call deletes more.
    pub more: bool,
}

impl Store {
    /// Deletes a batch of what is beyond the limits, and folds lists of changed rows when
    /// there are many of them.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn retention(&self, limits: RetentionPolicy) -> Result<RetentionResult, StoreError> {
        let work = move |tx: &Tx<'_>| delete(tx, limits);
        let mut done = self.write(WriteOptions::new("delete what is old"), work).await?;
        let write = WriteOptions::new("fold the lists of changed rows");
        done.more |= self.write(write, fold_lists).await?;
        Ok(done)
    }
}

fn delete(tx: &Tx<'_>, limits: RetentionPolicy) -> Result<RetentionResult, TxError> {
    let mut more = false;
    // What would be said again is no row that anybody counts.
    tx.exec("DELETE FROM heartbeat_dedup WHERE expires_at <= ?1", [Sql(tx.now)])?;
    let old = Sql(tx.now.before(limits.keep));
    tx.exec("DELETE FROM unsettled_answers WHERE at <= ?1", [old])?;
    tx.exec(sql!("memory_expire"), [Sql(tx.now)])?;
    let episodes = tx.exec(sql!("prune_episodes"), params![BATCH, EVENTS_MAX])?;
    let mut batch_of = |statement: &str, kept: u64, keep: Span| -> Result<u64, TxError> {
        let before = Sql(tx.now.before(keep));
        let deleted =
            tx.exec(statement, params![before, Sql(kept), Sql(limits.rows_max), BATCH])?;
        more |= deleted >= usize::try_from(BATCH).unwrap_or(usize::MAX);
        Ok(u64::try_from(deleted).unwrap_or(u64::MAX))
    };
    let ended = batch_of(sql!("prune_memories_ended"), 0, limits.keep)?;
    let heartbeat = batch_of(sql!("prune_heartbeat"), RUNS_KEPT, limits.keep_heartbeat)?;
    let mut batch = |statement: &str, kept: u64| batch_of(statement, kept, limits.keep);
    // Turns first: what only they refer to can then go with the same call.
    let turns = batch(sql!("prune_turns"), limits.turns_kept)?;
    Ok(RetentionResult {
        turns,
        messages: batch(sql!("prune_messages"), 0)?,
        outbox: batch(sql!("prune_outbox"), 0)?,
        wakes: batch(sql!("prune_wakes"), 0)?,
        // The newest is what the next prompt tells of the last wake.
        sessions: batch(sql!("prune_sessions"), 1)?,
        heartbeat,
        state_changes: batch(sql!("prune_state_changes"), 0)?,
        egress: batch(sql!("prune_egress"), 0)?,
        memories: ended + u64::try_from(episodes).unwrap_or(u64::MAX),
        more: more || episodes >= usize::try_from(BATCH).unwrap_or(usize::MAX),
    })
}

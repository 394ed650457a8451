//! `rate_uses`: how often what is limited was done, and who has a place.
//!
//! A place is taken in the transaction that stores the decision, and only while there is
//! one: two that are judged by the same count cannot both have the last. A call that
//! failed or never started gives its place back in the transaction of its outcome.
//! Nothing else may forget a use that is younger than its window.

use automaton_core::id::CallId;
use automaton_core::record::CallStatus;
use automaton_core::time::{RateWindow, Span, Timestamp};
use rusqlite::{Connection, params};

use crate::codec::{Sql, get};
use crate::error::{StoreError, TxError, unfit};
use crate::thread::{ConnectionExt, Tx, sql};

/// A limit for actions in a period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateLimit {
    /// The name under which it is counted.
    pub rule: String,
    /// Limit.
    pub max: u32,
    /// Over what time it is counted.
    pub window: RateWindow,
}

/// Returns the use of each limit within its window, running actions included.
pub(crate) fn uses(
    connection: &Connection,
    limits: &[RateLimit],
    now: Timestamp,
) -> Result<Vec<u32>, TxError> {
    let wake = wake_began(connection)?;
    let asked: Vec<(&str, Timestamp)> =
        limits.iter().map(|limit| (limit.rule.as_str(), since(limit.window, wake, now))).collect();
    let asked = serde_json::to_string(&asked)
        .map_err(|source| StoreError::Json { what: "the limits", source })?;
    Ok(connection.all(sql!("rate_uses"), [asked], |row| row.get(0))?)
}

/// Takes a place for a call. One that the creator approved has a place where there is none left,
/// and counts all the same.
pub(crate) fn take(
    tx: &Tx<'_>,
    call: CallId,
    limit: &RateLimit,
    approved: bool,
) -> Result<(), TxError> {
    let since = since(limit.window, wake_began(tx)?, tx.now);
    let used = "SELECT count(*) FROM rate_uses WHERE rule = ?1 AND at > ?2";
    let used = tx.one(used, params![limit.rule, Sql(since)], |row| row.get(0))?;
    if !approved && used.unwrap_or(u32::MAX) >= limit.max {
        let why = format!("has no place left under {}, which allows {}", limit.rule, limit.max);
        return Err(unfit("call", &call, why));
    }
    tx.exec("DELETE FROM rate_uses WHERE rule = ?1 AND at <= ?2", params![limit.rule, Sql(since)])?;
    let statement = "INSERT INTO rate_uses (rule, call, at) \
         VALUES (?1, (SELECT seq FROM tool_calls WHERE id = ?2), ?3)";
    tx.exec(statement, params![limit.rule, Sql(call), Sql(tx.now)])?;
    Ok(())
}

/// Gives back what a call took, where it ended like this for nothing.
pub(crate) fn give_back(tx: &Tx<'_>, call: CallId, end: CallStatus) -> Result<(), TxError> {
    if !matches!(end, CallStatus::Done | CallStatus::Unknown) {
        let used = "DELETE FROM rate_uses WHERE call = (SELECT seq FROM tool_calls WHERE id = ?1)";
        tx.exec(used, [Sql(call)])?;
    }
    Ok(())
}

/// From when on uses count, in a wake that began at a moment.
fn since(window: RateWindow, wake: Timestamp, now: Timestamp) -> Timestamp {
    match window {
        RateWindow::Last(span) => now.before(span),
        // What came in the moment of its beginning counts, too.
        RateWindow::Wake => wake.before(Span::from_millis(1)),
    }
}

/// Returns the start of the wake. Without a wake everything counts.
fn wake_began(connection: &Connection) -> Result<Timestamp, TxError> {
    let statement = "SELECT opened_at FROM sessions WHERE ended_at IS NULL";
    let opened = connection.one(statement, [], |row| get(row, "opened_at"))?;
    Ok(opened.unwrap_or(Timestamp::EPOCH))
}

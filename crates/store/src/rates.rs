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
use crate::error::{TxError, unfit};
use crate::thread::{ConnectionExt, Tx};

/// How often something may be done in a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateLimit {
    /// The name under which it is counted.
    pub rule: String,
    /// How often.
    pub max: u32,
    /// Over what time it is counted.
    pub window: RateWindow,
}

/// How often each of these was used within its window, with what has not ended yet.
pub(crate) fn uses(
    connection: &Connection,
    limits: &[RateLimit],
    now: Timestamp,
) -> Result<Vec<u32>, TxError> {
    let used = |limit: &RateLimit| used(connection, limit, since(connection, limit.window, now)?);
    limits.iter().map(used).collect()
}

/// Takes a place for a call.
pub(crate) fn take(tx: &Tx<'_>, call: CallId, limit: &RateLimit) -> Result<(), TxError> {
    let since = since(tx, limit.window, tx.now)?;
    if used(tx, limit, since)? >= limit.max {
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

/// From when on uses count. Where no wake is under way, all of them do.
fn since(
    connection: &Connection,
    window: RateWindow,
    now: Timestamp,
) -> Result<Timestamp, TxError> {
    let RateWindow::Last(span) = window else {
        let statement = "SELECT opened_at FROM sessions WHERE ended_at IS NULL";
        let opened = connection.one(statement, [], |row| get::<Timestamp>(row, "opened_at"))?;
        // What came in the moment of its beginning counts, too.
        return Ok(opened.map_or(Timestamp::EPOCH, |at| at.before(Span::from_millis(1))));
    };
    Ok(now.before(span))
}

fn used(connection: &Connection, limit: &RateLimit, since: Timestamp) -> Result<u32, TxError> {
    let statement = "SELECT count(*) FROM rate_uses WHERE rule = ?1 AND at > ?2";
    let params = params![limit.rule, Sql(since)];
    Ok(connection.one(statement, params, |row| row.get(0))?.unwrap_or(u32::MAX))
}

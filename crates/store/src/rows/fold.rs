//! Drops entries of `audit_changes` that later ones made worthless.
//!
//! The oldest lists are read and compared with their digests in the chain. What of them still
//! holds is said again in a new link, together with the number of the last list that was
//! read: from then on links up to it have their digest alone. Lists that are not what the chain
//! says are left as they are, for verification to find.

use std::borrow::Cow;

use rusqlite::params;

use super::changes::{self, Change, ChangeList, FLOOR, STRAY};
use crate::audit;
use crate::codec::{Sql, get, maybe};
use crate::error::TxError;
use crate::thread::{ConnectionExt, Tx, sql};

/// Entries that one link folds, at least, where there are as many.
const BATCH: usize = 500;
/// Entries beyond two for each row that are kept before anything is folded.
const SPARE: i64 = 500;

/// Folds the oldest lists if there are many more entries than rows, and returns true if it did.
pub(crate) fn fold_lists(tx: &Tx<'_>) -> Result<bool, TxError> {
    let counts = "SELECT changes, rows FROM audit_head";
    let counts = tx.one(counts, [], |row| Ok((row.get("changes")?, row.get("rows")?)))?;
    let (kept, rows): (i64, i64) = counts.unwrap_or_default();
    let strays = "SELECT count(*) AS count FROM audit_changes WHERE source = ?1";
    let strays: i64 = tx.one(strays, [STRAY], |row| row.get("count"))?.unwrap_or_default();
    if kept <= 2 * (rows + strays) + SPARE {
        return Ok(false);
    }
    let Some(upto) = last_foldable(tx)? else { return Ok(false) };
    let mut list =
        tx.all(sql!("changes_that_hold"), params![Sql(upto), FLOOR, STRAY], changes::read_change)?;
    list.push(Change { source: Cow::Borrowed(FLOOR), row: upto.to_string(), hash: None });
    let gone = tx.exec("DELETE FROM audit_changes WHERE link <= ?1", [Sql(upto)])?;
    let kept = -i64::try_from(gone).unwrap_or(i64::MAX);
    audit::add_changes(tx, ChangeList { list, kept, rows: 0 })?;
    Ok(true)
}

/// The last link of a batch whose lists are all what the chain says.
fn last_foldable(tx: &Tx<'_>) -> Result<Option<u64>, TxError> {
    let floor = changes::read_floor(tx)?;
    let below = "SELECT 1 FROM audit_changes WHERE link <= ?1 LIMIT 1";
    if tx.one(below, [Sql(floor)], |_| Ok(()))?.is_some() {
        return Ok(None);
    }
    let mut entries = 0;
    let mut last = None;
    let statement =
        "SELECT seq, changes FROM audit_chain WHERE seq > ?1 AND changes IS NOT NULL ORDER BY seq";
    let mut statement = tx.prepare_cached(statement)?;
    let mut links = statement.query([Sql(floor)])?;
    while entries < BATCH
        && let Some(link) = links.next()?
    {
        let seq: u64 = get(link, "seq")?;
        let list = changes::read_list(tx, seq)?;
        if maybe(link, "changes")? != Some(changes::list_digest(&list)) {
            return Ok(None);
        }
        entries += list.len();
        last = Some(seq);
    }
    Ok(last)
}

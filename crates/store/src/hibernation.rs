//! `hibernation`: the row of one that lost as much as it may.
//!
//! It is made in the transaction that closes the wake cycle and is gone in the one
//! that opens the next, which is also where losses begin to count anew. Until then
//! it must outlive every restart.

use automaton_core::hibernation::{Hibernation, Holdings};
use automaton_core::time::{Span, Timestamp};
use rusqlite::{Connection, Row, params};

use crate::Store;
use crate::codec::{Sql, get, maybe};
use crate::error::{StoreError, TxError};
use crate::reader::Reader;
use crate::thread::{ConnectionExt, Tx, WriteOptions, sql};

/// Time within which the cloud credits a settled purchase.
const CREDITED_WITHIN: Span = Span::from_secs(60);

impl Store {
    /// The hibernation that it is in, with what was seen until now; what there is now is
    /// seen from then on.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn hibernation(&self, now: Holdings) -> Result<Option<Hibernation>, StoreError> {
        self.write(WriteOptions::new("look into the hibernation"), move |tx| {
            let found = read(tx)?;
            let credits = now.credits.map(Sql);
            let usdc = now.usdc.map(Sql);
            tx.exec(sql!("hibernation_had"), params![credits, usdc, Sql(tx.now)])?;
            Ok(found)
        })
        .await
    }
}

impl Reader {
    /// The hibernation that it is in.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn hibernation(&self) -> Result<Option<Hibernation>, StoreError> {
        self.read("read the hibernation", read)
    }
}

fn read(connection: &Connection) -> Result<Option<Hibernation>, TxError> {
    let statement = sql!("hibernation");
    Ok(connection.one(statement, [Sql(CREDITED_WITHIN)], |row: &Row<'_>| {
        Ok(Hibernation {
            since: get::<Timestamp>(row, "since")?,
            reason: row.get("reason")?,
            had: Holdings { credits: maybe(row, "credits")?, usdc: maybe(row, "usdc")? },
            bought: get(row, "bought")?,
            revenue: get(row, "revenue")?,
            called: row.get("called")?,
        })
    })?)
}

/// It begins.
pub(crate) fn begin(tx: &Tx<'_>, reason: &str) -> Result<(), TxError> {
    tx.exec(sql!("hibernate"), params![Sql(tx.now), reason])?;
    Ok(())
}

/// It is over, and what was lost until now is forgiven.
pub(crate) fn end(tx: &Tx<'_>) -> Result<(), TxError> {
    let statement =
        "UPDATE automaton SET lost = 0, losses_from = (SELECT coalesce(max(seq), 0) FROM ledger)";
    tx.exec(statement, [])?;
    tx.exec("DELETE FROM hibernation", [])?;
    Ok(())
}

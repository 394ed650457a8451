//! The statuses that automatons report, and the right to read them.

use alloy_primitives::Address;
use automaton_core::time::Timestamp;
use automaton_core::wire::cloud::{StatusReply, StatusReport};
use rusqlite::params;

use super::optional_row;
use super::writer::DbTx;
use crate::db::error::DbTxError;

pub(super) fn report(
    tx: &DbTx<'_>,
    wallet: Address,
    report: &StatusReport,
) -> Result<(), DbTxError> {
    let statement = "INSERT INTO statuses (wallet, report, received_at) VALUES (?1, ?2, ?3) \
                     ON CONFLICT DO UPDATE SET report = ?2, received_at = ?3";
    let text = serde_json::to_string(report).map_err(unreadable)?;
    tx.sql.execute(statement, params![wallet.as_slice(), text, tx.now.as_millis()])?;
    Ok(())
}

pub(super) fn read(
    tx: &DbTx<'_>,
    of: Address,
    by: Address,
) -> Result<Option<StatusReply>, DbTxError> {
    let statement = include_str!("sql/status.sql");
    let params = params![of.as_slice(), by.as_slice(), by.to_string()];
    let row = tx.sql.query_row(statement, params, |row| {
        Ok((row.get::<_, String>("report")?, row.get("received_at")?))
    });
    let Some((report, received_at)) = optional_row(row)? else { return Ok(None) };
    let status = serde_json::from_str(&report).map_err(unreadable)?;
    let received_at_ms = Timestamp::from_millis(received_at);
    Ok(Some(StatusReply { address: of, received_at_ms, status }))
}

fn unreadable(error: serde_json::Error) -> DbTxError {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error)).into()
}

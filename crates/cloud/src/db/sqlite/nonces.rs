//! The nonces of the account that pays gas, and the transactions signed with each.

use alloy_primitives::{B256, Bytes};
use automaton_core::id::TransactionId;
use automaton_core::time::Timestamp;
use automaton_wallet::transactions::OpenTransaction;
use rusqlite::types::Type;
use rusqlite::{Row, params};

use super::payments::integer;
use super::word;
use super::writer::DbTx;
use crate::db::error::{DbError, DbTxError};
use crate::db::{Fees, NewNonceReservation, NonceReservation, Submission, TransactionEnd};

pub(super) fn open(tx: &DbTx<'_>, new: &NewNonceReservation) -> Result<(), DbTxError> {
    let intent = new.intent.to_string();
    let now = tx.now.as_millis();
    let statement = "INSERT INTO gas_nonces (intent, payment, gas, state, opened_at) \
                     VALUES (?1, ?2, ?3, 'open', ?4)";
    tx.sql.execute(statement, params![intent, new.payment, integer(new.gas)?, now])?;
    attempt(tx, &intent, new.fees)
}

/// Stores the next attempt of a reservation, before it is signed.
pub(super) fn raise(tx: &DbTx<'_>, intent: TransactionId, fees: Fees) -> Result<(), DbTxError> {
    attempt(tx, &intent.to_string(), fees)
}

fn attempt(tx: &DbTx<'_>, intent: &str, fees: Fees) -> Result<(), DbTxError> {
    let max = integer(fees.max)?;
    let priority = integer(fees.priority)?;
    let insert = include_str!("sql/attempt_insert.sql");
    tx.sql.execute(insert, params![intent, max, priority, tx.now.as_millis()])?;
    Ok(())
}

/// Stores the signed bytes of a reservation's newest attempt.
pub(super) fn signed(
    tx: &DbTx<'_>,
    intent: TransactionId,
    sent: &Submission,
) -> Result<(), DbTxError> {
    let id = intent.to_string();
    let missing = || DbTxError::from(DbError::Missing { noun: "gas nonce", id: id.clone() });
    let statement = "UPDATE gas_nonces SET nonce = ?2 \
                     WHERE intent = ?1 AND state = 'open' AND coalesce(nonce, ?2) = ?2";
    let named = tx.sql.execute(statement, params![id, integer(sent.gas_nonce)?])?;
    let statement = "UPDATE gas_transactions SET hash = ?2, raw = ?3 \
                     WHERE intent = ?1 AND hash IS NULL";
    let hash = sent.hash.as_slice();
    let raw = sent.raw.as_ref();
    let stored = tx.sql.execute(statement, params![id, hash, raw])?;
    if (named, stored) != (1, 1) {
        return Err(missing());
    }
    let statement = "UPDATE payments SET state = 'submitted' WHERE state = 'begun' \
                     AND id = (SELECT payment FROM gas_nonces WHERE intent = ?1)";
    tx.sql.execute(statement, [&id])?;
    Ok(())
}

pub(super) fn close(
    tx: &DbTx<'_>,
    intent: TransactionId,
    end: TransactionEnd,
) -> Result<(), DbTxError> {
    let state = match end {
        TransactionEnd::Spent => "spent",
        TransactionEnd::Lost => "lost",
    };
    let statement = "UPDATE gas_nonces SET state = ?2, closed_at = ?3 \
                     WHERE intent = ?1 AND state = 'open'";
    tx.sql.execute(statement, params![intent.to_string(), state, tx.now.as_millis()])?;
    Ok(())
}

pub(super) fn all_open(tx: &DbTx<'_>) -> Result<Vec<NonceReservation>, DbTxError> {
    let mut select = tx.sql.prepare_cached(include_str!("sql/nonces_open.sql"))?;
    let mut reservations: Vec<NonceReservation> =
        select.query_map([], nonce_row)?.collect::<Result<_, _>>()?;
    for reservation in &mut reservations {
        let transaction = &mut reservation.transaction;
        transaction.hashes = hashes(tx, "intent = ?1", &transaction.intent.to_string())?;
    }
    Ok(reservations)
}

/// Returns the hashes of all transactions signed for a payment, oldest first.
pub(super) fn hashes_of_payment(tx: &DbTx<'_>, payment: i64) -> rusqlite::Result<Vec<B256>> {
    let all = "intent IN (SELECT intent FROM gas_nonces WHERE payment = CAST(?1 AS INTEGER))";
    hashes(tx, all, &payment.to_string())
}

/// Returns whether a nonce of the account is in use for a payment.
pub(super) fn is_open(tx: &DbTx<'_>, payment: i64) -> rusqlite::Result<bool> {
    let statement = "SELECT EXISTS \
                     (SELECT 1 FROM gas_nonces WHERE payment = ?1 AND state = 'open')";
    tx.sql.prepare_cached(statement)?.query_row([payment], |row| row.get(0))
}

fn hashes(tx: &DbTx<'_>, which: &str, of: &str) -> rusqlite::Result<Vec<B256>> {
    let statement = format!(
        "SELECT hash FROM gas_transactions WHERE hash IS NOT NULL AND {which} \
         ORDER BY intent, attempt"
    );
    let mut select = tx.sql.prepare_cached(&statement)?;
    select.query_map([of], |row| word(row, "hash"))?.collect()
}

fn nonce_row(row: &Row<'_>) -> rusqlite::Result<NonceReservation> {
    let unsigned = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
    let bad = |_| rusqlite::Error::InvalidColumnType(0, "intent".to_owned(), Type::Text);
    let transaction = OpenTransaction {
        intent: row.get::<_, String>("intent")?.parse().map_err(bad)?,
        gas: unsigned("gas")?,
        nonce: row.get::<_, Option<i64>>("nonce")?.map(i64::unsigned_abs),
        fees: Fees { max: unsigned("max_fee")?, priority: unsigned("priority_fee")? },
        since: Timestamp::from_millis(row.get("at")?),
        raw: row.get::<_, Option<Vec<u8>>>("raw")?.map(Bytes::from),
        hashes: Vec::new(),
    };
    Ok(NonceReservation { payment: row.get("payment")?, transaction })
}

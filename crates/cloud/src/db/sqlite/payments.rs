//! Payments: one row an authorization, from before it is broadcast.

use alloy_primitives::{Address, B256, Bytes, U256};
use automaton_core::money::Microcents;
use automaton_core::time::Timestamp;
use automaton_core::wire::x402::{Authorization, atomic};
use rusqlite::types::Type;
use rusqlite::{Row, params};

use super::writer::Tx;
use super::{address, found, ledger, word};
use crate::db::error::{DbError, Halt};
use crate::db::{Begun, NewPayment, Payment, PaymentState, Submission};
use crate::ledger::Posting;

pub(super) fn begin(tx: &Tx<'_>, new: &NewPayment) -> Result<Begun, Halt> {
    let authorization = &new.authorization;
    if let Some(before) = find(tx, new.chain, &new.asset, authorization)? {
        let same = before.authorization == *authorization
            && (before.recipient, before.usd) == (new.recipient, new.usd);
        return Ok(if same { Begun::Known(before.id) } else { Begun::Conflict });
    }
    let payer = authorization.from.as_slice();
    let recipient = new.recipient.as_slice();
    let since = tx.now.before(new.guard).as_millis();
    let guard = tx.sql.query_row(
        include_str!("sql/payment_guard.sql"),
        params![payer, recipient, new.usd, since],
        |row| row.get(0),
    );
    if let Some(id) = found(guard)? {
        return Ok(Begun::Guarded(id));
    }
    tx.sql.execute(
        include_str!("sql/payment_insert.sql"),
        params![
            integer(new.chain)?,
            new.asset.as_slice(),
            payer,
            authorization.nonce.as_slice(),
            authorization.to.as_slice(),
            integer(new.value.units())?,
            authorization.valid_after.to_string(),
            authorization.valid_before.to_string(),
            new.signature.as_ref(),
            recipient,
            new.recipient != authorization.from,
            new.usd,
            tx.now.as_millis()
        ],
    )?;
    Ok(Begun::New(tx.sql.last_insert_rowid()))
}

/// The payment with the payer and the nonce of this authorization.
pub(super) fn find(
    tx: &Tx<'_>,
    chain: u64,
    asset: &Address,
    authorization: &Authorization,
) -> Result<Option<Payment>, Halt> {
    let statement = "SELECT * FROM payments WHERE chain = ?1 AND asset = ?2 AND payer = ?3 \
                     AND nonce = ?4";
    let (payer, nonce) = (authorization.from.as_slice(), authorization.nonce.as_slice());
    let key = params![integer(chain)?, asset.as_slice(), payer, nonce];
    Ok(found(tx.sql.query_row(statement, key, payment))?)
}

pub(super) fn read(tx: &Tx<'_>, id: i64) -> Result<Payment, Halt> {
    let found = found(tx.sql.query_row("SELECT * FROM payments WHERE id = ?1", [id], payment))?;
    found.ok_or_else(|| missing(id))
}

pub(super) fn unfinished(tx: &Tx<'_>) -> Result<Vec<Payment>, Halt> {
    let statement = "SELECT * FROM payments WHERE state IN ('begun', 'submitted') \
                     ORDER BY id LIMIT 100";
    let mut select = tx.sql.prepare_cached(statement)?;
    Ok(select.query_map([], payment)?.collect::<Result<_, _>>()?)
}

pub(super) fn submitted(tx: &Tx<'_>, id: i64, submission: &Submission) -> Result<(), Halt> {
    let statement = "UPDATE payments SET state = 'submitted', tx_hash = ?2, raw = ?3, \
                     gas_nonce = ?4 WHERE id = ?1 AND state IN ('begun', 'submitted')";
    let (hash, raw) = (submission.hash.as_slice(), submission.raw.as_ref());
    let changed =
        tx.sql.execute(statement, params![id, hash, raw, integer(submission.gas_nonce)?])?;
    (changed == 1).then_some(()).ok_or_else(|| missing(id))
}

pub(super) fn settled(tx: &Tx<'_>, id: i64, transaction: B256) -> Result<bool, Halt> {
    let payment = read(tx, id)?;
    if matches!(payment.state, PaymentState::Settled(_)) {
        return Ok(false);
    }
    // A transaction settles one payment, whatever else it moved: `tx_hash` is unique.
    let statement = "UPDATE payments SET state = 'settled', tx_hash = ?2, closed_at = ?3, \
                     failure = NULL WHERE id = ?1";
    tx.sql.execute(statement, params![id, transaction.as_slice(), tx.now.as_millis()])?;
    let amount = Microcents::from_cents(i64::from(payment.usd) * 100)?;
    ledger::post(tx, &Posting::purchase(payment.recipient, amount, format!("payment:{id}"))?)?;
    Ok(true)
}

pub(super) fn failed(tx: &Tx<'_>, id: i64, reason: &str) -> Result<(), Halt> {
    let statement = "UPDATE payments SET state = 'failed', failure = ?2, closed_at = ?3 \
                     WHERE id = ?1 AND state IN ('begun', 'submitted')";
    let changed = tx.sql.execute(statement, params![id, reason, tx.now.as_millis()])?;
    (changed == 1).then_some(()).ok_or_else(|| missing(id))
}

pub(super) fn delivered(tx: &Tx<'_>, id: i64) -> Result<(), Halt> {
    let statement = "UPDATE payments SET delivered_at = ?2 WHERE id = ?1 AND delivered_at IS NULL";
    tx.sql.execute(statement, params![id, tx.now.as_millis()])?;
    Ok(())
}

fn missing(id: i64) -> Halt {
    DbError::Missing { noun: "payment", id: id.to_string() }.into()
}

/// A number as SQLite holds it.
fn integer(number: u64) -> Result<i64, Halt> {
    i64::try_from(number)
        .map_err(|source| rusqlite::Error::ToSqlConversionFailure(Box::new(source)).into())
}

fn payment(row: &Row<'_>) -> rusqlite::Result<Payment> {
    let hash = || word(row, "tx_hash");
    let state = match row.get::<_, String>("state")?.as_str() {
        "begun" => PaymentState::Begun,
        "submitted" => PaymentState::Submitted(Submission {
            hash: hash()?,
            raw: Bytes::from(row.get::<_, Vec<u8>>("raw")?),
            gas_nonce: row.get::<_, i64>("gas_nonce")?.unsigned_abs(),
        }),
        "settled" => PaymentState::Settled(hash()?),
        _ => PaymentState::Failed(row.get("failure")?),
    };
    Ok(Payment {
        id: row.get("id")?,
        authorization: Authorization {
            from: address(row, "payer")?,
            to: address(row, "payee")?,
            value: U256::from(row.get::<_, i64>("value")?.unsigned_abs()),
            valid_after: number(row, "valid_after")?,
            valid_before: number(row, "valid_before")?,
            nonce: word(row, "nonce")?,
        },
        signature: Bytes::from(row.get::<_, Vec<u8>>("signature")?),
        recipient: address(row, "recipient")?,
        usd: row.get("usd")?,
        state,
        begun_at: Timestamp::from_millis(row.get("begun_at")?),
    })
}

fn number(row: &Row<'_>, column: &str) -> rusqlite::Result<U256> {
    let text: String = row.get(column)?;
    let bad = || rusqlite::Error::InvalidColumnType(0, column.to_owned(), Type::Text);
    atomic(&text).ok_or_else(bad)
}

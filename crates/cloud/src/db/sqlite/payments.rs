//! Payments: one row an authorization, from before it is broadcast.

use alloy_primitives::{Address, Bytes, U256};
use automaton_core::money::{MicroUsdc, Microcents};
use automaton_core::time::Timestamp;
use automaton_core::wire::x402::{Authorization, atomic};
use rusqlite::types::Type;
use rusqlite::{Params, Row, params};

use super::writer::DbTx;
use super::{address, ledger, nonces, optional_row, word};
use crate::db::error::{DbError, DbTxError};
use crate::db::{
    BeginPaymentOutcome, CreditPurchase, IncomingPayment, IncomingPaymentState, NewIncomingPayment,
    PageRange, Sale, SaleRecord, SettledBy,
};
use crate::ledger::Posting;

/// Payments that may be under way at a time: anybody may send one.
const UNFINISHED_MAX: i64 = 100;
/// Names that one payment may have: a payer that signs again within the guard of a purchase
/// adds one each time.
const NAMES_MAX: i64 = 16;

pub(super) fn begin(
    tx: &DbTx<'_>,
    new: &NewIncomingPayment,
) -> Result<BeginPaymentOutcome, DbTxError> {
    let begun = match find_by_name(tx, new)? {
        Some(begun) => begun,
        None => enter(tx, new)?,
    };
    // What is known already may come from anybody: all of it but its names is on the chain.
    if let BeginPaymentOutcome::New(id) | BeginPaymentOutcome::Guarded(id) = begun {
        let counted = "SELECT count(*) FROM payment_names WHERE payment = ?1";
        let names: i64 = tx.sql.query_row(counted, [id], |row| row.get(0))?;
        if names >= NAMES_MAX && !new.names.is_empty() {
            return Ok(BeginPaymentOutcome::Busy);
        }
        let statement = "INSERT INTO payment_names (payer, name, request, payment, at) \
                         VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING";
        let payer = new.authorization.from;
        for name in &new.names {
            let request = new.request.as_bytes();
            let now = tx.now.as_millis();
            tx.sql.execute(statement, params![payer.as_slice(), name, request, id, now])?;
        }
    }
    Ok(begun)
}

/// Returns the earlier payment under one of the names.
fn find_by_name(
    tx: &DbTx<'_>,
    new: &NewIncomingPayment,
) -> Result<Option<BeginPaymentOutcome>, DbTxError> {
    let statement = "SELECT payment, request FROM payment_names WHERE payer = ?1 AND name = ?2";
    let mut known = None;
    for name in &new.names {
        let payer = new.authorization.from;
        let before = tx.sql.query_row(statement, params![payer.as_slice(), name], |row| {
            Ok((row.get(0)?, row.get::<_, [u8; 32]>(1)?))
        });
        match optional_row(before)? {
            Some((id, request)) if request == *new.request.as_bytes() => {
                known = Some(BeginPaymentOutcome::Named(id));
            }
            Some(_) => return Ok(Some(BeginPaymentOutcome::OtherName)),
            None => {}
        }
    }
    Ok(known)
}

fn enter(tx: &DbTx<'_>, new: &NewIncomingPayment) -> Result<BeginPaymentOutcome, DbTxError> {
    let authorization = &new.authorization;
    if let Some(before) = find(tx, new.chain, &new.asset, authorization)? {
        let same = before.authorization == *authorization
            && (before.purchase, before.sale) == (new.purchase, new.sale);
        return Ok(if same {
            BeginPaymentOutcome::Known(before.id)
        } else {
            BeginPaymentOutcome::Conflict
        });
    }
    if let Some(CreditPurchase { recipient, usd }) = new.purchase {
        let since = tx.now.before(new.guard).as_millis();
        let payer = authorization.from;
        let recipient = recipient.into_array();
        let twin = params![payer.as_slice(), recipient, usd, since];
        let guard = tx.sql.query_row(include_str!("sql/payment_guard.sql"), twin, |row| row.get(0));
        if let Some(id) = optional_row(guard)? {
            return Ok(BeginPaymentOutcome::Guarded(id));
        }
    }
    let statement = "SELECT count(*) FROM payments WHERE state IN ('begun', 'submitted')";
    let unfinished: i64 = tx.sql.query_row(statement, [], |row| row.get(0))?;
    if unfinished >= UNFINISHED_MAX {
        return Ok(BeginPaymentOutcome::Busy);
    }
    insert(tx, new)?;
    Ok(BeginPaymentOutcome::New(tx.sql.last_insert_rowid()))
}

fn insert(tx: &DbTx<'_>, new: &NewIncomingPayment) -> Result<(), DbTxError> {
    let authorization = &new.authorization;
    let purchase = new.purchase.as_ref();
    let balance = purchase.map(|purchase| read_balance(tx, purchase.recipient)).transpose()?;
    tx.sql.execute(
        include_str!("sql/payment_insert.sql"),
        params![
            integer(new.chain)?,
            new.asset.as_slice(),
            authorization.from.as_slice(),
            authorization.nonce.as_slice(),
            authorization.to.as_slice(),
            integer(new.value.units())?,
            authorization.valid_after.to_string(),
            authorization.valid_before.to_string(),
            new.signature.as_ref(),
            purchase.map(|purchase| purchase.recipient.into_array()),
            purchase.map(|purchase| purchase.recipient != authorization.from),
            purchase.map(|purchase| purchase.usd),
            balance,
            new.sale.map(|sale| sale.machine.to_string()),
            new.sale.map(|sale| sale.port),
            tx.now.as_millis()
        ],
    )?;
    Ok(())
}

/// Everything that a wallet has, set aside or not, in microcents.
fn read_balance(tx: &DbTx<'_>, wallet: Address) -> Result<i64, DbTxError> {
    let balance = ledger::balance(tx, wallet)?;
    Ok(balance.available.plus(balance.held)?.units())
}

/// The payment with the payer and the nonce of this authorization.
pub(super) fn find(
    tx: &DbTx<'_>,
    chain: u64,
    asset: &Address,
    authorization: &Authorization,
) -> Result<Option<IncomingPayment>, DbTxError> {
    let statement = "SELECT * FROM payments WHERE chain = ?1 AND asset = ?2 AND payer = ?3 \
                     AND nonce = ?4";
    let payer = authorization.from.as_slice();
    let nonce = authorization.nonce.as_slice();
    let key = params![integer(chain)?, asset.as_slice(), payer, nonce];
    Ok(load(tx, statement, key)?.pop())
}

pub(super) fn read(tx: &DbTx<'_>, id: i64) -> Result<IncomingPayment, DbTxError> {
    let payment = load(tx, "SELECT * FROM payments WHERE id = ?1", [id])?.pop();
    payment.ok_or_else(|| missing(id))
}

pub(super) fn unfinished(tx: &DbTx<'_>) -> Result<Vec<IncomingPayment>, DbTxError> {
    let statement = "SELECT * FROM payments WHERE state IN ('begun', 'submitted') ORDER BY id";
    load(tx, statement, [])
}

pub(super) fn settled(tx: &DbTx<'_>, id: i64, by: SettledBy) -> Result<bool, DbTxError> {
    let payment = read(tx, id)?;
    if matches!(payment.state, IncomingPaymentState::Settled(_)) {
        return Ok(false);
    }
    let log = by.log.map(integer).transpose()?;
    // No log settles two payments, and no transaction of ours does: both are unique.
    let statement = "UPDATE payments SET state = 'settled', tx_hash = ?2, log_index = ?3, \
                     closed_at = ?4, failure = NULL WHERE id = ?1";
    let transaction = by.transaction.as_slice();
    tx.sql.execute(statement, params![id, transaction, log, tx.now.as_millis()])?;
    if payment.sale.is_some() {
        tx.sql.execute("INSERT INTO sales (payment) VALUES (?1)", [id])?;
    }
    if let Some(CreditPurchase { recipient, usd }) = payment.purchase {
        let amount = Microcents::from_cents(i64::from(usd) * 100)?;
        ledger::post(tx, &Posting::purchase(recipient, amount, format!("payment:{id}"))?)?;
        let balance = read_balance(tx, recipient)?;
        tx.sql.execute("UPDATE payments SET balance = ?2 WHERE id = ?1", [id, balance])?;
    }
    Ok(true)
}

pub(super) fn failed(tx: &DbTx<'_>, id: i64, reason: &str) -> Result<(), DbTxError> {
    let statement = "UPDATE payments SET state = 'failed', failure = ?2, closed_at = ?3 \
                     WHERE id = ?1 AND state IN ('begun', 'submitted')";
    let changed = tx.sql.execute(statement, params![id, reason, tx.now.as_millis()])?;
    (changed == 1).then_some(()).ok_or_else(|| missing(id))
}

pub(super) fn delivered(tx: &DbTx<'_>, id: i64) -> Result<bool, DbTxError> {
    let statement = "UPDATE payments SET delivered_at = ?2 WHERE id = ?1 AND delivered_at IS NULL";
    Ok(tx.sql.execute(statement, params![id, tx.now.as_millis()])? > 0)
}

fn missing(id: i64) -> DbTxError {
    DbError::Missing { noun: "payment", id: id.to_string() }.into()
}

/// A number as SQLite holds it.
pub(super) fn integer(number: u64) -> Result<i64, DbTxError> {
    i64::try_from(number)
        .map_err(|source| rusqlite::Error::ToSqlConversionFailure(Box::new(source)).into())
}

/// The payments of a query, with what was signed for them.
fn load(
    tx: &DbTx<'_>,
    statement: &str,
    key: impl Params,
) -> Result<Vec<IncomingPayment>, DbTxError> {
    let mut select = tx.sql.prepare_cached(statement)?;
    let mut payments: Vec<IncomingPayment> =
        select.query_map(key, payment)?.collect::<Result<_, _>>()?;
    for payment in &mut payments {
        payment.has_open_nonce = nonces::is_open(tx, payment.id)?;
        if let IncomingPaymentState::Submitted(hashes) = &mut payment.state {
            *hashes = nonces::hashes_of_payment(tx, payment.id)?;
        }
    }
    Ok(payments)
}

fn payment(row: &Row<'_>) -> rusqlite::Result<IncomingPayment> {
    let state = match row.get::<_, String>("state")?.as_str() {
        "begun" => IncomingPaymentState::Begun,
        "submitted" => IncomingPaymentState::Submitted(Vec::new()),
        "settled" => IncomingPaymentState::Settled(word(row, "tx_hash")?),
        _ => IncomingPaymentState::Failed(row.get("failure")?),
    };
    let purchase = match row.get::<_, Option<u32>>("usd")? {
        Some(usd) => Some(CreditPurchase { recipient: address(row, "recipient")?, usd }),
        None => None,
    };
    let sale = row.get::<_, Option<String>>("machine")?.map(|machine| sale(row, &machine));
    Ok(IncomingPayment {
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
        purchase,
        balance: Microcents::new(row.get::<_, Option<i64>>("balance")?.unwrap_or_default()),
        sale: sale.transpose()?,
        state,
        is_delivered: row.get::<_, Option<i64>>("delivered_at")?.is_some(),
        has_open_nonce: false,
        begun_at: Timestamp::from_millis(row.get("begun_at")?),
    })
}

fn sale(row: &Row<'_>, machine: &str) -> rusqlite::Result<Sale> {
    let machine = machine.parse().map_err(|_| rusqlite::Error::InvalidQuery)?;
    Ok(Sale { machine, port: row.get("port")? })
}

/// Returns the paid requests to the ports of a wallet's machines, newest first.
pub(super) fn sales(
    tx: &DbTx<'_>,
    wallet: Address,
    page: PageRange,
) -> Result<Vec<SaleRecord>, DbTxError> {
    let offset = i64::try_from(page.offset).unwrap_or(i64::MAX);
    let mut select = tx.sql.prepare_cached(include_str!("sql/sales.sql"))?;
    let rows = select.query_map(params![wallet.as_slice(), page.limit, offset], |row| {
        Ok(SaleRecord {
            seq: row.get("seq")?,
            sale: sale(row, &row.get::<_, String>("machine")?)?,
            amount: MicroUsdc::new(row.get::<_, i64>("value")?.unsigned_abs()),
            payer: address(row, "payer")?,
            transaction: word(row, "tx_hash")?,
            at: Timestamp::from_millis(row.get("at")?),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn number(row: &Row<'_>, column: &str) -> rusqlite::Result<U256> {
    let text: String = row.get(column)?;
    let bad = || rusqlite::Error::InvalidColumnType(0, column.to_owned(), Type::Text);
    atomic(&text).ok_or_else(bad)
}

//! The ledger's rows. Balances are carried from entry to entry, so that reading
//! one costs the same however long the ledger is; [`check`] adds all up again.

use alloy_primitives::Address;
use automaton_core::money::Microcents;
use rusqlite::params;

use super::optional_row;
use super::writer::DbTx;
use crate::db::error::{DbError, DbTxError};
use crate::db::{Balance, LedgerTotals};
use crate::ledger::{Account, Posting};

pub(super) fn balance(tx: &DbTx<'_>, wallet: Address) -> Result<Balance, DbTxError> {
    let of = |account: Account| match existing(tx, &account)? {
        Some(id) => last(tx, id),
        None => Ok(Microcents::ZERO),
    };
    Ok(Balance { available: of(Account::Wallet(wallet))?, held: of(Account::Held(wallet))? })
}

/// Appends a posting.
pub(super) fn post(tx: &DbTx<'_>, posting: &Posting) -> Result<(), DbTxError> {
    let owner = account(tx, &Account::Wallet(posting.wallet()))?;
    let reason = posting.reason().name();
    let statement = "INSERT INTO postings (account, key, kind, at) VALUES (?1, ?2, ?3, ?4)";
    let mut insert = tx.sql.prepare_cached(statement)?;
    let seq = insert.insert(params![owner, posting.key(), reason, tx.now.as_millis()])?;
    for entry in posting.entries() {
        let id = account(tx, &entry.account)?;
        let after = last(tx, id)?.plus(entry.amount)?;
        if after < Microcents::ZERO && !entry.account.may_be_negative() {
            return Err(DbError::Overdrawn { what: reason }.into());
        }
        let statement = "INSERT INTO entries (posting, account, amount, balance_after) \
                         VALUES (?1, ?2, ?3, ?4)";
        let mut insert = tx.sql.prepare_cached(statement)?;
        insert.execute(params![seq, id, entry.amount.units(), after.units()])?;
    }
    Ok(())
}

/// Adds up all entries and compares.
pub(super) fn check(tx: &DbTx<'_>) -> Result<LedgerTotals, DbTxError> {
    let books = tx.sql.query_row(include_str!("sql/books.sql"), [], |row| {
        Ok(LedgerTotals {
            sum: Microcents::new(row.get("sum")?),
            owed: Microcents::new(row.get("owed")?),
            revenue: Microcents::new(row.get("revenue")?),
            faults: row.get::<_, i64>("faults")?.unsigned_abs(),
        })
    })?;
    Ok(books)
}

pub(super) fn existing(tx: &DbTx<'_>, account: &Account) -> rusqlite::Result<Option<i64>> {
    let (kind, wallet) = account.parts();
    let statement = "SELECT id FROM accounts WHERE kind = ?1 AND wallet IS ?2";
    let wallet = wallet.map(|wallet| wallet.as_slice());
    let mut select = tx.sql.prepare_cached(statement)?;
    optional_row(select.query_row(params![kind, wallet], |row| row.get(0)))
}

fn account(tx: &DbTx<'_>, account: &Account) -> rusqlite::Result<i64> {
    if let Some(id) = existing(tx, account)? {
        return Ok(id);
    }
    let (kind, wallet) = account.parts();
    let statement = "INSERT INTO accounts (kind, wallet) VALUES (?1, ?2)";
    let wallet = wallet.map(|wallet| wallet.as_slice());
    tx.sql.prepare_cached(statement)?.insert(params![kind, wallet])
}

fn last(tx: &DbTx<'_>, account: i64) -> Result<Microcents, DbTxError> {
    let statement = "SELECT balance_after FROM entries WHERE account = ?1 \
                     ORDER BY posting DESC LIMIT 1";
    let mut select = tx.sql.prepare_cached(statement)?;
    let units = optional_row(select.query_row([account], |row| row.get(0)))?;
    Ok(Microcents::new(units.unwrap_or(0)))
}

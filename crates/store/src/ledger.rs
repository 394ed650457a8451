//! `ledger`: profit and loss, booked as it happens.
//!
//! A cost is booked before its effect, at the most that it can be, and corrected by
//! another row when more is known, which counts at the time of the first. Each booking
//! has a key, so that it happens once however often it is tried. No row is ever
//! changed, and what is not settled must never be booked as revenue.

use automaton_core::id::TurnId;
use automaton_core::money::{Microcents, MoneyError};
use automaton_core::names::Names;
use automaton_core::time::Timestamp;
use rusqlite::params;
use serde::Serialize;

use crate::Store;
use crate::codec::{Sql, get};
use crate::error::{StoreError, TxError, conflict, unfit};
use crate::thread::{CommitDurability, ConnectionExt, Tx, WriteOptions, sql};

/// Subject of a booking. Its [`name`](Self::name) is the one in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Names)]
#[serde(rename_all = "snake_case")]
pub enum LedgerCategory {
    /// Answers of models.
    Inference,
    /// Requests that were paid by x402.
    X402,
    /// Credits for others.
    Transfer,
    /// Credits from others.
    Revenue,
    /// Credits from the creator: neither earned nor spent.
    Funding,
    /// Machines that were rented.
    Machine,
}

impl Store {
    /// Credits that others gave, the creator among them.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn received(&self) -> Result<Microcents, StoreError> {
        let work = |tx: &Tx<'_>| Ok(tx.one(sql!("ledger_received"), [], |row| get(row, "sum"))?);
        Ok(self.run("add up what others gave", work).await?.unwrap_or_default())
    }
}

/// One booking.
pub(crate) struct LedgerBooking<'a> {
    /// Key that makes it one booking, however often it is reported.
    pub(crate) key: Option<&'a str>,
    pub(crate) category: LedgerCategory,
    /// Below zero for a cost.
    pub(crate) amount: Microcents,
    pub(crate) turn: Option<TurnId>,
    pub(crate) goal: Option<&'a str>,
    /// Source of the amount.
    pub(crate) source: &'a str,
}

/// Books, unless that has happened already. Nothing is booked as nothing.
pub(crate) fn book(tx: &Tx<'_>, booking: &LedgerBooking<'_>) -> Result<(), TxError> {
    book_at(tx, booking, tx.now)
}

fn book_at(tx: &Tx<'_>, booking: &LedgerBooking<'_>, at: Timestamp) -> Result<(), TxError> {
    let LedgerBooking { key, category, amount, turn, goal, source } = *booking;
    if amount != Microcents::ZERO {
        let params = params![key, Sql(category), Sql(amount), turn.map(Sql), goal, source, Sql(at)];
        tx.exec(sql!("ledger_insert"), params)?;
    }
    Ok(())
}

/// Corrects a booking, by its key or its unsettled answer, if there is one and nothing has
/// corrected it; without an amount it is taken back.
pub(crate) fn correct(tx: &Tx<'_>, of: &str, by: Option<Microcents>) -> Result<(), TxError> {
    if by != Some(Microcents::ZERO) {
        tx.exec(sql!("ledger_correct"), params![of, by.map(Sql)])?;
    }
    Ok(())
}

/// The same amount as a cost.
pub(crate) fn cost(amount: Microcents) -> Result<Microcents, MoneyError> {
    Microcents::ZERO.minus(amount)
}

/// A payment to the automaton.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revenue {
    /// Key that makes it one payment, wherever it is reported.
    pub key: String,
    /// Amount; above zero.
    pub amount: Microcents,
    /// Payer.
    pub from: String,
    /// Time of the settlement.
    pub at: Timestamp,
}

impl Store {
    /// Books what somebody has paid, once it is settled; whether that is news. The
    /// same again changes nothing.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] when it is not above zero, or was booked as another amount.
    pub async fn book_revenue(&self, revenue: Revenue) -> Result<bool, StoreError> {
        let write = WriteOptions::new("book revenue").sync(CommitDurability::Machine);
        self.write(write, move |tx| book_income(tx, LedgerCategory::Revenue, &revenue)).await
    }
}

/// Books what somebody was paid, as [`book_income`] does what somebody has paid.
pub(crate) fn book_cost(
    tx: &Tx<'_>,
    category: LedgerCategory,
    paid: &Revenue,
) -> Result<(), TxError> {
    let key = format!("{}:{}", category.name(), paid.key);
    let amount = cost(paid.amount).map_err(StoreError::Amount)?;
    let turn = None;
    let goal = None;
    let source = &*paid.from;
    let key = Some(&*key);
    book_at(tx, &LedgerBooking { key, category, amount, turn, goal, source }, paid.at)
}

pub(crate) fn book_income(
    tx: &Tx<'_>,
    category: LedgerCategory,
    revenue: &Revenue,
) -> Result<bool, TxError> {
    let Revenue { key, amount, from, at } = revenue;
    if *amount <= Microcents::ZERO {
        return Err(unfit("revenue", key, format!("is {amount}; only what is above zero is one")));
    }
    let key = format!("revenue:{key}");
    let statement = "SELECT amount FROM ledger WHERE key = ?1";
    match tx.one(statement, [&key], |row| get::<Microcents>(row, "amount"))? {
        Some(known) if known == *amount => return Ok(false),
        Some(_) => return Err(conflict("revenue", &key)),
        None => {}
    }
    let turn = None;
    let goal = None;
    let key = Some(&*key);
    let booking = LedgerBooking { key, category, amount: *amount, turn, goal, source: from };
    book_at(tx, &booking, *at)?;
    Ok(true)
}

//! `ledger`: profit and loss, booked as it happens.
//!
//! A cost is booked before its effect, at the most that it can be, and corrected by
//! another row when more is known. Each booking has a key, so that it happens once
//! however often it is tried. No row is ever changed, and what is not settled must
//! never be booked as revenue.

use automaton_core::id::TurnId;
use automaton_core::money::{Microcents, MoneyError};
use rusqlite::params;

use crate::Store;
use crate::codec::{As, get};
use crate::error::{Halt, StoreError};
use crate::thread::{Db, Query, Tx, sql};

/// What a booking is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    /// Answers of models.
    Inference,
    /// Requests that were paid by x402.
    X402,
    /// Credits for others.
    Transfer,
    /// Credits from others.
    Revenue,
}

impl Category {
    /// Every category.
    pub const ALL: [Self; 4] = [Self::Inference, Self::X402, Self::Transfer, Self::Revenue];

    /// The name in the database.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inference => "inference",
            Self::X402 => "x402",
            Self::Transfer => "transfer",
            Self::Revenue => "revenue",
        }
    }
}

impl Store {
    /// Credits that others gave.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn received(&self) -> Result<Microcents, StoreError> {
        let statement =
            "SELECT coalesce(sum(amount), 0) AS sum FROM ledger WHERE category = 'revenue'";
        let work = |db: &mut Db| Ok(db.connection.one(statement, [], |row| get(row, "sum"))?);
        Ok(self.run("add up what others gave", work).await?.unwrap_or_default())
    }
}

/// One booking.
pub(crate) struct Booking<'a> {
    /// What makes it one booking.
    pub(crate) key: &'a str,
    pub(crate) category: Category,
    /// Below zero for a cost.
    pub(crate) amount: Microcents,
    pub(crate) turn: Option<TurnId>,
    pub(crate) goal: Option<&'a str>,
    /// Whose word it is.
    pub(crate) source: &'a str,
}

/// Books, unless that has happened already. Nothing is booked as nothing.
pub(crate) fn book(tx: &Tx<'_>, booking: &Booking<'_>) -> Result<(), Halt> {
    let Booking { key, category, amount, turn, goal, source } = *booking;
    if amount != Microcents::ZERO {
        let params = params![key, As(category), As(amount), turn.map(As), goal, source, As(tx.now)];
        tx.exec(sql!("ledger_insert"), params)?;
    }
    Ok(())
}

/// Takes a booking back, if there is one, and once only.
pub(crate) fn take_back(tx: &Tx<'_>, key: &str) -> Result<(), Halt> {
    tx.exec(sql!("ledger_back"), params![key, format!("{key}:back"), As(tx.now)])?;
    Ok(())
}

/// The same amount as a cost.
pub(crate) fn cost(amount: Microcents) -> Result<Microcents, MoneyError> {
    Microcents::ZERO.minus(amount)
}

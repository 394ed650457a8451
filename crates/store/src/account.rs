//! `account_reads`: how far the history of the account with a cloud was read.
//!
//! It is kept in the transaction that books what was read, so that whoever dies between the
//! two books nothing twice and leaves nothing out. Two who read at once must never both book.

use automaton_core::money::Microcents;
use rusqlite::{Connection, Row, params};

use crate::Store;
use crate::codec::get;
use crate::error::{Halt, StoreError};
use crate::ledger::{Category, Revenue, book_cost, book_income};
use crate::thread::{Db, Query, Sync, Tx, Write, sql};

/// How far a history was read: the numbers of its newest entry and of its newest sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HowFar {
    /// Of the changes of what the account has.
    pub entry: i64,
    /// Of what was sold.
    pub sale: i64,
}

impl Store {
    /// How far the history of the account with this cloud was read.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn account_read(&self, origin: String) -> Result<HowFar, StoreError> {
        self.run("look how far an account was read", move |db| far(&db.connection, &origin)).await
    }

    /// Books what a piece of a history told, and that it was read; whether it was: not when
    /// somebody else has read on from there. Of [`Category::Machine`] it is a cost.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] when something is not above zero, or was booked as another amount.
    pub async fn book_account(
        &self,
        origin: String,
        (since, to): (HowFar, HowFar),
        told: Vec<(Category, Revenue)>,
    ) -> Result<bool, StoreError> {
        let write = Write::new("book what an account told").sync(Sync::Machine);
        let work = move |tx: &Tx<'_>| {
            if far(tx, &origin)? != since {
                return Ok(false);
            }
            for (category, one) in &told {
                match category {
                    Category::Machine => book_cost(tx, Category::Machine, one)?,
                    income => drop(book_income(tx, *income, one)?),
                }
            }
            tx.exec(sql!("account_read"), params![origin, to.entry, to.sale])?;
            Ok(true)
        };
        self.write(write, work).await
    }

    /// What rented machines cost.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn rented(&self) -> Result<Microcents, StoreError> {
        let statement =
            "SELECT coalesce(sum(-amount), 0) AS sum FROM ledger WHERE category = 'machine'";
        let work =
            move |db: &mut Db| Ok(db.connection.one(statement, [], |row| get(row, "sum"))?);
        Ok(self.run("add up what machines cost", work).await?.unwrap_or_default())
    }
}

fn far(connection: &Connection, origin: &str) -> Result<HowFar, Halt> {
    let statement = "SELECT entry, sale FROM account_reads WHERE origin = ?1";
    let read = |row: &Row<'_>| Ok(HowFar { entry: row.get("entry")?, sale: row.get("sale")? });
    Ok(connection.one(statement, [origin], read)?.unwrap_or_default())
}

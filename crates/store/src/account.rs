//! `account_reads`: how far the history of the account with a cloud was read.
//!
//! It is kept in the transaction that books what was read, so that whoever dies between the
//! two books nothing twice and leaves nothing out. Two who read at once must never both book.

use automaton_core::money::Microcents;
use rusqlite::{Connection, Row, params};

use crate::Store;
use crate::codec::get;
use crate::error::{StoreError, TxError};
use crate::ledger::{LedgerCategory, Revenue, book_cost, book_income};
use crate::sales::{self, PortSales};
use crate::thread::{CommitDurability, ConnectionExt, Tx, WriteOptions, sql};

/// Position in a history: the numbers of its newest entry and of its newest sale that were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cursor {
    /// Newest change of the balance.
    pub entry: i64,
    /// Newest sale.
    pub sale: i64,
}

/// New entries of a page of a history.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccountPage {
    /// Income and costs, to be booked.
    pub entries: Vec<(LedgerCategory, Revenue)>,
    /// Paid requests to ports, added up for each port.
    pub sold: Vec<PortSales>,
}

impl Store {
    /// Returns the position in the account's history with this cloud.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn account_cursor(&self, origin: String) -> Result<Cursor, StoreError> {
        self.run("look how far an account was read", move |tx| read_cursor(tx, &origin)).await
    }

    /// Books a page of a history, and that it was read. Returns whether it was booked: not
    /// when another reader has read on from there. An entry of [`LedgerCategory::Machine`]
    /// is a cost.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] when something is not above zero, or was booked as another amount.
    pub async fn book_account(
        &self,
        origin: String,
        since: Cursor,
        to: Cursor,
        page: AccountPage,
    ) -> Result<bool, StoreError> {
        let write = WriteOptions::new("book what an account told").sync(CommitDurability::Machine);
        let work = move |tx: &Tx<'_>| {
            if read_cursor(tx, &origin)? != since {
                return Ok(false);
            }
            for (category, one) in &page.entries {
                match category {
                    LedgerCategory::Machine => book_cost(tx, LedgerCategory::Machine, one)?,
                    income => drop(book_income(tx, *income, one)?),
                }
            }
            sales::add(tx, &page.sold)?;
            tx.exec(sql!("account_read"), params![origin, to.entry, to.sale])?;
            Ok(true)
        };
        self.write(write, work).await
    }

    /// Returns the cost of rented machines.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn rented(&self) -> Result<Microcents, StoreError> {
        let statement =
            "SELECT coalesce(sum(-amount), 0) AS sum FROM ledger WHERE category = 'machine'";
        let work = move |tx: &Tx<'_>| Ok(tx.one(statement, [], |row| get(row, "sum"))?);
        Ok(self.run("add up what machines cost", work).await?.unwrap_or_default())
    }
}

fn read_cursor(connection: &Connection, origin: &str) -> Result<Cursor, TxError> {
    let statement = "SELECT entry, sale FROM account_reads WHERE origin = ?1";
    let read = |row: &Row<'_>| Ok(Cursor { entry: row.get("entry")?, sale: row.get("sale")? });
    Ok(connection.one(statement, [origin], read)?.unwrap_or_default())
}

//! `port_sales`: paid requests to ports of its machines, added up for each port.
//!
//! They are added in the transaction that books the page of the history which told them, so
//! none is counted twice. The creator is told of the first ones at once and of later ones
//! in digests: however many visitors come, there is at most one message a span. What a
//! message told is noted in the transaction that stores it.

use automaton_core::id::{MessageId, RemoteMachineId};
use automaton_core::money::{MicroUsdc, MoneyError};
use automaton_core::time::{Span, Timestamp};
use automaton_core::trust::Labelled;
use rusqlite::{Connection, Row, params};

use crate::Store;
use crate::codec::{Sql, get, maybe};
use crate::error::{StoreError, TxError};
use crate::outbox;
use crate::reader::Reader;
use crate::thread::{ConnectionExt, Tx, WriteOptions, sql};

/// Ports that are read at once, those with the newest sales first.
const PORTS_MAX: u32 = 50;

/// Paid requests to one port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortSales {
    /// The machine.
    pub machine: RemoteMachineId,
    /// Its port.
    pub port: u16,
    /// The number of requests.
    pub sales: u64,
    /// The amount that they were paid with.
    pub amount: MicroUsdc,
    /// The time of the last one.
    pub last_at: Timestamp,
}

impl Store {
    /// Returns the paid requests to each port, newest first.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn port_sales(&self) -> Result<Vec<PortSales>, StoreError> {
        self.run("read what was sold", |tx| read(tx)).await
    }

    /// Tells the creator of sales that no message told yet, where there are some and the last
    /// such message is at least `every` ago. Returns the message.
    ///
    /// # Errors
    /// As [`Store::send_to_creator`].
    pub async fn tell_sales(
        &self,
        every: Span,
        words: impl FnOnce(&[PortSales]) -> Labelled + Send + 'static,
    ) -> Result<Option<(MessageId, Labelled)>, StoreError> {
        self.write(WriteOptions::new("tell what was sold"), move |tx| {
            let last: Option<Timestamp> = tx
                .one("SELECT max(told_at) AS at FROM port_sales", [], |row| maybe(row, "at"))?
                .flatten();
            // A time to come is one of a clock that was set back since.
            let is_early = last.is_some_and(|at| at <= tx.now && tx.now.since(at) < every);
            let untold = if is_early { Vec::new() } else { read_untold(tx)? };
            if untold.is_empty() {
                return Ok(None);
            }
            let statement = "SELECT sum(sales) AS sales FROM port_sales";
            let count: u64 = tx.one(statement, [], |row| get(row, "sales"))?.unwrap_or_default();
            let body = words(&untold);
            let message = outbox::send(tx, &format!("sales {count}"), &body, None)?;
            tx.exec(sql!("sales_told"), params![Sql(tx.now)])?;
            Ok(Some((message, body)))
        })
        .await
    }
}

impl Reader {
    /// Returns the paid requests to each port, newest first.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn port_sales(&self) -> Result<Vec<PortSales>, StoreError> {
        self.read("read what was sold", read)
    }
}

/// Adds up paid requests that a page of the history told.
pub(crate) fn add(tx: &Tx<'_>, sold: &[PortSales]) -> Result<(), TxError> {
    for PortSales { machine, port, sales, amount, last_at } in sold {
        let machine = Sql(machine.clone());
        let params = params![machine, port, Sql(*sales), Sql(*amount), Sql(*last_at)];
        tx.exec(sql!("sales_add"), params)?;
    }
    Ok(())
}

/// Returns the sum of the amounts.
///
/// # Errors
/// [`MoneyError::Overflow`] when it does not fit.
pub fn total_amount(sold: &[PortSales]) -> Result<MicroUsdc, MoneyError> {
    sold.iter().try_fold(MicroUsdc::ZERO, |sum, one| sum.plus(one.amount))
}

fn read(connection: &Connection) -> Result<Vec<PortSales>, TxError> {
    Ok(connection.all(sql!("sales_newest"), [PORTS_MAX], port_sales)?)
}

fn read_untold(tx: &Tx<'_>) -> Result<Vec<PortSales>, TxError> {
    Ok(tx.all(sql!("sales_untold"), [PORTS_MAX], port_sales)?)
}

fn port_sales(row: &Row<'_>) -> rusqlite::Result<PortSales> {
    Ok(PortSales {
        machine: get(row, "machine")?,
        port: row.get("port")?,
        sales: get(row, "sales")?,
        amount: get(row, "amount")?,
        last_at: get(row, "last_at")?,
    })
}

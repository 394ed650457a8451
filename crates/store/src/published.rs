//! `published_ports`: ports of the sandbox that are open to everybody, over restarts.
//!
//! The sandbox ends with the process, and what was published in it is opened again at the
//! next start. That is an effect like each other one: what was decided about it is stored,
//! with the state [`PublicationState::Reopening`], before anything is started. A row that is
//! found in that state has an unknown outcome and must never be opened again by itself.

use automaton_core::id::{CallId, TurnId};
use automaton_core::names::Names;
use automaton_core::record::WakeCause;
use rusqlite::{Connection, Row, params};

use crate::Store;
use crate::codec::{Sql, get, json_of};
use crate::error::{StoreError, TxError};
use crate::reader::Reader;
use crate::thread::{ConnectionExt, WriteOptions, sql};
use crate::wakes;

/// A port that is open to everybody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedPort {
    /// The port.
    pub port: u16,
    /// USDC a request, as the call said it; `None` for nothing.
    pub price: Option<String>,
    /// The address that visitors use.
    pub url: String,
    /// The commands that ran beside the turns when it was opened.
    pub commands: Vec<String>,
    /// The call that opened it.
    pub call: CallId,
    /// The turn of that call.
    pub turn: TurnId,
    /// Open or closed.
    pub state: PublicationState,
}

/// State of a published port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Names)]
#[names(rename_all = "snake_case")]
pub enum PublicationState {
    /// It was opened.
    Open,
    /// It was to be opened again, and the outcome is not on record.
    Reopening,
}

impl Store {
    /// Notes that a port is open.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn note_published(&self, published: PublishedPort) -> Result<(), StoreError> {
        self.write(WriteOptions::new("note a published port"), move |tx| {
            let PublishedPort { port, price, url, commands, call, turn, state } = published;
            let what = "the commands of a published port";
            let commands = serde_json::to_string(&commands)
                .map_err(|source| StoreError::Json { what, source })?;
            let price = price.unwrap_or_default();
            let row =
                params![port, price, url, commands, Sql(call), Sql(turn), Sql(state), Sql(tx.now)];
            tx.exec(sql!("published_note"), row)?;
            Ok(())
        })
        .await
    }

    /// Notes what was decided about opening a port again, before it is done.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn begin_reopening(&self, port: u16, decision: String) -> Result<(), StoreError> {
        self.write(WriteOptions::new("note that a port is opened again"), move |tx| {
            let state = Sql(PublicationState::Reopening);
            tx.exec(sql!("published_reopen"), params![port, state, decision, Sql(tx.now)])?;
            Ok(())
        })
        .await
    }

    /// Forgets a port that is not open any more.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn forget_published(&self, port: u16) -> Result<(), StoreError> {
        self.write(WriteOptions::new("forget a published port"), move |tx| {
            tx.exec("DELETE FROM published_ports WHERE port = ?1", [port])?;
            Ok(())
        })
        .await
    }

    /// Forgets a port that was not opened again, and wakes the automaton for it, in one
    /// transaction. Where too many wakes are pending, it wakes for those.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn give_up_published(&self, port: u16, wake: WakeCause) -> Result<(), StoreError> {
        self.write(WriteOptions::new("give up a published port"), move |tx| {
            tx.exec("DELETE FROM published_ports WHERE port = ?1", [port])?;
            match wakes::push(tx, &wake) {
                Err(TxError::Refused(StoreError::Full { .. })) => Ok(()),
                pushed => pushed,
            }
        })
        .await
    }

    /// Returns the published ports, lowest first.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn published_ports(&self) -> Result<Vec<PublishedPort>, StoreError> {
        self.run("read the published ports", |tx| read(tx)).await
    }
}

impl Reader {
    /// Returns the published ports, lowest first.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn published_ports(&self) -> Result<Vec<PublishedPort>, StoreError> {
        self.read("read the published ports", read)
    }
}

fn read(connection: &Connection) -> Result<Vec<PublishedPort>, TxError> {
    Ok(connection.all("SELECT * FROM published_ports ORDER BY port", [], published_port)?)
}

fn published_port(row: &Row<'_>) -> rusqlite::Result<PublishedPort> {
    let price: String = row.get("price")?;
    Ok(PublishedPort {
        port: row.get("port")?,
        price: Some(price).filter(|price| !price.is_empty()),
        url: row.get("url")?,
        commands: json_of(row, "commands")?,
        call: get(row, "call")?,
        turn: get(row, "turn")?,
        state: get(row, "state")?,
    })
}

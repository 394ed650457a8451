//! `machine_releases`: rented machines that are being given back.
//!
//! A row is made before the cloud is asked and goes with the message that tells of it, so
//! that a crash in between loses no message. Must never be made for a machine that stays.

use automaton_core::id::MessageId;
use automaton_core::time::Timestamp;
use automaton_core::trust::Labelled;
use rusqlite::params;

use crate::Store;
use crate::codec::{Sql, get};
use crate::error::StoreError;
use crate::outbox::send;
use crate::thread::{ConnectionExt, Tx, WriteOptions};

/// A machine that is being given back, or was, and of which the creator was not told yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineRelease {
    /// The cloud's id of it.
    pub machine: String,
    /// Name of the service.
    pub name: String,
    /// Time of the start.
    pub at: Timestamp,
}

impl Store {
    /// Notes that a machine is about to be given back.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn begin_release(&self, machine: &str, name: &str) -> Result<(), StoreError> {
        let machine = machine.to_owned();
        let name = name.to_owned();
        let statement = "INSERT INTO machine_releases (machine, name, at) VALUES (?1, ?2, ?3) \
                         ON CONFLICT (machine) DO NOTHING";
        self.write(WriteOptions::new("note a machine that is given back"), move |tx| {
            tx.exec(statement, params![machine, name, Sql(tx.now)])?;
            Ok(())
        })
        .await
    }

    /// The machines that are being given back, oldest first.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn releases(&self) -> Result<Vec<MachineRelease>, StoreError> {
        let statement = "SELECT * FROM machine_releases ORDER BY at, machine";
        let work = move |tx: &Tx<'_>| {
            Ok(tx.all(statement, [], |row| {
                let machine = row.get("machine")?;
                let name = row.get("name")?;
                Ok(MachineRelease { machine, name, at: get(row, "at")? })
            })?)
        };
        self.run("read the machines that are given back", work).await
    }

    /// Notes that a release is over, and tells the creator if there is something to tell; the
    /// message's id then.
    ///
    /// # Errors
    /// When SQLite fails, or the message is too long.
    pub async fn end_release(
        &self,
        release: MachineRelease,
        told: Option<Labelled>,
    ) -> Result<Option<MessageId>, StoreError> {
        self.write(WriteOptions::new("tell of a machine that was given back"), move |tx| {
            let MachineRelease { machine, at, .. } = &release;
            tx.exec("DELETE FROM machine_releases WHERE machine = ?1", [machine])?;
            let cause = format!("{machine} stopped at {at}");
            told.as_ref().map(|body| send(tx, &cause, body, None)).transpose()
        })
        .await
    }
}

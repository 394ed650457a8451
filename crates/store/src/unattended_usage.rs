//! Model calls since the creator last called.
//!
//! It is counted by the order of the bookings and not by a clock, so that no clock that
//! is set gives more. Only a call of the creator may begin it anew at once.

use automaton_core::pnl::UnattendedUsage;
use automaton_core::record::StopReason;
use rusqlite::Connection;

use crate::Store;
use crate::codec::{Sql, get};
use crate::error::{StoreError, TxError};
use crate::thread::{ConnectionExt, Tx, WriteOptions, sql};

impl Store {
    /// Returns the model calls since the creator last called.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn unattended_usage(&self) -> Result<UnattendedUsage, StoreError> {
        self.run("add up what was thought", |tx| usage(tx)).await
    }

    /// Returns true if the creator caused the newest wake cycle: one that is open, or continues
    /// after a failure of its process or its model.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn is_creators_wake(&self) -> Result<bool, StoreError> {
        self.run("read who caused the wake cycle", |tx| creators(tx)).await
    }

    /// Resets the count of model calls: those up to now were the creator's wish.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn reset_unattended_usage(&self) -> Result<(), StoreError> {
        self.write(WriteOptions::new("begin to count answers"), on_creator_call).await
    }

    /// Returns the number of newest wake cycles in a row that ended for this reason.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn in_a_row(&self, reason: StopReason) -> Result<u32, StoreError> {
        self.run("count the wake cycles that ended alike", move |tx| {
            let count = sql!("sessions_in_a_row");
            let count = tx.one(count, [Sql(reason)], |row| get(row, "count"))?;
            Ok(count.unwrap_or_default())
        })
        .await
    }
}

pub(crate) fn usage(connection: &Connection) -> Result<UnattendedUsage, TxError> {
    let found = connection.one(sql!("unattended"), [], |row| {
        Ok(UnattendedUsage {
            answers: get(row, "answers")?,
            cost: get(row, "cost")?,
            revenue: get(row, "revenue")?,
            rests: get(row, "rests")?,
        })
    })?;
    Ok(found.unwrap_or_default())
}

pub(crate) fn creators(connection: &Connection) -> Result<bool, TxError> {
    let found = connection.one(sql!("creators_wake"), [], |row| row.get("creators"))?;
    Ok(found.unwrap_or(false))
}

/// The creator calls: what was thought before does not count any more.
pub(crate) fn on_creator_call(tx: &Tx<'_>) -> Result<(), TxError> {
    tx.exec(sql!("unattended_called"), [])?;
    Ok(())
}

/// It rests for what it thought, and begins anew afterwards.
pub(crate) fn on_rest(tx: &Tx<'_>) -> Result<(), TxError> {
    tx.exec(sql!("unattended_rested"), [])?;
    Ok(())
}

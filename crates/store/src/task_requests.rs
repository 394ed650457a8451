//! `heartbeat_schedule`: a run that somebody asks for, beside the times of the schedule.
//!
//! It is a try more, as after a failure, so the rhythm stays as it was. It must never make a
//! task run that is off, or twice at once.

use rusqlite::params;

use crate::Store;
use crate::codec::Sql;
use crate::error::StoreError;
use crate::thread::{ConnectionExt as _, Tx, WriteOptions};

impl Store {
    /// Makes a task due now, unless a run of it is not over; whether it is due.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn request_task(&self, name: &str) -> Result<bool, StoreError> {
        let name = name.to_owned();
        self.write(WriteOptions::new("make a task due"), move |tx: &Tx<'_>| {
            let statement = "UPDATE heartbeat_schedule SET retry_at = ?2 \
                             WHERE name = ?1 AND enabled = 1 AND lease_run IS NULL";
            Ok(tx.exec(statement, params![name, Sql(tx.now)])? > 0)
        })
        .await
    }
}

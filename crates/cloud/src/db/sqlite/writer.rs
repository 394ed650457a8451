//! The transactions of the cloud's database.
//!
//! Every one is on the disk when its caller is answered, since most of them are about
//! money; what waits together is synced together, and each fails alone. None may have
//! another time than that of its asking.

use std::sync::Arc;

use automaton_core::time::{Clock, Timestamp};
use automaton_sqlite::{CommitDurability, WriteOptions, Writer};
use rusqlite::Connection;

use crate::db::error::{DbError, DbTxError};

/// A handle on the writer.
#[derive(Clone)]
pub(super) struct DbWriter {
    pub(super) writer: Writer,
    pub(super) clock: Arc<dyn Clock>,
}

/// A running transaction, and one time for all it writes.
pub(super) struct DbTx<'a> {
    pub(super) sql: &'a Connection,
    pub(super) now: Timestamp,
}

impl DbWriter {
    /// Runs one transaction; it runs even when nobody waits for it any more.
    /// `operation` completes "cannot …".
    pub(super) async fn run<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&DbTx<'_>) -> Result<T, DbTxError> + Send + 'static,
    ) -> Result<T, DbError> {
        let now = self.clock.now();
        let write = WriteOptions::new(operation).sync(CommitDurability::Machine);
        self.writer.write(write, move |sql| work(&DbTx { sql, now })).await
    }
}

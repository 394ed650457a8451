//! The transactions of the cloud's database.
//!
//! Every one is on the disk when its caller is answered, since most of them are about
//! money; what waits together is synced together, and each fails alone. None may have
//! another time than that of its asking.

use std::path::Path;
use std::sync::Arc;

use automaton_core::faults::NoFaults;
use automaton_core::time::{Clock, Timestamp};
use automaton_sqlite::{CommitDurability, CommitHook, WriteOptions, Writer, WriterHooks};
use rusqlite::Connection;

use crate::db::DbFuture;
use crate::db::error::{DbError, DbTxError};

/// A handle on the writer.
#[derive(Clone)]
pub(super) struct DbWriter {
    writer: Writer,
    clock: Arc<dyn Clock>,
}

/// A running transaction, and one time for all it writes.
pub(super) struct DbTx<'a> {
    pub(super) sql: &'a Connection,
    pub(super) now: Timestamp,
}

impl DbWriter {
    pub(super) fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, DbError> {
        let hooks = WriterHooks { faults: Arc::new(NoFaults), synced: None };
        Ok(Self { writer: Writer::start(connect(path)?, "cloud-writer", hooks)?, clock })
    }

    pub(super) fn open_here(
        path: &Path,
        clock: Arc<dyn Clock>,
        synced: CommitHook,
    ) -> Result<Self, DbError> {
        let hooks = WriterHooks { faults: Arc::new(NoFaults), synced: Some(synced) };
        Ok(Self { writer: Writer::in_caller(connect(path)?, hooks), clock })
    }

    /// Runs one transaction; it runs even when nobody waits for it any more.
    /// `operation` completes "cannot …".
    pub(super) fn run<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&DbTx<'_>) -> Result<T, DbTxError> + Send + 'static,
    ) -> DbFuture<'_, T> {
        let now = self.clock.now();
        let write = WriteOptions::new(operation).sync(CommitDurability::Machine);
        Box::pin(self.writer.write(write, move |sql| work(&DbTx { sql, now })))
    }

    /// Folds the log back into the file.
    pub(super) fn fold(&self) -> DbFuture<'_, ()> {
        Box::pin(async { Ok(self.writer.checkpoint().await?) })
    }
}

fn connect(path: &Path) -> Result<Connection, DbError> {
    let connection = automaton_sqlite::open(path, &super::SCHEMA)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

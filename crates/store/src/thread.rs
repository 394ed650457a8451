//! The store's writer, and what its jobs work on.
//!
//! What waits together is committed together, and each job fails alone ([`Writer`]). A link
//! of the audit chain is one job's, not one commit's: it closes before the job does, and
//! rolls back with it, so that links stay gapless and a history has the same ones whoever
//! else was waiting. The next job of the same commit goes on from there. Nothing here may
//! keep a state between jobs.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use automaton_core::faults::Faults;
use automaton_core::id::IdGenerator;
use automaton_core::time::Timestamp;
pub use automaton_sqlite::CommitHook;
pub(crate) use automaton_sqlite::{CommitDurability, WriteOptions};
use automaton_sqlite::{Writer, WriterHooks};
use rusqlite::{Connection, Params, Row};

use crate::Store;
use crate::audit;
use crate::error::{StoreError, TxError};
use crate::rows::watch::Watch;

impl Store {
    /// Opens the database, makes or migrates it, and starts the writer thread. After an end
    /// that was none of its own, blocks for as long as checking the file takes.
    ///
    /// # Errors
    /// [`StoreError::Database`] when the file is newer, damaged, foreign or out of
    /// reach; it is left as it is then.
    pub fn open(
        path: &Path,
        ids: IdGenerator,
        faults: Arc<dyn Faults>,
    ) -> Result<Self, StoreError> {
        let hooks = WriterHooks { faults: Some(faults), synced: None };
        let (connection, watch) = connect(path)?;
        Ok(Self::over(Writer::start(connection, "store-writer", hooks)?, watch, ids))
    }

    fn over(writer: Writer, watch: Arc<Watch>, ids: IdGenerator) -> Self {
        let (vectors, vectors_kept, awaited) = Default::default();
        Self { writer, watch, ids, vectors, vectors_kept, awaited }
    }

    /// The same without a thread, for a simulation: each job runs where it is
    /// asked for, and blocks there. Tells `synced` of each commit that survives
    /// the machine.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_here(
        path: &Path,
        ids: IdGenerator,
        faults: Arc<dyn Faults>,
        synced: CommitHook,
    ) -> Result<Self, StoreError> {
        let hooks = WriterHooks { faults: Some(faults), synced: Some(synced) };
        let (connection, watch) = connect(path)?;
        Ok(Self::over(Writer::in_caller(connection, hooks), watch, ids))
    }

    /// Folds the log back, ends the writer thread after the jobs before, and waits until
    /// the database is closed, so that the next start has nothing to check. Clones of the
    /// handle then get [`automaton_sqlite::SqliteError::WriterGone`].
    ///
    /// # Errors
    /// When the thread had ended before; when SQLite fails.
    pub async fn close(self) -> Result<(), StoreError> {
        Ok(self.writer.close().await?)
    }

    /// Does some work that only reads, and waits for its result.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Tx<'_>) -> Result<T, TxError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let ids = self.ids.clone();
        let watch = Arc::clone(&self.watch);
        let read = move |connection: &Connection| work(&Tx::new(connection, &ids, &watch));
        self.writer.read(operation, read).await
    }

    /// Does a job that is one transaction. It is done even when nobody waits.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        write: WriteOptions,
        work: impl FnOnce(&Tx<'_>) -> Result<T, TxError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let ids = self.ids.clone();
        let watch = Arc::clone(&self.watch);
        let job = move |connection: &Connection| {
            // A job before this one may have failed, which undid what it touched.
            watch.clear();
            let tx = Tx::new(connection, &ids, &watch);
            let done = work(&tx)?;
            audit::close_link(&tx)?;
            Ok(done)
        };
        self.writer.write(write, job).await
    }
}

/// Opens the database, and has changes of the rows that the chain covers be seen.
fn connect(path: &Path) -> Result<(Connection, Arc<Watch>), StoreError> {
    let connection = automaton_sqlite::open(path, &crate::SCHEMA)?;
    connection.set_prepared_statement_cache_capacity(160);
    let operation = "watch the rows of the record";
    let failed = |source| automaton_sqlite::SqliteError::Operation { operation, source };
    let watch = Watch::start(&connection).map_err(failed)?;
    Ok((connection, watch))
}

/// A running transaction: the connection, and one time for all it writes.
pub(crate) struct Tx<'a> {
    sql: &'a Connection,
    pub(crate) ids: &'a IdGenerator,
    pub(crate) now: Timestamp,
    /// The link of the audit chain that this transaction adds, once it covers a row.
    pub(crate) chain: RefCell<Option<audit::Growing>>,
    /// What it changed of the rows that the chain covers.
    pub(crate) watch: &'a Watch,
}

impl<'a> Tx<'a> {
    fn new(sql: &'a Connection, ids: &'a IdGenerator, watch: &'a Watch) -> Self {
        Self { sql, ids, now: ids.now(), chain: RefCell::new(None), watch }
    }
}

impl Deref for Tx<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.sql
    }
}

/// Statements, prepared once a connection.
pub(crate) trait ConnectionExt: Borrow<Connection> {
    /// Runs a statement; gives the number of rows it changed.
    fn exec(&self, sql: &str, params: impl Params) -> rusqlite::Result<usize> {
        self.borrow().prepare_cached(sql)?.execute(params)
    }

    /// The first row, if there is one.
    fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Option<T>> {
        let mut statement = self.borrow().prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        rows.next()?.map(read).transpose()
    }

    /// Every row.
    fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        self.borrow().prepare_cached(sql)?.query_map(params, read)?.collect()
    }
}

impl ConnectionExt for Connection {}

/// A statement from its file.
macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/sql/", $name, ".sql"))
    };
}
pub(crate) use sql;

#[cfg(test)]
mod tests {
    use automaton_core::entropy::SystemEntropy;
    use automaton_core::error::Classified;
    use automaton_core::faults::NoFaults;
    use automaton_core::time::SystemClock;

    use super::*;

    fn writer() -> (tempfile::TempDir, Store) {
        let home = tempfile::tempdir().unwrap();
        let ids = IdGenerator::new(Arc::new(SystemClock), Arc::new(SystemEntropy));
        let path = home.path().join("state.db");
        (home, Store::open(&path, ids, Arc::new(NoFaults)).unwrap())
    }

    #[tokio::test]
    async fn a_refused_write_leaves_nothing() {
        let (_home, writer) = writer();
        let half = |tx: &Tx<'_>| {
            tx.exec("UPDATE audit_head SET links = 9", [])?;
            Err::<(), _>(StoreError::Unborn.into())
        };
        writer.write(WriteOptions::new("fail"), half).await.unwrap_err();
        let links = |tx: &Tx<'_>| {
            Ok(tx.query_row("SELECT links FROM audit_head", [], |row| row.get::<_, i64>(0))?)
        };
        assert_eq!(writer.write(WriteOptions::new("look"), links).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_full_disk_is_named_and_loses_nothing() {
        let (_home, writer) = writer();
        // A page limit is the full disk that a test can make: SQLite gives the
        // same error for both.
        let limit =
            |connection: &mut Connection| connection.pragma_update(None, "max_page_count", 90);
        writer.writer.alone("limit", limit).await.unwrap();
        let write = |tx: &Tx<'_>| {
            let text = "x".repeat(60_000);
            tx.exec(sql!("state_change"), ("setup", "waking", text, 0))?;
            Ok(())
        };
        let mut stored = 0;
        let error = loop {
            match writer.write(WriteOptions::new("store a message"), write).await {
                Ok(()) => stored += 1,
                Err(error) => break error,
            }
            assert!(stored < 90, "the limit never came");
        };
        assert!(matches!(error, StoreError::Database(_)), "{error:?}");
        assert_eq!(error.to_string(), "cannot store a message: the disk is full");
        assert!(error.hint().unwrap().contains("disk space"));
        let count = |tx: &Tx<'_>| {
            Ok(tx.query_row("SELECT count(*) FROM state_changes", [], |row| row.get::<_, i32>(0))?)
        };
        assert_eq!(writer.write(WriteOptions::new("look"), count).await.unwrap(), stored);
    }
}

//! `path_labels`: whose words a file of the workspace may hold.
//!
//! A label is stored before the file is written and taken away after it was written
//! again, so that a crash in between leaves it. A full table must never let a file
//! through without its label.

use automaton_core::trust::Label;
use automaton_sqlite::chain::Hash;
use rusqlite::{Connection, params};

use crate::codec::{Sql, get, maybe};
use crate::error::{StoreError, TxError};
use crate::thread::{ConnectionExt, Tx, WriteOptions, sql};
use crate::{Reader, Store};

/// Files that can have a label.
const LABELLED_PATHS_MAX: u32 = 20_000;

impl Store {
    /// Notes that a file is about to be written in words that may be a peer's or the
    /// net's.
    ///
    /// # Errors
    /// [`StoreError::Full`] when too many files have a label.
    pub async fn label_path(&self, path: String, label: Label) -> Result<(), StoreError> {
        self.label_bytes(path, label, None).await
    }

    /// The same of these very bytes, by their hash: whatever else the folder has, while the file
    /// is that to the byte, it holds nobody's words but these.
    ///
    /// # Errors
    /// As [`Store::label_path`].
    pub async fn label_bytes(
        &self,
        path: String,
        label: Label,
        sha256: Option<Hash>,
    ) -> Result<(), StoreError> {
        self.write(WriteOptions::new("label a file"), move |tx| {
            let statement = "SELECT count(*) AS count FROM path_labels WHERE path <> ?1";
            let others: u32 = tx.one(statement, [&path], |row| get(row, "count"))?.unwrap_or(0);
            if others >= LABELLED_PATHS_MAX {
                let noun = "files with words of others";
                return Err(StoreError::Full { noun, limit: LABELLED_PATHS_MAX }.into());
            }
            tx.exec(sql!("path_label"), params![path, Sql(label), sha256.map(Sql), Sql(tx.now)])?;
            Ok(())
        })
        .await
    }

    /// Returns the label that is noted for a file itself, and the hash of its bytes at that time.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn noted_label(
        &self,
        path: String,
    ) -> Result<Option<(Label, Option<Hash>)>, StoreError> {
        let work = move |tx: &Tx<'_>| {
            let statement = "SELECT label, sha256 FROM path_labels WHERE path = ?1";
            Ok(tx.one(statement, [path], |row| Ok((get(row, "label")?, maybe(row, "sha256")?)))?)
        };
        self.run("read the label of a file", work).await
    }

    /// The files and folders with a label, each with it.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn labelled_paths(&self) -> Result<Vec<(String, Label)>, StoreError> {
        let work = move |tx: &Tx<'_>| {
            let statement = "SELECT path, label FROM path_labels ORDER BY path";
            Ok(tx.all(statement, [], |row| Ok((row.get("path")?, get(row, "label")?)))?)
        };
        self.run("read the labels of files", work).await
    }

    /// Notes that a file was written again, in words of the automaton's own.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn clear_path(&self, path: String) -> Result<(), StoreError> {
        self.write(WriteOptions::new("clear the label of a file"), move |tx| {
            tx.exec("DELETE FROM path_labels WHERE path = ?1", [path])?;
            Ok(())
        })
        .await
    }

    /// Returns the least trusted label among that of a file and those of the folders above it.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn path_label(&self, path: String) -> Result<Option<Label>, StoreError> {
        self.run("read the label of a file", move |tx| above(tx, &path)).await
    }

    /// The same of a file that has these bytes, by their hash.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn bytes_label(
        &self,
        path: String,
        sha256: Hash,
    ) -> Result<Option<Label>, StoreError> {
        self.run("read the label of a file", move |tx| of_bytes(tx, &path, sha256)).await
    }
}

impl Reader {
    /// As [`Store::bytes_label`].
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn bytes_label(&self, path: &str, sha256: Hash) -> Result<Option<Label>, StoreError> {
        self.read("read the label of a file", |connection| of_bytes(connection, path, sha256))
    }
}

fn above(connection: &Connection, path: &str) -> Result<Option<Label>, TxError> {
    let labels: Vec<Label> =
        connection.all(sql!("path_labels_above"), [path], |row| get(row, "label"))?;
    Ok(labels.into_iter().reduce(Label::meet))
}

fn of_bytes(connection: &Connection, path: &str, sha256: Hash) -> Result<Option<Label>, TxError> {
    let statement = "SELECT label FROM path_labels WHERE path = ?1 AND sha256 = ?2";
    match connection.one(statement, params![path, Sql(sha256)], |row| get(row, "label"))? {
        Some(label) => Ok(Some(label)),
        None => above(connection, path),
    }
}

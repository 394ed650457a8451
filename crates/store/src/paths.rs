//! `path_labels`: whose words a file of the workspace may hold.
//!
//! A label is stored before the file is written and taken away after it was written
//! again, so that a crash in between leaves it. A full table must never let a file
//! through without its label.

use automaton_core::trust::Label;
use rusqlite::params;

use crate::Store;
use crate::codec::{Sql, get};
use crate::error::StoreError;
use crate::thread::{ConnectionExt, Tx, WriteOptions, sql};

/// Files that can have a label.
const LABELLED_PATHS_MAX: u32 = 20_000;

impl Store {
    /// Notes that a file is about to be written in words that may be a peer's or the
    /// net's.
    ///
    /// # Errors
    /// [`StoreError::Full`] when too many files have a label.
    pub async fn label_path(&self, path: String, label: Label) -> Result<(), StoreError> {
        self.write(WriteOptions::new("label a file"), move |tx| {
            let statement = "SELECT count(*) AS count FROM path_labels WHERE path <> ?1";
            let others: u32 = tx.one(statement, [&path], |row| get(row, "count"))?.unwrap_or(0);
            if others >= LABELLED_PATHS_MAX {
                let noun = "files with words of others";
                return Err(StoreError::Full { noun, limit: LABELLED_PATHS_MAX }.into());
            }
            tx.exec(sql!("path_label"), params![path, Sql(label), Sql(tx.now)])?;
            Ok(())
        })
        .await
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

    /// Whose words a file may hold besides the automaton's own: its own label, or that of a
    /// folder above it, whichever is the least trusted.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn path_label(&self, path: String) -> Result<Option<Label>, StoreError> {
        let work = move |tx: &Tx<'_>| {
            let labels: Vec<Label> =
                tx.all(sql!("path_labels_above"), [path], |row| get(row, "label"))?;
            Ok(labels.into_iter().reduce(Label::meet))
        };
        self.run("read the label of a file", work).await
    }
}

//! `soul_history`: every version of what the automaton thinks of itself, in a chain of hashes.
//!
//! The newest row is the soul; SOUL.md is only its view. Versions are added and never changed;
//! of old ones only the hashes are kept in the end. A row must never be believed whose hash is not
//! the one that its content and the row before give.

use automaton_core::soul::{Soul, SoulChange, SoulVersion};
use automaton_core::time::Timestamp;
use automaton_sqlite::chain::{CanonicalRow, GENESIS, Hash};
use rusqlite::{Connection, Row, params};

use crate::codec::{Sql, get};
use crate::error::{StoreError, TxError, unfit};
use crate::thread::{ConnectionExt, Tx, WriteOptions, sql};
use crate::{Reader, Store};

/// The newest versions of which more than the hash is kept.
const WHOLE_MAX: u32 = 200;

/// Result of the latest reflection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoulReflectionRow {
    /// Time of the reflection.
    pub at: Timestamp,
    /// Its advice; empty if there was none.
    pub suggestion: String,
}

/// Facts of the record about the automaton itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoulEvidence {
    /// The tools of its last calls that were done, by name.
    pub tools: Vec<String>,
    /// Others whom it knows.
    pub others: u32,
}

/// A row, with what its hash is made of.
struct SoulRow {
    version: SoulVersion,
    content: Hash,
    hash: Hash,
}

impl SoulRow {
    /// The hash that follows from the row and the one before.
    fn link(&self, previous: Hash) -> Hash {
        let SoulVersion { version, source, reason, approved_by, at, .. } = &self.version;
        CanonicalRow::new("soul_history")
            .int(i64::from(*version))
            .bytes(self.content.as_bytes())
            .text(source.name())
            .text(reason)
            .maybe(approved_by.as_deref())
            .int(at.as_millis())
            .bytes(previous.as_bytes())
            .hash()
    }
}

impl Store {
    /// Keeps a changed soul, which becomes the soul; its version.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] where it was made of another version than the newest.
    pub async fn change_soul(&self, change: SoulChange) -> Result<u32, StoreError> {
        self.write(WriteOptions::new("change the soul"), move |tx| add(tx, &change)).await
    }

    /// The soul as it is; nothing before its first version.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn soul(&self) -> Result<Option<SoulVersion>, StoreError> {
        self.run("read the soul", |tx| newest(tx)).await
    }

    /// Notes that it looked at itself, and what it was advised.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn reflected(&self, suggestion: String) -> Result<(), StoreError> {
        self.write(WriteOptions::new("note a reflection"), move |tx| {
            tx.exec(sql!("soul_reflected"), params![Sql(tx.now), suggestion])?;
            Ok(())
        })
        .await
    }

    /// Returns the latest reflection.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn last_reflection(&self) -> Result<Option<SoulReflectionRow>, StoreError> {
        self.run("read a reflection", |tx| reflection(tx)).await
    }

    /// Returns the facts of the record about the automaton itself.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn soul_evidence(&self) -> Result<SoulEvidence, StoreError> {
        let work = |tx: &Tx<'_>| {
            let tools = tx.all(sql!("soul_tools"), [], |row| row.get("tool"))?;
            let statement = "SELECT count(*) AS count FROM memories \
                 WHERE tier = 'relationship' AND valid_to IS NULL";
            let others = tx.one(statement, [], |row| get(row, "count"))?.unwrap_or(0);
            Ok(SoulEvidence { tools, others })
        };
        self.run("read what the record says about the automaton", work).await
    }

    /// The newest versions, newest first.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn soul_versions(&self, limit: u32) -> Result<Vec<SoulVersion>, StoreError> {
        self.run("read the soul's versions", move |tx| versions(tx, limit)).await
    }
}

impl Reader {
    /// As [`Store::soul`].
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn soul(&self) -> Result<Option<SoulVersion>, StoreError> {
        self.read("read the soul", newest)
    }

    /// As [`Store::last_reflection`].
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn last_reflection(&self) -> Result<Option<SoulReflectionRow>, StoreError> {
        self.read("read a reflection", reflection)
    }

    /// As [`Store::soul_versions`].
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn soul_versions(&self, limit: u32) -> Result<Vec<SoulVersion>, StoreError> {
        self.read("read the soul's versions", |connection| versions(connection, limit))
    }

    /// One version.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn soul_version(&self, version: u32) -> Result<Option<SoulVersion>, StoreError> {
        self.read("read a version of the soul", |connection| {
            let statement = "SELECT * FROM soul_history WHERE version = ?1";
            Ok(connection.one(statement, [version], row)?.map(|row| row.version))
        })
    }

    /// The first version that somebody has changed since it was kept, if there is one.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn broken_soul(&self) -> Result<Option<u32>, StoreError> {
        self.read("check the soul's versions", |connection| {
            let all = connection.all("SELECT * FROM soul_history ORDER BY version", [], row)?;
            let mut before = (0, GENESIS);
            for row in &all {
                let version = row.version.version;
                let is_content = row.version.soul.as_ref().map(body).transpose()?;
                let is_content = is_content.is_none_or(|it| Hash::of(it.as_bytes()) == row.content);
                let follows = version == before.0 + 1 && row.link(before.1) == row.hash;
                if !(is_content && follows) {
                    return Ok(Some(version));
                }
                before = (version, row.hash);
            }
            Ok(None)
        })
    }
}

pub(crate) fn newest(connection: &Connection) -> Result<Option<SoulVersion>, TxError> {
    let statement = "SELECT * FROM soul_history ORDER BY version DESC LIMIT 1";
    Ok(connection.one(statement, [], row)?.map(|row| row.version))
}

fn versions(connection: &Connection, limit: u32) -> Result<Vec<SoulVersion>, TxError> {
    let statement = "SELECT * FROM soul_history ORDER BY version DESC LIMIT ?1";
    Ok(connection.all(statement, [limit], |found| row(found).map(|row| row.version))?)
}

fn reflection(connection: &Connection) -> Result<Option<SoulReflectionRow>, TxError> {
    Ok(connection.one("SELECT at, suggestion FROM soul_reflection", [], |row| {
        Ok(SoulReflectionRow { at: get(row, "at")?, suggestion: row.get("suggestion")? })
    })?)
}

fn body(soul: &Soul) -> Result<String, StoreError> {
    serde_json::to_string(soul).map_err(|source| StoreError::Json { what: "a soul", source })
}

fn add(tx: &Tx<'_>, change: &SoulChange) -> Result<u32, TxError> {
    let statement = "SELECT * FROM soul_history ORDER BY version DESC LIMIT 1";
    let last = tx.one(statement, [], row)?;
    let (before, previous) = last.map_or((0, GENESIS), |last| (last.version.version, last.hash));
    let SoulChange { soul, from, source, reason, approved_by } = change;
    if before != *from {
        return Err(unfit("soul", &from, "was changed by somebody else meanwhile"));
    }
    let body = body(soul)?;
    let version = before + 1;
    let new = SoulRow {
        version: SoulVersion {
            version,
            soul: None,
            source: *source,
            reason: reason.clone(),
            approved_by: approved_by.clone(),
            at: tx.now,
            hash: String::new(),
        },
        content: Hash::of(body.as_bytes()),
        hash: GENESIS,
    };
    tx.exec(
        sql!("soul_add"),
        params![
            version,
            body,
            Sql(new.content),
            Sql(*source),
            reason,
            approved_by,
            Sql(tx.now),
            Sql(new.link(previous)),
        ],
    )?;
    tx.exec(sql!("soul_prune"), [version.saturating_sub(WHOLE_MAX)])?;
    Ok(version)
}

fn row(row: &Row<'_>) -> rusqlite::Result<SoulRow> {
    let body: Option<String> = row.get("body")?;
    let soul = body.map(|body| serde_json::from_str(&body)).transpose().map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
    })?;
    let hash: Hash = get(row, "hash")?;
    Ok(SoulRow {
        version: SoulVersion {
            version: get(row, "version")?,
            soul,
            source: get(row, "change_source")?,
            reason: row.get("change_reason")?,
            approved_by: row.get("approved_by")?,
            at: get(row, "created_at")?,
            hash: hash.to_string(),
        },
        content: get(row, "content_hash")?,
        hash,
    })
}

//! Views of the record and of backups.

use std::path::PathBuf;

use alloy_primitives::Address;
use automaton_core::time::Timestamp;
use automaton_store::{ChainDivergence, ChainLink, Column, ExportHeader};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::backup::ArchiveTally;

/// A check of the record.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct AuditVerifyView {
    /// True if nobody changed the record.
    pub(crate) whole: bool,
    /// Number of entries.
    pub(crate) entries: u64,
    /// The hash of the last entry, in hexadecimal.
    pub(crate) head: String,
    /// The first problem, in words; `null` without one.
    pub(crate) broken: Option<String>,
    /// All problems of rows, in words.
    pub(crate) rows: Vec<String>,
    /// Difference to the head that was given; `null` without one.
    pub(crate) since_head: Option<ChainDivergenceView>,
}

/// Difference between a chain and an earlier head of it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChainDivergenceView {
    /// There were more entries then.
    Cut {
        /// Number of entries now.
        links: u64,
    },
    /// The last entry of then is another one now.
    Rewritten {
        /// Its hash now, in hexadecimal.
        now: String,
    },
}

impl From<&ChainDivergence> for ChainDivergenceView {
    fn from(row: &ChainDivergence) -> Self {
        match row {
            ChainDivergence::Cut { links } => Self::Cut { links: *links },
            ChainDivergence::Rewritten { now } => Self::Rewritten { now: now.clone() },
        }
    }
}

/// An entry of the record.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct AuditEntryView<'a> {
    /// Its number, from 1.
    pub(crate) seq: u64,
    /// Kind of the row.
    pub(crate) kind: &'a str,
    /// The id of the row's subject.
    pub(crate) subject: &'a str,
    /// Time of writing, in milliseconds since 1970.
    pub(crate) at: Timestamp,
    /// The columns of the row, each with `name` and `value`.
    #[schemars(with = "Vec<AuditColumnView>")]
    pub(crate) row: &'a [Column],
    /// The hash of the row, in hexadecimal.
    pub(crate) digest: &'a str,
    /// The hash of the entry before, in hexadecimal.
    pub(crate) prev: &'a str,
    /// The hash of the entry, in hexadecimal.
    pub(crate) sha256: &'a str,
}

/// A column of a row.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "describes the columns of the store, which hide their fields")]
struct AuditColumnView {
    /// Its name.
    name: String,
    /// Its value.
    value: AuditValueView,
}

/// Value of a column.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
#[expect(dead_code, reason = "describes the values of the store, which hides their type")]
enum AuditValueView {
    /// None.
    Null,
    /// A number.
    Int(i64),
    /// A text.
    Text(String),
    /// Bytes, in hexadecimal.
    Bytes(String),
}

impl<'a> From<&'a ChainLink> for AuditEntryView<'a> {
    fn from(link: &'a ChainLink) -> Self {
        let ChainLink { seq, kind, subject, at, row, digest, prev, sha256 } = link;
        Self { seq: *seq, kind, subject, at: *at, row, digest, prev, sha256 }
    }
}

/// The first line of an export of the record.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ExportHeaderView {
    /// The format.
    pub(crate) record: String,
    /// Number of entries.
    pub(crate) links: u64,
    /// The hash of the last entry, in hexadecimal.
    pub(crate) head: String,
}

impl From<&ExportHeader> for ExportHeaderView {
    fn from(row: &ExportHeader) -> Self {
        let ExportHeader { record, links, head } = row.clone();
        Self { record, links, head }
    }
}

/// The head of the record. A saved one is read back.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditHeadView {
    /// Number of entries.
    pub(crate) entries: u64,
    /// The hash of the last entry, in hexadecimal.
    pub(crate) head: String,
    /// The text that was signed, with the signature as its last line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) signed: Option<String>,
}

/// A backup that was made.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct BackupView {
    /// The file.
    pub(crate) file: PathBuf,
    /// The automaton's name.
    pub(crate) automaton: String,
    /// Time of the copy, as text by RFC 3339.
    pub(crate) made_at: String,
    /// The wallet's address; `null` without one.
    #[schemars(with = "Option<String>")]
    pub(crate) wallet: Option<Address>,
    /// The folders in it.
    pub(crate) folders: Vec<String>,
    /// Counts and digest of the content.
    pub(crate) content: ArchiveTallyView,
    /// Files that were left out.
    pub(crate) skipped: u64,
    /// True if the disks of rented machines are left out.
    pub(crate) without_machines: bool,
    /// True if snapshots of the workspace are left out.
    pub(crate) without_snapshots: bool,
}

/// Counts and digest of a backup.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ArchiveTallyView {
    /// Files.
    pub(crate) files: u64,
    /// Their bytes, without holes.
    pub(crate) bytes: u64,
    /// SHA-256 over each entry with its digest, in hexadecimal.
    pub(crate) digest: String,
}

impl From<&ArchiveTally> for ArchiveTallyView {
    fn from(row: &ArchiveTally) -> Self {
        let ArchiveTally { files, bytes, digest } = row.clone();
        Self { files, bytes, digest }
    }
}

/// A life that was restored from a backup.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct RestoredLifeView {
    /// The automaton's name.
    pub(crate) automaton: String,
    /// Time of the copy, as text by RFC 3339.
    pub(crate) made_at: String,
    /// The wallet's address; `null` without one.
    #[schemars(with = "Option<String>")]
    pub(crate) wallet: Option<Address>,
    /// The folders that were restored.
    pub(crate) places: Vec<PathBuf>,
    /// Counts and digest of the content.
    pub(crate) content: ArchiveTallyView,
    /// True if the signer counts its ceilings as used.
    pub(crate) ceilings_used: bool,
}

//! Pure: what is said of a snapshot of the workspace, and of a restore from one.
//!
//! A snapshot is a copy of the workspace's files that the sandbox cannot reach. The records here
//! go over the control socket and into the files of the snapshots; they never hold what a file
//! says.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{CallId, SnapshotId, TurnId};
use crate::time::Timestamp;

/// Characters of a command that a record keeps.
pub const COMMAND_CHARS_MAX: usize = 300;
/// Names of left out files that a record keeps; more are counted.
pub const LEFT_OUT_MAX: usize = 100;
/// Names that the report of a restore has of each kind of change; more are counted.
pub const NAMED_CHANGES_MAX: usize = 20;

/// The limits of snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotLimits {
    /// Whether the agent takes snapshots by itself.
    pub automatic: bool,
    /// Bytes of all files of one snapshot.
    pub bytes_max: u64,
    /// Files, folders and links of one snapshot.
    pub entries_max: u64,
    /// Seconds that one snapshot may take.
    pub seconds_max: u64,
    /// The newest snapshots that are kept.
    pub kept: u32,
    /// Bytes of all snapshots together. The newest one is kept in any case.
    pub kept_bytes_max: u64,
}

impl Default for SnapshotLimits {
    fn default() -> Self {
        Self {
            automatic: true,
            bytes_max: 2_000_000_000,
            entries_max: 100_000,
            seconds_max: 30,
            kept: 10,
            kept_bytes_max: 4_000_000_000,
        }
    }
}

/// The reason for a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum SnapshotCause {
    /// A command that may delete files is about to run.
    Command {
        /// The beginning of the command.
        command: String,
        /// The turn.
        turn: TurnId,
        /// The call.
        call: CallId,
    },
    /// The creator asked for it.
    Manual,
    /// A restore is about to change the workspace.
    Restore {
        /// The snapshot that is restored.
        from: SnapshotId,
    },
}

/// The reason why something is not in a snapshot.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LeftOutReason {
    /// A cache, which is made again, over one of the limits.
    Cache,
    /// A device, pipe or socket, which has no content to copy.
    Special,
    /// Over the limit of bytes.
    Bytes,
    /// Over the limit of files.
    Files,
    /// Over the limit of time.
    Time,
    /// No room on the disk of the home.
    Disk,
    /// The agent may not read it, or the system failed to.
    Unreadable,
    /// The path is too long to be restored.
    Path,
}

impl LeftOutReason {
    /// The reason in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Cache => "a cache, over a limit",
            Self::Special => "a device, pipe or socket",
            Self::Bytes => "over the limit of bytes",
            Self::Files => "over the limit of files",
            Self::Time => "over the limit of time",
            Self::Disk => "no room on the disk",
            Self::Unreadable => "cannot be read",
            Self::Path => "its path is too long",
        }
    }

    /// Returns true if a restore cannot bring back content that nothing makes again.
    #[must_use]
    pub const fn is_loss(self) -> bool {
        !matches!(self, Self::Cache | Self::Special)
    }
}

/// A file, or a folder with all in it, that is not in a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// Its path in the workspace. Bytes that are no text are written as `%FF`.
    pub path: String,
    /// Why.
    pub why: LeftOutReason,
    /// Its size in bytes, as far as it is known.
    pub bytes: u64,
}

/// A snapshot of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotRecord {
    /// Its id.
    pub id: SnapshotId,
    /// When it was begun.
    pub at: Timestamp,
    /// The reason for it.
    #[serde(flatten)]
    pub cause: SnapshotCause,
    /// Regular files in it.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Bytes that had to be copied: the other files are shared with earlier snapshots.
    pub copied_bytes: u64,
    /// Milliseconds that it took.
    pub took_ms: i64,
    /// What is not in it, at most [`LEFT_OUT_MAX`].
    pub left_out: Vec<LeftOut>,
    /// How many more there are.
    pub left_out_more: u64,
}

impl SnapshotRecord {
    /// Returns true if it has every file that nothing makes again.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.left_out_more == 0 && !self.left_out.iter().any(|left| left.why.is_loss())
    }

    /// The number of files and folders that are left out.
    #[must_use]
    pub fn left_out_count(&self) -> u64 {
        self.left_out_more.saturating_add(self.left_out.len() as u64)
    }
}

/// Some paths, of which only the first are named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NamedPaths {
    /// How many there are.
    pub count: u64,
    /// The first, at most [`NAMED_CHANGES_MAX`].
    pub first: Vec<String>,
}

impl NamedPaths {
    /// Adds one.
    pub fn add(&mut self, path: impl FnOnce() -> String) {
        self.count = self.count.saturating_add(1);
        if self.first.len() < NAMED_CHANGES_MAX {
            self.first.push(path());
        }
    }
}

/// What a restore changes, or has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RestoreReport {
    /// Files, folders and links that were missing.
    pub created: NamedPaths,
    /// Files and links that were changed after the snapshot, and get their old content.
    pub replaced: NamedPaths,
    /// Files and folders of which only permissions or times differ.
    pub attributes: NamedPaths,
    /// What was in the way and got another name beside it.
    pub moved_aside: NamedPaths,
    /// What could not be restored, each with the reason.
    pub failed: NamedPaths,
    /// Files, folders and links that are as they were.
    pub same: u64,
    /// Bytes of the files that are created or replaced.
    pub bytes: u64,
}

impl RestoreReport {
    /// Returns true if there is nothing to change.
    #[must_use]
    pub const fn is_nothing(&self) -> bool {
        self.created.count + self.replaced.count + self.attributes.count + self.failed.count == 0
    }
}

/// What a restore takes, and from where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestoreRequest {
    /// The snapshot.
    pub snapshot: SnapshotId,
    /// Files and folders of the workspace, relative to it; all of it where none is named.
    pub paths: Vec<String>,
    /// Whether a snapshot of the present state is taken first.
    pub keep_present: bool,
}

/// A restore that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoredWorkspace {
    /// The snapshot that was restored.
    pub snapshot: SnapshotId,
    /// The snapshot of the state before, where one was taken or nothing had changed since it.
    pub before: Option<SnapshotId>,
    /// What changed.
    pub report: RestoreReport,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nothing_makes_again_makes_a_snapshot_incomplete() {
        let left = |why| LeftOut { path: "a".to_owned(), why, bytes: 1 };
        let mut record = SnapshotRecord {
            id: SnapshotId::from(ulid::Ulid::from_parts(1, 1)),
            at: Timestamp::EPOCH,
            cause: SnapshotCause::Manual,
            files: 0,
            bytes: 0,
            copied_bytes: 0,
            took_ms: 0,
            left_out: vec![left(LeftOutReason::Cache), left(LeftOutReason::Special)],
            left_out_more: 0,
        };
        assert!(record.is_complete());
        record.left_out.push(left(LeftOutReason::Bytes));
        assert!(!record.is_complete());
        assert_eq!(record.left_out_count(), 3);
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<SnapshotRecord>(&text).unwrap(), record);
    }

    #[test]
    fn names_are_bounded_and_counted() {
        let mut names = NamedPaths::default();
        (0..100).for_each(|nth| names.add(|| nth.to_string()));
        assert_eq!((names.count, names.first.len()), (100, NAMED_CHANGES_MAX));
    }
}

//! Takes a snapshot: surveys the workspace, copies what is new, writes the manifest.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use automaton_core::id::SnapshotId;
use automaton_core::snapshot::{LeftOutReason, SnapshotCause, SnapshotLimits, SnapshotRecord};
use automaton_core::time::Timestamp;

use super::manifest::{FileIdentity, FileTime, StoredPath, TreeEntry, TreeManifest, TreeNode};
use super::objects::ContentStore;
use super::survey::{
    LeftOutList, Survey, SurveyBounds, SurveyedEntry, SurveyedKind, survey, total,
};
use crate::fs::WorkspaceDir;
use crate::launch::now;

/// Nanoseconds by which the clock of a file system may be behind: a file that was changed so
/// shortly before it was read may change again without a new time.
const CLOCK_STEP_NANOS: i128 = 1_000_000_000;
/// Room on the disk that a snapshot leaves, in bytes, or half of the room where there is less.
const LEFT_MIN: u64 = 512 << 20;

/// What a snapshot is taken of, and how.
#[derive(Debug)]
pub struct TakeRequest<'a> {
    /// The workspace.
    pub workspace: &'a WorkspaceDir,
    /// The id of the snapshot.
    pub id: SnapshotId,
    /// The time now.
    pub at: Timestamp,
    /// The reason for it.
    pub cause: SnapshotCause,
    /// Its limits.
    pub limits: SnapshotLimits,
    /// Names at the top of the workspace that are no part of it.
    pub skipped: &'a [&'a str],
    /// Labels of paths, which a restore gives back.
    pub labels: BTreeMap<String, String>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TakenSnapshot {
    /// There is a new one.
    Taken(SnapshotRecord),
    /// The newest one says the same.
    Unchanged(SnapshotRecord),
    /// The workspace has no file.
    Empty,
}

/// A file as the snapshot before has it.
struct KnownFile {
    bytes: u64,
    modified: FileTime,
    identity: FileIdentity,
    hash: String,
}

/// A snapshot that is being taken.
struct Taking<'a> {
    workspace: &'a WorkspaceDir,
    objects: &'a ContentStore,
    known: HashMap<PathBuf, KnownFile>,
    deadline: Instant,
    /// Bytes of files that there is room for.
    room: u64,
    /// Bytes that there is room for on the disk.
    disk: u64,
    entries: Vec<TreeEntry>,
    left_out: LeftOutList,
    copied_bytes: u64,
    /// When it was begun, by the clock of the file system.
    begun: i128,
}

/// Takes a snapshot, of which nothing is written but contents. `begun` is a file that was made
/// a moment ago.
pub(super) fn take(
    request: TakeRequest<'_>,
    objects: &ContentStore,
    previous: Option<&TreeManifest>,
    begun: &File,
    disk_free: u64,
) -> io::Result<Option<TreeManifest>> {
    let started = now();
    let TakeRequest { workspace, id, at, cause, limits, skipped, labels } = request;
    let deadline = started + Duration::from_secs(limits.seconds_max);
    let bounds = SurveyBounds { entries_max: limits.entries_max, deadline, skipped };
    let Survey { entries, caches, left_out } = survey(workspace, bounds);
    let has_files =
        |all: &[SurveyedEntry]| all.iter().any(|entry| !matches!(entry.kind, SurveyedKind::Folder));
    if !has_files(&entries)
        && !caches.iter().any(|cache| has_files(&cache.entries))
        && left_out.named.is_empty()
    {
        return Ok(None);
    }
    let mut taking = Taking {
        workspace,
        objects,
        known: known_files(previous),
        deadline,
        room: limits.bytes_max,
        disk: disk_free.saturating_sub(LEFT_MIN.min(disk_free / 2)),
        entries: Vec::with_capacity(entries.len()),
        left_out,
        copied_bytes: 0,
        begun: nanos(&begun.metadata()?),
    };
    taking.keep_files(entries);
    for cache in caches {
        match total(&cache.entries) > taking.room {
            true => {
                taking.left_out.add(&cache.folder, LeftOutReason::Cache, total(&cache.entries));
            }
            false => taking.keep_files(cache.entries),
        }
    }
    let Taking { mut entries, left_out, copied_bytes, .. } = taking;
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    let file_bytes = |entry: &TreeEntry| match entry.node {
        TreeNode::File { bytes, .. } => Some(bytes),
        TreeNode::Folder | TreeNode::Link { .. } => None,
    };
    let record = SnapshotRecord {
        id,
        at,
        cause,
        files: entries.iter().filter_map(file_bytes).count() as u64,
        bytes: entries.iter().filter_map(file_bytes).fold(0, u64::saturating_add),
        copied_bytes,
        // silent-ok: no snapshot takes longer than a number can count.
        took_ms: i64::try_from((now() - started).as_millis()).unwrap_or(i64::MAX),
        left_out: left_out.named,
        left_out_more: left_out.more,
    };
    Ok(Some(TreeManifest { record, labels, entries }))
}

fn known_files(previous: Option<&TreeManifest>) -> HashMap<PathBuf, KnownFile> {
    let entries = previous.map_or(&[][..], |previous| &previous.entries);
    let known = entries.iter().filter_map(|entry| match &entry.node {
        TreeNode::File { bytes, hash, identity: Some(identity) } => {
            let modified = entry.modified;
            let (bytes, identity, hash) = (*bytes, *identity, hash.clone());
            Some((entry.path.0.clone(), KnownFile { bytes, modified, identity, hash }))
        }
        _ => None,
    });
    known.collect()
}

fn nanos(metadata: &std::fs::Metadata) -> i128 {
    i128::from(metadata.ctime()) * 1_000_000_000 + i128::from(metadata.ctime_nsec())
}

impl Taking<'_> {
    /// Keeps entries: the smallest files first where not all have room.
    fn keep_files(&mut self, mut entries: Vec<SurveyedEntry>) {
        if total(&entries) > self.room.min(self.disk) {
            entries.sort_by_key(SurveyedEntry::bytes);
        }
        for entry in entries {
            self.keep(entry);
        }
    }

    fn keep(&mut self, entry: SurveyedEntry) {
        let SurveyedEntry { path, mode, modified, kind } = entry;
        let node = match kind {
            SurveyedKind::Folder => TreeNode::Folder,
            SurveyedKind::Link { target } => TreeNode::Link { target },
            SurveyedKind::File { bytes, identity } => {
                match self.content_of(&path, bytes, modified, identity) {
                    Ok(Some(node)) => node,
                    Ok(None) => return,
                    Err(why) => {
                        self.left_out.add(&path, why, bytes);
                        return;
                    }
                }
            }
        };
        self.entries.push(TreeEntry { path: StoredPath(path), mode, modified, node });
    }

    /// Stores what a file holds. Nothing comes of one that is gone; the error says why one is left
    /// out.
    fn content_of(
        &mut self,
        path: &Path,
        bytes: u64,
        modified: FileTime,
        identity: FileIdentity,
    ) -> Result<Option<TreeNode>, LeftOutReason> {
        if bytes > self.room {
            return Err(LeftOutReason::Bytes);
        }
        let same = self.known.get(path).filter(|known| {
            (known.bytes, known.modified, known.identity) == (bytes, modified, identity)
        });
        if let Some(KnownFile { hash, .. }) = same {
            self.room = self.room.saturating_sub(bytes);
            let (hash, identity) = (hash.clone(), Some(identity));
            return Ok(Some(TreeNode::File { bytes, hash, identity }));
        }
        if now() > self.deadline {
            return Err(LeftOutReason::Time);
        }
        if bytes > self.disk {
            return Err(LeftOutReason::Disk);
        }
        let file = match self.workspace.open_for_copy(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(_) => return Err(LeftOutReason::Unreadable),
        };
        let Ok(found) = file.metadata() else { return Err(LeftOutReason::Unreadable) };
        if !found.is_file() {
            return Err(LeftOutReason::Unreadable);
        }
        let stored = match self.objects.add(file, self.room.min(self.disk)) {
            Ok(Some(stored)) => stored,
            Ok(None) => return Err(LeftOutReason::Bytes),
            Err(error) if is_full(&error) => return Err(LeftOutReason::Disk),
            // Where the store itself is broken the manifest is not written either.
            Err(_) => return Err(LeftOutReason::Unreadable),
        };
        self.room = self.room.saturating_sub(stored.bytes);
        if stored.is_new {
            self.disk = self.disk.saturating_sub(stored.bytes);
            self.copied_bytes = self.copied_bytes.saturating_add(stored.bytes);
        }
        let same_file = (found.dev(), found.ino()) == (identity.device, identity.number);
        let is_settled = nanos(&found) + CLOCK_STEP_NANOS < self.begun;
        let seen = FileIdentity { changed: (found.ctime(), found.ctime_nsec()), ..identity };
        let identity = Some(seen).filter(|seen| same_file && is_settled && *seen == identity);
        Ok(Some(TreeNode::File { bytes: stored.bytes, hash: stored.hash, identity }))
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

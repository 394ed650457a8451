//! Snapshots of the workspace, in a folder that the sandbox cannot reach, and restores from them.
//!
//! A snapshot is a manifest of the tree and a content for each file; contents are shared between
//! snapshots and never with the live workspace. The content of the workspace is hostile: no link
//! is followed, nobody is waited for, and every read has a limit.

mod manifest;
mod objects;
mod path_text;
mod restore;
mod retention;
mod survey;
mod take;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use automaton_core::error::Classified;
use automaton_core::id::SnapshotId;
use automaton_core::snapshot::{RestoreReport, SnapshotLimits, SnapshotRecord};
use thiserror::Error;

use self::manifest::{TreeManifest, TreeNode, read_record};
use self::objects::{ContentStore, make_folder};
use self::restore::{RestoreMode, Restoring, select};
pub use self::survey::CACHES;
pub use self::take::{TakeRequest, TakenSnapshot};
use crate::fs::{WorkspaceDir, disk_space};
use crate::process::{LockError, LockGuard, lock};

/// Ends the name of a snapshot's file.
const EXTENSION: &str = "snapshot";
/// Held by who takes, restores or deletes a snapshot.
const LOCK: &str = "lock";
/// How long is waited for another process, in steps.
const LOCK_TRIES: u32 = 200;
const LOCK_STEP: Duration = Duration::from_millis(50);

/// A snapshot that is not taken, or not restored.
#[derive(Debug, Error, Classified)]
pub enum SnapshotError {
    /// There is none of that id.
    #[error("there is no snapshot {id}")]
    #[class(User, hint = "`automaton workspace snapshots` lists those that there are")]
    Missing {
        /// The id.
        id: SnapshotId,
    },
    /// It has no such path.
    #[error("the snapshot {id} has no {path}")]
    #[class(User, hint = "paths are relative to the workspace, as in `--path notes/a.md`")]
    NoPath {
        /// The snapshot.
        id: SnapshotId,
        /// The path.
        path: String,
    },
    /// Its file cannot be read.
    #[error("cannot read the snapshot {id}")]
    #[class(Internal, hint = "restore another one; `automaton workspace snapshots` lists them")]
    Damaged {
        /// The snapshot.
        id: SnapshotId,
        /// What is wrong with it.
        #[source]
        source: io::Error,
    },
    /// The folder of snapshots cannot be used.
    #[error("cannot use the folder of snapshots {}", path.display())]
    #[class(Internal, hint = "make it writable for its owner, and make room on its disk")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Another process is busy with them.
    #[error("the snapshots are in use")]
    #[class(Transient, hint = "try again in a moment")]
    Busy(#[source] LockError),
    /// The disk is full.
    #[error("no room is left on the disk: only a part was restored")]
    #[class(Internal, hint = "make room and run the same again: the restored files stay")]
    Full(#[source] io::Error),
}

/// The snapshots of one workspace.
#[derive(Debug, Clone)]
pub struct SnapshotStore {
    folder: PathBuf,
}

/// The snapshots that there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SnapshotList {
    /// Their records, oldest first.
    pub records: Vec<SnapshotRecord>,
    /// Snapshots whose files cannot be read, each with the reason.
    pub damaged: Vec<(SnapshotId, String)>,
}

/// What a restore takes from a snapshot.
#[derive(Debug)]
pub struct RestoreSource<'a> {
    /// The snapshot.
    pub snapshot: SnapshotId,
    /// Paths in the workspace; all of it where none is named.
    pub paths: &'a [PathBuf],
    /// The snapshot of the present state. What it does not have is not replaced, but gets another
    /// name. Without one everything may be replaced.
    pub present: Option<SnapshotId>,
}

impl SnapshotStore {
    /// The snapshots in a folder, which need not be there yet.
    #[must_use]
    pub const fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn failed(&self) -> impl Fn(io::Error) -> SnapshotError + '_ {
        |source| SnapshotError::Folder { path: self.folder.clone(), source }
    }

    fn file_of(&self, id: SnapshotId) -> PathBuf {
        self.folder.join(format!("{id}.{EXTENSION}"))
    }

    fn objects(&self) -> Result<ContentStore, SnapshotError> {
        ContentStore::open(self.folder.join("objects")).map_err(self.failed())
    }

    /// Waits until no other process is busy with the snapshots.
    fn lock(&self) -> Result<LockGuard, SnapshotError> {
        make_folder(&self.folder).map_err(self.failed())?;
        let mut tries = 0;
        loop {
            match lock(&self.folder.join(LOCK)) {
                Ok(held) => return Ok(held),
                Err(LockError::Held { .. }) if tries < LOCK_TRIES => sleep(LOCK_STEP),
                Err(LockError::File { source, .. }) => return Err(self.failed()(source)),
                Err(held @ LockError::Held { .. }) => return Err(SnapshotError::Busy(held)),
            }
            tries += 1;
        }
    }

    /// Returns the snapshots that there are.
    ///
    /// # Errors
    /// When the folder cannot be read. There is none before the first snapshot, which is no error.
    pub fn list(&self) -> Result<SnapshotList, SnapshotError> {
        let mut list = SnapshotList::default();
        for id in self.ids()? {
            match read_record(&self.file_of(id)) {
                Ok(record) => list.records.push(record),
                Err(error) => list.damaged.push((id, error.to_string())),
            }
        }
        Ok(list)
    }

    /// Returns the record of the newest snapshot.
    ///
    /// # Errors
    /// As [`SnapshotStore::list`], or when that one is damaged.
    pub fn newest(&self) -> Result<Option<SnapshotRecord>, SnapshotError> {
        let Some(id) = self.ids()?.pop() else { return Ok(None) };
        let read = read_record(&self.file_of(id));
        read.map(Some).map_err(|source| SnapshotError::Damaged { id, source })
    }

    /// The ids of all snapshots, oldest first.
    fn ids(&self) -> Result<Vec<SnapshotId>, SnapshotError> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(self.failed())?,
        };
        let mut ids = Vec::new();
        for entry in entries {
            let path = PathBuf::from(entry.map_err(self.failed())?.file_name());
            let is_snapshot = path.extension().is_some_and(|end| end == EXTENSION);
            let stem = path.file_stem().and_then(|stem| stem.to_str()).filter(|_| is_snapshot);
            // silent-ok: a file of another name is no snapshot.
            ids.extend(stem.and_then(|stem| stem.parse::<SnapshotId>().ok()));
        }
        ids.sort_unstable();
        Ok(ids)
    }

    fn read(&self, id: SnapshotId) -> Result<TreeManifest, SnapshotError> {
        match TreeManifest::read(&self.file_of(id)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(SnapshotError::Missing { id })
            }
            read => read.map_err(|source| SnapshotError::Damaged { id, source }),
        }
    }

    /// Takes a snapshot, and deletes those that are too many.
    ///
    /// # Errors
    /// When the snapshots cannot be written. What cannot be read or has no room is left out, and
    /// the record names it.
    pub fn take(&self, request: TakeRequest<'_>) -> Result<TakenSnapshot, SnapshotError> {
        let _lock = self.lock()?;
        let objects = self.objects()?;
        let (id, limits) = (request.id, request.limits);
        let previous = match self.ids()?.pop().map(|id| self.read(id)) {
            Some(Ok(previous)) => Some(previous),
            // Of one that is damaged everything is copied again.
            Some(Err(_)) | None => None,
        };
        let begun = self.mark().map_err(self.failed())?;
        // silent-ok: where the system does not say, the disk itself says when it is full.
        let free = disk_space(&self.folder).map_or(u64::MAX, |(free, _)| free);
        let taken = take::take(request, &objects, previous.as_ref(), &begun, free);
        let Some(manifest) = taken.map_err(self.failed())? else {
            return Ok(TakenSnapshot::Empty);
        };
        if let Some(previous) = previous.filter(|previous| says_the_same(previous, &manifest)) {
            return Ok(TakenSnapshot::Unchanged(previous.record));
        }
        manifest.write(&self.file_of(id)).map_err(self.failed())?;
        // silent-ok: the snapshot is there, and the next one tries it again.
        self.prune(&objects, &limits).ok();
        Ok(TakenSnapshot::Taken(manifest.record))
    }

    /// A file that is new now, by the clock of the file system.
    fn mark(&self) -> io::Result<fs::File> {
        let path = self.folder.join("begun");
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)
    }

    /// Deletes the snapshots that are too many, and the contents that none needs. One that is
    /// damaged is set aside: what it needs is not known, and nothing can be restored from it.
    fn prune(&self, objects: &ContentStore, limits: &SnapshotLimits) -> io::Result<()> {
        let mut records = Vec::new();
        for id in self.ids().map_err(io::Error::other)? {
            match read_record(&self.file_of(id)) {
                Ok(record) => records.push(record),
                // A newer program wrote it, and what it needs is not known here.
                Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(()),
                Err(_) => self.set_aside(id)?,
            }
        }
        let copied = records.iter().map(|record| record.copied_bytes).fold(0, u64::saturating_add);
        let mut gone = retention::surplus(&records, limits);
        if gone.is_empty() && copied <= limits.kept_bytes_max {
            return Ok(());
        }
        records.retain(|record| !gone.contains(&record.id));
        let mut manifests = Vec::new();
        for record in &records {
            match TreeManifest::read(&self.file_of(record.id)) {
                Ok(manifest) => manifests.push(manifest),
                Err(_) => self.set_aside(record.id)?,
            }
        }
        let protected = retention::protected(&records);
        while stored_bytes(&manifests) > limits.kept_bytes_max
            && let Some(at) = manifests.iter().position(|it| !protected.contains(&it.record.id))
        {
            gone.push(manifests.remove(at).record.id);
        }
        if gone.is_empty() {
            return Ok(());
        }
        for id in gone {
            fs::remove_file(self.file_of(id))?;
        }
        let needed = manifests.iter().flat_map(TreeManifest::objects);
        let needed: BTreeSet<String> = needed.map(|(hash, _)| hash.to_owned()).collect();
        objects.keep_only(&needed)?;
        Ok(())
    }

    fn set_aside(&self, id: SnapshotId) -> io::Result<()> {
        let file = self.file_of(id);
        fs::rename(&file, file.with_extension("damaged"))
    }

    /// Returns the labels of paths that a snapshot was taken with.
    ///
    /// # Errors
    /// When there is none of that id, or it is damaged.
    pub fn labels(&self, id: SnapshotId) -> Result<BTreeMap<String, String>, SnapshotError> {
        Ok(self.read(id)?.labels)
    }

    /// Says what a restore would change. Changes nothing.
    ///
    /// # Errors
    /// When there is no such snapshot or path, or it is damaged.
    pub fn plan(
        &self,
        root: &WorkspaceDir,
        source: &RestoreSource<'_>,
    ) -> Result<RestoreReport, SnapshotError> {
        self.go_through(root, source, RestoreMode::Plan)
    }

    /// Restores.
    ///
    /// # Errors
    /// As [`SnapshotStore::plan`], or when the disk is full. What fails of a single file is in the
    /// report.
    pub fn restore(
        &self,
        root: &WorkspaceDir,
        source: &RestoreSource<'_>,
    ) -> Result<RestoreReport, SnapshotError> {
        let _lock = self.lock()?;
        self.go_through(root, source, RestoreMode::Apply)
    }

    fn go_through(
        &self,
        root: &WorkspaceDir,
        source: &RestoreSource<'_>,
        mode: RestoreMode,
    ) -> Result<RestoreReport, SnapshotError> {
        let id = source.snapshot;
        let manifest = self.read(id)?;
        let has = |path: &Path| manifest.entries.iter().any(|it| it.path.0.starts_with(path));
        if let Some(path) = source.paths.iter().find(|path| !has(path)) {
            return Err(SnapshotError::NoPath { id, path: path.display().to_string() });
        }
        let stored = match source.present {
            Some(present) => {
                let entries = self.read(present)?.entries.into_iter();
                Some(entries.map(|entry| entry.path.0).collect())
            }
            None => None,
        };
        let objects = &self.objects()?;
        let report = RestoreReport::default();
        let mut restoring = Restoring { root, objects, mode, stored, report };
        restoring.run(&select(&manifest, source.paths)).map_err(SnapshotError::Full)?;
        Ok(restoring.report)
    }
}

/// Returns the bytes of the contents that some snapshots need together.
fn stored_bytes(manifests: &[TreeManifest]) -> u64 {
    let needed: BTreeSet<(&str, u64)> = manifests.iter().flat_map(TreeManifest::objects).collect();
    needed.iter().map(|(_, bytes)| *bytes).fold(0, u64::saturating_add)
}

/// Returns true if two snapshots would restore the same, whenever they were taken.
fn says_the_same(one: &TreeManifest, other: &TreeManifest) -> bool {
    let is_same_node = |one: &TreeNode, other: &TreeNode| match (one, other) {
        (TreeNode::File { hash: one, .. }, TreeNode::File { hash: other, .. }) => one == other,
        _ => one == other,
    };
    one.entries.len() == other.entries.len()
        && one.labels == other.labels
        && (&one.record.left_out, one.record.left_out_more)
            == (&other.record.left_out, other.record.left_out_more)
        && one.entries.iter().zip(&other.entries).all(|(one, other)| {
            (&one.path, one.mode, one.modified) == (&other.path, other.mode, other.modified)
                && is_same_node(&one.node, &other.node)
        })
}

#[cfg(test)]
mod tests;

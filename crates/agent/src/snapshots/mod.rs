//! Snapshots of the workspace: before commands that may delete files, by hand, before restores.
//!
//! A command is never refused because a snapshot failed: the model and the log are told. The
//! commands that a rule can see to empty the whole workspace are refused with or without one.
//! A restore gives files back with the labels that they had, so that no text of others becomes
//! the automaton's own by it.

mod labels;

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use automaton_core::error::{Classified, chain};
use automaton_core::event::{Event, RestoreEnd, StampedEvent, TakenReport};
use automaton_core::id::IdGenerator;
use automaton_core::snapshot::{
    COMMAND_CHARS_MAX, RestoreRequest, RestoredWorkspace, SnapshotCause, SnapshotLimits,
    SnapshotRecord,
};
use automaton_core::time::{Span, Timestamp};
use automaton_policy::may_delete;
use automaton_sandbox::snapshot::{
    RestoreSource, SnapshotError, SnapshotStore, TakeRequest, TakenSnapshot,
};
use automaton_sandbox::{FsError, PathError, WorkspaceDir, WorkspacePath};
use automaton_store::{Store, StoreError};
use automaton_tools::context::CallProvenance;
use tokio::sync::{OwnedRwLockReadGuard, RwLock};
use tokio::task;

use crate::deps::EventSink;
use crate::handles::SEALED;
use crate::settings::Settings;

/// The folder of snapshots in the home.
pub const SNAPSHOTS_FOLDER: &str = "snapshots";

/// Time for which a snapshot serves the commands of the same wake.
const LASTS: Span = Span::from_secs(600);

/// A snapshot or a restore that failed.
#[derive(Debug, thiserror::Error, Classified)]
pub enum WorkspaceSnapshotError {
    /// The snapshots cannot be used.
    #[error(transparent)]
    #[class(kind = _0.kind(), hint = _0.hint())]
    Snapshot(#[from] SnapshotError),
    /// The labels of files cannot be read or written.
    #[error(transparent)]
    #[class(kind = _0.kind(), hint = _0.hint())]
    Store(#[from] StoreError),
    /// The workspace cannot be opened.
    #[error(transparent)]
    #[class(kind = _0.kind(), hint = _0.hint())]
    Workspace(#[from] FsError),
    /// A path is none of the workspace.
    #[error(transparent)]
    #[class(kind = _0.kind(), hint = _0.hint())]
    Path(#[from] PathError),
    /// A command is running, whose files would change under it.
    #[error("a command of the automaton is running in the workspace")]
    #[class(Transient, hint = "try again when it has ended, or stop the automaton first")]
    Busy,
    /// A thread broke down.
    #[error("the work on the snapshot broke down")]
    #[class(Internal)]
    Broken,
}

/// Source and place of snapshots.
#[derive(Debug, Clone)]
pub struct SnapshotPlaces {
    /// The workspace.
    pub workspace: PathBuf,
    /// The home, which the sandbox cannot see.
    pub home: PathBuf,
    /// The limits of snapshots.
    pub limits: SnapshotLimits,
}

impl SnapshotPlaces {
    /// The places of an automaton.
    pub(crate) fn from_settings(settings: &Settings) -> Self {
        let workspace = settings.workspace.clone();
        let home = settings.home.clone();
        Self { workspace, home, limits: settings.snapshots }
    }
}

/// The snapshots of an automaton's workspace.
#[derive(Clone)]
pub struct WorkspaceSnapshots {
    places: SnapshotPlaces,
    snapshots: SnapshotStore,
    store: Store,
    ids: IdGenerator,
    events: Arc<dyn EventSink>,
    /// Time of the newest snapshot of this wake.
    taken: Arc<Mutex<Option<Timestamp>>>,
    /// Held by commands that run, and alone by a restore.
    in_use: Arc<RwLock<()>>,
}

/// A command that may run now.
#[derive(Debug)]
pub(crate) struct CommandPass {
    _in_use: OwnedRwLockReadGuard<()>,
    /// A sentence for the model, where no complete snapshot was taken before the command.
    pub(crate) note: Option<String>,
}

impl WorkspaceSnapshots {
    /// The snapshots in a home.
    #[must_use]
    pub fn new(
        places: SnapshotPlaces,
        store: Store,
        ids: IdGenerator,
        events: Arc<dyn EventSink>,
    ) -> Self {
        let snapshots = SnapshotStore::new(places.home.join(SNAPSHOTS_FOLDER));
        let (taken, in_use) = Default::default();
        Self { places, snapshots, store, ids, events, taken, in_use }
    }

    fn emit(&self, event: Event) {
        self.events.emit(StampedEvent { at: self.ids.now(), event });
    }

    /// Has the next command that may delete files take a snapshot.
    pub(crate) fn begin_wake(&self) {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Takes a snapshot before a command, where it may delete files and the newest snapshot is
    /// of another wake or old.
    pub(crate) async fn before_command(
        &self,
        command: &str,
        behalf: Option<CallProvenance>,
    ) -> CommandPass {
        let in_use = Arc::clone(&self.in_use).read_owned().await;
        let note = match behalf {
            Some(behalf) if self.is_due() && may_delete(command) => {
                self.take_before(command, behalf).await
            }
            Some(_) | None => None,
        };
        CommandPass { _in_use: in_use, note }
    }

    fn is_due(&self) -> bool {
        let taken = *self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let is_old = |taken: Timestamp| self.ids.now().since(taken) >= LASTS;
        self.places.limits.automatic && taken.is_none_or(is_old)
    }

    async fn take_before(&self, command: &str, behalf: CallProvenance) -> Option<String> {
        let cause = SnapshotCause::Command {
            command: command.chars().take(COMMAND_CHARS_MAX).collect(),
            turn: behalf.turn,
            call: behalf.call,
        };
        let began = self.ids.now();
        let taken = self.take(cause).await;
        if let Err(error) = taken {
            self.emit(Event::ErrorReported {
                kind: error.kind(),
                error: format!("no snapshot was taken before a command: {}", chain(&error)),
                hint: error.hint(),
            });
            return Some("[no snapshot of the workspace could be taken before]\n".to_owned());
        }
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = Some(began);
        match taken {
            Ok(TakenSnapshot::Taken(record) | TakenSnapshot::Unchanged(record)) => {
                incomplete(&record)
            }
            Ok(TakenSnapshot::Empty) | Err(_) => None,
        }
    }

    /// Takes a snapshot.
    ///
    /// # Errors
    /// When it cannot be written, or the labels of files cannot be read.
    pub async fn take(
        &self,
        cause: SnapshotCause,
    ) -> Result<TakenSnapshot, WorkspaceSnapshotError> {
        let labels = labels::stored(&self.store).await?;
        let id = self.ids.id();
        let at = self.ids.now();
        let snapshots = self.snapshots.clone();
        let places = self.places.clone();
        let taken = task::spawn_blocking(move || {
            let workspace = &WorkspaceDir::open(&places.workspace)?;
            let limits = places.limits;
            let skipped = &SEALED;
            let request = TakeRequest { workspace, id, at, cause, limits, skipped, labels };
            Ok::<_, WorkspaceSnapshotError>(snapshots.take(request)?)
        });
        let taken = taken.await.map_err(|_| WorkspaceSnapshotError::Broken)??;
        if let TakenSnapshot::Taken(record) = &taken {
            self.emit(Event::SnapshotTaken(TakenReport {
                snapshot: record.id,
                files: record.files,
                bytes: record.bytes,
                copied_bytes: record.copied_bytes,
                left_out: record.left_out_count(),
                complete: record.is_complete(),
                took_ms: record.took_ms,
            }));
        }
        Ok(taken)
    }

    /// Restores from a snapshot; takes one of the present state first, where that is wanted.
    ///
    /// # Errors
    /// When a command is running, there is no such snapshot or path, or the disk is full.
    pub async fn restore(
        &self,
        request: RestoreRequest,
    ) -> Result<RestoredWorkspace, WorkspaceSnapshotError> {
        // silent-ok: the error only says that the lock is held.
        let alone = Arc::clone(&self.in_use).try_write_owned();
        let _alone = alone.map_err(|_| WorkspaceSnapshotError::Busy)?;
        let RestoreRequest { snapshot, paths, keep_present } = request;
        let paths = relative_paths(&paths)?;
        let snapshots = self.snapshots.clone();
        let workspace = self.places.workspace.clone();
        let recorded = task::spawn_blocking(move || {
            open_to_owner(&workspace);
            snapshots.labels(snapshot)
        });
        let recorded = recorded.await.map_err(|_| WorkspaceSnapshotError::Broken)??;
        let present = match keep_present {
            true => match self.take(SnapshotCause::Restore { from: snapshot }).await? {
                TakenSnapshot::Taken(record) | TakenSnapshot::Unchanged(record) => Some(record.id),
                TakenSnapshot::Empty => None,
            },
            false => None,
        };
        // Before any file is there again.
        labels::give_back(&self.store, &recorded, &paths).await?;
        let snapshots = self.snapshots.clone();
        let workspace = self.places.workspace.clone();
        let restored = task::spawn_blocking(move || {
            let root = WorkspaceDir::open(&workspace)?;
            let source = RestoreSource { snapshot, paths: &paths, present };
            Ok::<_, WorkspaceSnapshotError>(snapshots.restore(&root, &source)?)
        });
        let report = restored.await.map_err(|_| WorkspaceSnapshotError::Broken)??;
        self.emit(Event::WorkspaceRestored(RestoreEnd {
            snapshot,
            before: present,
            created: report.created.count,
            replaced: report.replaced.count,
            failed: report.failed.count,
        }));
        Ok(RestoredWorkspace { snapshot, before: present, report })
    }
}

/// Returns paths of the workspace relative to it; none for the whole of it.
///
/// # Errors
/// When one is no path of the workspace.
pub fn relative_paths(paths: &[String]) -> Result<Vec<PathBuf>, PathError> {
    let mut found = Vec::with_capacity(paths.len());
    for path in paths {
        let path = WorkspacePath::parse(path)?;
        if path.names().next().is_none() {
            return Ok(Vec::new());
        }
        found.push(path.relative().to_owned());
    }
    Ok(found)
}

/// Gives the owner a workspace back that a command has closed to everybody.
fn open_to_owner(workspace: &Path) {
    let is_closed =
        |found: &std::fs::Metadata| found.is_dir() && found.permissions().mode() & 0o700 != 0o700;
    if workspace.symlink_metadata().is_ok_and(|found| is_closed(&found)) {
        // silent-ok: if it stays closed, opening it says so.
        set_permissions(workspace, Permissions::from_mode(0o700)).ok();
    }
}

/// A sentence on what a snapshot has not.
fn incomplete(record: &SnapshotRecord) -> Option<String> {
    let lost: Vec<_> = record.left_out.iter().filter(|left| left.why.is_loss()).collect();
    let first = lost.first().filter(|_| !record.is_complete())?;
    let more = (lost.len() as u64).saturating_sub(1).saturating_add(record.left_out_more);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!(
        "[the snapshot of the workspace before has not {} ({}){more}]\n",
        first.path,
        first.why.words()
    ))
}

#[cfg(test)]
mod tests;

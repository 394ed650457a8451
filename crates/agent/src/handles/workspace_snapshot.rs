//! Changes in the workspace by a command that received data from outside.
//!
//! The gate labels the whole workspace before anything comes in; here that is made good
//! again for all but what the command changed. What cannot be told apart stays labelled.

use std::collections::HashMap;
use std::sync::Arc;

use automaton_core::trust::Label;
use automaton_sandbox::{
    FileKind, FolderEntry, HOME_INSIDE, ListOptions, WorkspaceDir, WorkspacePath,
};
use automaton_store::{Store, StoreError};
use tokio::task;

/// Entries of a workspace that are compared; one with more is labelled as a whole.
const ENTRIES_MAX: usize = 20_000;
/// Levels of folders that are compared.
const DEPTH: u32 = 32;
/// Files and folders that get a label of their own for one command.
const LABELS_MAX: usize = 1_000;

/// State of the workspace before a command.
pub(super) struct WorkspaceSnapshot {
    entries: Option<HashMap<WorkspacePath, (i64, i64)>>,
    /// True if it was already labelled as a whole.
    labelled: bool,
}

/// Every file and folder, and when each was last changed; nothing where not all is known.
async fn entries(files: &Arc<WorkspaceDir>) -> Option<Vec<FolderEntry>> {
    let files = Arc::clone(files);
    let reach = ListOptions { depth: DEPTH, entries_max: ENTRIES_MAX, is_closed: |_, _| false };
    let listed = task::spawn_blocking(move || {
        // silent-ok: what cannot be listed is not known.
        files.list(&WorkspacePath::parse("~").ok()?, reach).ok()
    });
    // silent-ok: as above.
    let listing = listed.await.ok()??;
    (!listing.cut && listing.closed == 0).then_some(listing.entries)
}

impl WorkspaceSnapshot {
    /// Looks at the workspace.
    pub(super) async fn take(files: &Arc<WorkspaceDir>, store: &Store) -> Result<Self, StoreError> {
        let labelled = store.path_label(HOME_INSIDE.to_owned()).await?.is_some();
        let entries = if labelled { None } else { entries(files).await };
        let stamped = entries.map(|all| all.into_iter().map(|it| (it.path, it.changed)).collect());
        Ok(Self { entries: stamped, labelled })
    }

    /// Labels what has changed since, and takes the label off the rest.
    pub(super) async fn settle(
        self,
        files: &Arc<WorkspaceDir>,
        store: &Store,
    ) -> Result<(), StoreError> {
        if self.labelled {
            return Ok(());
        }
        let now = entries(files).await;
        let Some(changed) = self.entries.zip(now).and_then(|(then, now)| changed(&then, now))
        else {
            return Ok(());
        };
        for path in changed {
            store.label_path(path.to_string(), Label::Web).await?;
        }
        store.clear_path(HOME_INSIDE.to_owned()).await
    }
}

/// Returns new and changed files, and new folders as a whole; `None` if there are too many.
fn changed(
    then: &HashMap<WorkspacePath, (i64, i64)>,
    now: Vec<FolderEntry>,
) -> Option<Vec<WorkspacePath>> {
    let mut found: Vec<WorkspacePath> = Vec::new();
    for entry in now {
        let before = then.get(&entry.path);
        let is_folder = entry.kind == Some(FileKind::Directory);
        let is_same = if is_folder { before.is_some() } else { before == Some(&entry.changed) };
        let within =
            |folder: &WorkspacePath| entry.path.to_string().starts_with(&format!("{folder}/"));
        if is_same || found.last().is_some_and(within) {
            continue;
        }
        found.push(entry.path);
        if found.len() > LABELS_MAX {
            return None;
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, kind: Option<FileKind>, changed: i64) -> FolderEntry {
        let path = WorkspacePath::parse(path).unwrap();
        FolderEntry { path, kind, bytes: 0, changed: (changed, 0) }
    }

    #[test]
    fn files_are_told_by_their_change_and_new_folders_as_a_whole() {
        let folder = Some(FileKind::Directory);
        let old = [entry("a", None, 1), entry("d", folder, 1), entry("d/b", None, 1)];
        let then = old.into_iter().map(|it| (it.path, it.changed)).collect();
        let now = vec![
            entry("a", None, 2),
            entry("d", folder, 9),
            entry("d/b", None, 1),
            entry("d/new", None, 5),
            entry("n", folder, 5),
            entry("n/x", None, 5),
            entry("n/y", folder, 5),
            entry("nx", None, 5),
        ];
        let found: Vec<String> =
            changed(&then, now).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(found, ["/root/a", "/root/d/new", "/root/n", "/root/nx"]);
        let many = (0..=LABELS_MAX).map(|nth| entry(&nth.to_string(), None, 1)).collect();
        assert_eq!(changed(&HashMap::new(), many), None);
    }
}

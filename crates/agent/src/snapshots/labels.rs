//! Labels of files in snapshots: whose words a file may hold is a part of what is restored.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use automaton_core::trust::Label;
use automaton_sandbox::HOME_INSIDE;
use automaton_store::{Store, StoreError};

/// Labels that are given back one by one; of more the whole workspace gets the least trusted.
const LABELS_MAX: usize = 1_000;

/// Returns the labels that files and folders have now, by their names.
pub(super) async fn stored(store: &Store) -> Result<BTreeMap<String, String>, StoreError> {
    let all = store.labelled_paths().await?.into_iter();
    let others = all.filter(|(_, label)| *label > Label::Tool);
    Ok(others.map(|(path, label)| (path, label.name().to_owned())).collect())
}

/// Gives labels back to what is restored. A file whose present label is less trusted keeps that.
///
/// # Errors
/// When the store fails, or takes no more labels: then nothing may be restored.
pub(super) async fn give_back(
    store: &Store,
    recorded: &BTreeMap<String, String>,
    paths: &[PathBuf],
) -> Result<(), StoreError> {
    let mut wanted: Vec<(&str, Label)> = Vec::new();
    for (path, name) in recorded {
        // A label that this program does not know is the least trusted.
        let label = Label::by_name(name).unwrap_or(Label::Web);
        if concerns(path, paths) {
            wanted.push((path, label));
        }
    }
    if wanted.len() > LABELS_MAX {
        let least = wanted.iter().map(|(_, label)| *label).reduce(Label::meet);
        wanted = vec![(HOME_INSIDE, least.unwrap_or(Label::Web))];
    }
    for (path, label) in wanted {
        let now = store.noted_label(path.to_owned()).await?;
        if now.is_some_and(|(now, hash)| now >= label && hash.is_none()) {
            continue;
        }
        let label = now.map_or(label, |(now, _)| now.meet(label));
        store.label_path(path.to_owned(), label).await?;
    }
    Ok(())
}

/// Returns true if a labelled file or folder is among these paths, above them or below.
fn concerns(labelled: &str, paths: &[PathBuf]) -> bool {
    let inside = labelled.strip_prefix(HOME_INSIDE).unwrap_or(labelled);
    let inside = Path::new(inside.trim_start_matches('/'));
    paths.is_empty() || paths.iter().any(|it| it.starts_with(inside) || inside.starts_with(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_above_and_below_a_path_concern_it() {
        let paths = [PathBuf::from("notes/web")];
        for path in ["/root", "/root/notes", "/root/notes/web", "/root/notes/web/a"] {
            assert!(concerns(path, &paths), "{path}");
        }
        for path in ["/root/notes/webb", "/root/site"] {
            assert!(!concerns(path, &paths), "{path}");
        }
        assert!(concerns("/root/site", &[]));
    }
}

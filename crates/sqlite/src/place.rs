//! Renames a finished file to its final name, unless the name is taken.
//!
//! A hard link does both in one step. File systems of memory sticks, network shares and shared
//! folders have no hard links. There the file is renamed while the folder is locked, so that two
//! processes of this program cannot both find the name free.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Renames the file at `draft` to `path`, and syncs the folder. The draft may be gone afterwards.
///
/// # Errors
/// Returns [`ErrorKind::AlreadyExists`] if the name is taken. Also fails if neither a hard link
/// nor a lock is possible. Then there is no new file at `path`.
pub fn place_new(draft: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(draft, path) {
        Ok(()) => {}
        Err(error) if has_no_links(error.kind()) => rename_locked(draft, path, &error)?,
        Err(error) => return Err(error),
    }
    folder_of(path)?.sync_all()
}

/// Returns true if a failure may mean that the file system has no hard links. A full disk, a
/// missing folder and a taken name would fail in every way.
const fn has_no_links(kind: ErrorKind) -> bool {
    !matches!(
        kind,
        ErrorKind::AlreadyExists
            | ErrorKind::NotFound
            | ErrorKind::NotADirectory
            | ErrorKind::StorageFull
            | ErrorKind::QuotaExceeded
            | ErrorKind::ReadOnlyFilesystem
    )
}

/// Renames the draft while the folder is locked.
fn rename_locked(draft: &Path, path: &Path, no_link: &io::Error) -> io::Result<()> {
    let folder = folder_of(path)?;
    folder.lock().map_err(|no_lock| {
        let what = format!(
            "the file system has no hard links ({no_link}), and its folders cannot be locked \
             ({no_lock}); use a folder on another file system"
        );
        io::Error::new(no_lock.kind(), what)
    })?;
    // Closing the folder ends the lock.
    match path.symlink_metadata() {
        Ok(_) => Err(ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == ErrorKind::NotFound => fs::rename(draft, path),
        Err(error) => Err(error),
    }
}

/// Opens the folder of a file.
fn folder_of(path: &Path) -> io::Result<File> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_given_once_with_links_and_without() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let rename = |draft: &Path, path: &Path| {
            rename_locked(draft, path, &ErrorKind::PermissionDenied.into())
        };
        let ways: [fn(&Path, &Path) -> io::Result<()>; 2] = [place_new, rename];
        for (nth, place) in ways.into_iter().enumerate() {
            let target = at(&format!("target-{nth}"));
            fs::write(at("first"), "first").unwrap();
            fs::write(at("second"), "second").unwrap();
            place(&at("first"), &target).unwrap();
            let taken = place(&at("second"), &target).unwrap_err();
            assert_eq!(taken.kind(), ErrorKind::AlreadyExists);
            assert_eq!(fs::read_to_string(&target).unwrap(), "first");
            // A dangling link also takes the name.
            let dangling = at(&format!("dangling-{nth}"));
            std::os::unix::fs::symlink(at("nowhere"), &dangling).unwrap();
            let taken = place(&at("second"), &dangling).unwrap_err();
            assert_eq!(taken.kind(), ErrorKind::AlreadyExists);
        }
    }

    #[test]
    fn two_processes_do_not_both_find_a_name_free() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        let lock = File::open(folder.path()).unwrap();
        lock.lock().unwrap();
        let draft = folder.path().join("draft");
        let path = target.clone();
        fs::write(&draft, "late").unwrap();
        let late = std::thread::spawn(move || {
            rename_locked(&draft, &path, &ErrorKind::Unsupported.into()).map_err(|it| it.kind())
        });
        fs::write(&target, "early").unwrap();
        drop(lock);
        assert_eq!(late.join().unwrap(), Err(ErrorKind::AlreadyExists));
        assert_eq!(fs::read_to_string(&target).unwrap(), "early");
    }

    #[test]
    fn only_what_a_link_can_mean_is_tried_otherwise() {
        for kind in [ErrorKind::PermissionDenied, ErrorKind::Unsupported, ErrorKind::TooManyLinks] {
            assert!(has_no_links(kind), "{kind:?}");
        }
        for kind in [ErrorKind::AlreadyExists, ErrorKind::NotFound, ErrorKind::StorageFull] {
            assert!(!has_no_links(kind), "{kind:?}");
        }
    }
}

//! The files that each new machine begins with: a copy of a folder of the operator's.
//!
//! Nothing in that folder is a tenant's, so its links are copied as links, and none is followed.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

/// Files of a template at most.
const FILES_MAX: usize = 200_000;

/// Copies a folder with all in it, with the permissions of each file. Sockets, pipes and devices
/// are refused by name.
pub(super) fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    let mut waiting: Vec<(PathBuf, PathBuf)> = vec![(from.to_owned(), to.to_owned())];
    let mut copied = 0_usize;
    while let Some((from, to)) = waiting.pop() {
        DirBuilder::new().recursive(true).mode(0o700).create(&to)?;
        for entry in fs::read_dir(&from)? {
            let entry = entry?;
            copied += 1;
            if copied > FILES_MAX {
                return Err(io::Error::other(format!("it has more than {FILES_MAX} files")));
            }
            let kind = entry.file_type()?;
            let path = entry.path();
            let target = to.join(entry.file_name());
            if kind.is_dir() {
                waiting.push((path, target));
            } else if kind.is_symlink() {
                symlink(fs::read_link(&path)?, target)?;
            } else if kind.is_file() {
                fs::copy(&path, target)?;
            } else {
                let what = format!("{} is no file, folder or link", path.display());
                return Err(io::Error::other(what));
            }
        }
        let mode = fs::metadata(&from)?.permissions().mode() & 0o777;
        // Its owner has to be able to enter and change it.
        fs::set_permissions(&to, Permissions::from_mode(mode | 0o700))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_copied_with_its_links_and_permissions() {
        let home = tempfile::tempdir().unwrap();
        let from = home.path().join("from");
        let to = home.path().join("to");
        fs::create_dir_all(from.join("bin/empty")).unwrap();
        fs::write(from.join("bin/run"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(from.join("bin/run"), Permissions::from_mode(0o755)).unwrap();
        symlink("/etc/passwd", from.join("link")).unwrap();
        copy_folder(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join("bin/run")).unwrap(), "#!/bin/sh\n");
        let mode = fs::metadata(to.join("bin/run")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
        assert!(to.join("bin/empty").is_dir());
        assert_eq!(fs::read_link(to.join("link")).unwrap(), Path::new("/etc/passwd"));
    }

    #[test]
    fn what_is_no_file_is_refused_by_name() {
        let home = tempfile::tempdir().unwrap();
        let from = home.path().join("from");
        fs::create_dir(&from).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(from.join("socket")).unwrap();
        let error = copy_folder(&from, &home.path().join("to")).unwrap_err();
        assert!(error.to_string().ends_with("socket is no file, folder or link"), "{error}");
        let missing = copy_folder(&home.path().join("none"), &home.path().join("to"));
        assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}

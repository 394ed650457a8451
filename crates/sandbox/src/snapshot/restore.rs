//! Brings files back from a snapshot, or says what that would change.
//!
//! Programs in the sandbox may change the tree meanwhile: each entry is reached through the
//! handle of the workspace, written beside its place and renamed into it. Nothing is deleted.
//! What is in the way as another kind, or is not in the snapshot of the present, gets another
//! name beside it.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use automaton_core::snapshot::RestoreReport;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, RenameFlags, openat, readlinkat, renameat, renameat2};
use nix::sys::stat::{
    FileStat, Mode, SFlag, UtimensatFlags, fchmod, fstatat, futimens, mkdirat, utimensat,
};
use nix::sys::time::TimeSpec;
use nix::unistd::{UnlinkatFlags, symlinkat, unlinkat};

use super::manifest::{FileTime, TreeEntry, TreeManifest, TreeNode};
use super::objects::{ContentStore, hash_of};
use super::path_text::encode;
use super::survey::{MODE, identity_of};
use crate::fs::{WorkspaceDir, create_temporary};

/// Names that are tried for what is in the way.
const NAMES_TRIED: u32 = 1000;
/// The permissions of a folder while files are put into it.
const OPEN_FOLDER: u32 = 0o700;

/// Whether a restore changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RestoreMode {
    /// It only says what it would change.
    Plan,
    /// It changes it.
    Apply,
}

/// A restore that is going on.
pub(super) struct Restoring<'a> {
    pub(super) root: &'a WorkspaceDir,
    pub(super) objects: &'a ContentStore,
    pub(super) mode: RestoreMode,
    /// Files whose present content is stored: they may be replaced. Without a list all may.
    pub(super) stored: Option<HashSet<PathBuf>>,
    pub(super) report: RestoreReport,
}

/// Returns the entries that are at these paths or below them, with the folders above them.
pub(super) fn select<'a>(manifest: &'a TreeManifest, paths: &[PathBuf]) -> Vec<&'a TreeEntry> {
    let is_meant = |entry: &&TreeEntry| {
        let at = &entry.path.0;
        let is_above =
            |path: &PathBuf| path.starts_with(at) && matches!(entry.node, TreeNode::Folder);
        paths.is_empty() || paths.iter().any(|path| at.starts_with(path) || is_above(path))
    };
    manifest.entries.iter().filter(is_meant).collect()
}

impl Restoring<'_> {
    /// Goes through entries, of which each folder comes before what it holds.
    ///
    /// # Errors
    /// When the disk is full. Any other failure is one of the report.
    pub(super) fn run(&mut self, entries: &[&TreeEntry]) -> io::Result<()> {
        for entry in entries {
            let done = match &entry.node {
                TreeNode::Folder => self.folder(entry),
                TreeNode::File { .. } | TreeNode::Link { .. } => self.leaf(entry),
            };
            self.note(entry, done)?;
        }
        if self.mode == RestoreMode::Apply {
            let folders = entries.iter().rev();
            for entry in folders.filter(|entry| matches!(entry.node, TreeNode::Folder)) {
                let done = self.close_folder(entry);
                self.note(entry, done)?;
            }
        }
        Ok(())
    }

    fn note(&mut self, entry: &TreeEntry, done: io::Result<()>) -> io::Result<()> {
        let Err(error) = done else { return Ok(()) };
        if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            return Err(error);
        }
        self.report.failed.add(|| format!("{}: {error}", encode(&entry.path.0)));
        Ok(())
    }

    /// Opens the folder that an entry is in. A plan has none where that is still to be made.
    fn parent<'p>(&self, path: &'p Path) -> io::Result<Option<(OwnedFd, &'p OsStr)>> {
        let name = path.file_name().unwrap_or_default();
        let above = path.parent().filter(|above| !above.as_os_str().is_empty());
        match self.root.open_folder(above.unwrap_or(Path::new("."))) {
            Ok(folder) => Ok(Some((folder, name))),
            // Something is in the way of a folder, or it is closed: the folder itself tells.
            Err(_) if self.mode == RestoreMode::Plan => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    fn folder(&mut self, entry: &TreeEntry) -> io::Result<()> {
        let path = &entry.path.0;
        let Some((parent, name)) = self.parent(path)? else {
            self.report.created.add(|| encode(path));
            return Ok(());
        };
        let found = match status(&parent, name)? {
            Some(found) if kind(&found) == SFlag::S_IFDIR => found,
            other => {
                self.report.created.add(|| encode(path));
                if other.is_some() {
                    self.move_aside(&parent, path, name)?;
                }
                if self.mode == RestoreMode::Apply {
                    mkdirat(&parent, name, Mode::from_bits_truncate(OPEN_FOLDER))?;
                }
                return Ok(());
            }
        };
        if found.st_mode & MODE != entry.mode {
            self.report.attributes.add(|| encode(path));
        } else {
            self.report.same += 1;
        }
        if self.mode == RestoreMode::Apply && found.st_mode & OPEN_FOLDER != OPEN_FOLDER {
            set_folder_mode(&parent, name, (found.st_mode & MODE) | OPEN_FOLDER)?;
        }
        Ok(())
    }

    /// Gives a folder its permissions and its time, after all that is in it.
    fn close_folder(&self, entry: &TreeEntry) -> io::Result<()> {
        let Some((parent, name)) = self.parent(&entry.path.0)? else { return Ok(()) };
        let Some(found) = status(&parent, name)? else { return Ok(()) };
        if kind(&found) != SFlag::S_IFDIR {
            return Ok(());
        }
        if found.st_mode & MODE != entry.mode {
            set_folder_mode(&parent, name, entry.mode)?;
        }
        if (found.st_mtime, found.st_mtime_nsec) != entry.modified {
            set_times(&parent, name, entry.modified)?;
        }
        Ok(())
    }

    fn leaf(&mut self, entry: &TreeEntry) -> io::Result<()> {
        let path = &entry.path.0;
        let bytes = match entry.node {
            TreeNode::File { bytes, .. } => bytes,
            TreeNode::Folder | TreeNode::Link { .. } => 0,
        };
        let Some((parent, name)) = self.parent(path)? else {
            self.report.created.add(|| encode(path));
            self.report.bytes = self.report.bytes.saturating_add(bytes);
            return Ok(());
        };
        let Some(found) = status(&parent, name)? else {
            self.report.created.add(|| encode(path));
            self.report.bytes = self.report.bytes.saturating_add(bytes);
            return self.write(entry, &parent, name);
        };
        if !self.has_content(entry, &parent, name, &found)? {
            self.report.replaced.add(|| encode(path));
            self.report.bytes = self.report.bytes.saturating_add(bytes);
            let is_leaf = [SFlag::S_IFREG, SFlag::S_IFLNK].contains(&kind(&found));
            let is_stored = self.stored.as_ref().is_none_or(|stored| stored.contains(path));
            if !is_leaf || !is_stored {
                self.move_aside(&parent, path, name)?;
            }
            return self.write(entry, &parent, name);
        }
        let is_link = matches!(entry.node, TreeNode::Link { .. });
        let is_same_mode = is_link || found.st_mode & MODE == entry.mode;
        if is_same_mode && (found.st_mtime, found.st_mtime_nsec) == entry.modified {
            self.report.same += 1;
            return Ok(());
        }
        self.report.attributes.add(|| encode(path));
        if self.mode == RestoreMode::Apply {
            if !is_same_mode {
                let file = open_file(&parent, name)?;
                fchmod(&file, Mode::from_bits_truncate(entry.mode))?;
            }
            set_times(&parent, name, entry.modified)?;
        }
        Ok(())
    }

    /// Returns true if what is there holds what the snapshot has.
    fn has_content(
        &self,
        entry: &TreeEntry,
        parent: &OwnedFd,
        name: &OsStr,
        found: &FileStat,
    ) -> io::Result<bool> {
        match &entry.node {
            TreeNode::Folder => Ok(false),
            TreeNode::Link { target } => {
                Ok(kind(found) == SFlag::S_IFLNK
                    && readlinkat(parent, name)? == target.0.as_os_str())
            }
            TreeNode::File { bytes, hash, identity } => {
                if kind(found) != SFlag::S_IFREG || found.st_size.cast_unsigned() != *bytes {
                    return Ok(false);
                }
                let is_untouched = *identity == Some(identity_of(found))
                    && (found.st_mtime, found.st_mtime_nsec) == entry.modified;
                if is_untouched {
                    return Ok(true);
                }
                // One that cannot be read is replaced.
                Ok(open_file(parent, name)
                    .and_then(|file| hash_of(&file))
                    .is_ok_and(|present| present == *hash))
            }
        }
    }

    /// Puts a file or a link into its place.
    fn write(&self, entry: &TreeEntry, parent: &OwnedFd, name: &OsStr) -> io::Result<()> {
        if self.mode == RestoreMode::Plan {
            return Ok(());
        }
        let (file, partial) = create_temporary(parent.as_fd())?;
        let done = match &entry.node {
            TreeNode::File { hash, .. } => self.objects.copy_to(hash, &file).and_then(|_| {
                fchmod(&file, Mode::from_bits_truncate(entry.mode))?;
                let time = time_spec(entry.modified);
                Ok(futimens(&file, &time, &time)?)
            }),
            TreeNode::Link { target } => {
                unlinkat(parent, partial.as_c_str(), UnlinkatFlags::NoRemoveDir)
                    .and_then(|()| symlinkat(target.0.as_path(), parent, partial.as_c_str()))
                    .and_then(|()| {
                        let time = time_spec(entry.modified);
                        let flags = UtimensatFlags::NoFollowSymlink;
                        utimensat(parent, partial.as_c_str(), &time, &time, flags)
                    })
                    .map_err(io::Error::from)
            }
            TreeNode::Folder => Ok(()),
        };
        let done = done.and_then(|()| Ok(renameat(parent, partial.as_c_str(), parent, name)?));
        if done.is_err() {
            // silent-ok: why it is not kept is told.
            unlinkat(parent, partial.as_c_str(), UnlinkatFlags::NoRemoveDir).ok();
        }
        done
    }

    /// Gives another name to what is in the way.
    fn move_aside(&mut self, parent: &OwnedFd, path: &Path, name: &OsStr) -> io::Result<()> {
        let aside = |nth: u32| {
            let mut aside = name.to_owned();
            aside.push(format!(".before-restore-{nth}"));
            aside
        };
        if self.mode == RestoreMode::Plan {
            let to = path.with_file_name(aside(1));
            self.report.moved_aside.add(|| encode(&to));
            return Ok(());
        }
        for nth in 1..=NAMES_TRIED {
            let to: OsString = aside(nth);
            let flags = RenameFlags::RENAME_NOREPLACE;
            match renameat2(parent, name, parent, to.as_os_str(), flags) {
                Err(Errno::EEXIST) => {}
                Err(errno) => return Err(errno.into()),
                Ok(()) => {
                    self.report.moved_aside.add(|| encode(&path.with_file_name(to)));
                    return Ok(());
                }
            }
        }
        Err(Errno::EEXIST.into())
    }
}

fn kind(found: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(found.st_mode & SFlag::S_IFMT.bits())
}

fn status(parent: &OwnedFd, name: &OsStr) -> io::Result<Option<FileStat>> {
    match fstatat(parent, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::ENOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Opens a regular file to read it or to change its permissions.
fn open_file(parent: &OwnedFd, name: &OsStr) -> io::Result<File> {
    let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let file = File::from(openat(parent, name, flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no regular file")),
    }
}

/// Sets the permissions of a folder that may be closed to its owner. The handle is of the folder
/// itself, so that no link is followed.
fn set_folder_mode(parent: &OwnedFd, name: &OsStr, mode: u32) -> io::Result<()> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let folder = openat(parent, name, flags, Mode::empty())?;
    let handle = format!("/proc/self/fd/{}", folder.as_raw_fd());
    std::fs::set_permissions(handle, Permissions::from_mode(mode))
}

fn set_times(parent: &OwnedFd, name: &OsStr, modified: FileTime) -> io::Result<()> {
    let time = time_spec(modified);
    Ok(utimensat(parent, name, &time, &time, UtimensatFlags::NoFollowSymlink)?)
}

fn time_spec((seconds, nanos): FileTime) -> TimeSpec {
    TimeSpec::new(seconds, nanos)
}

//! Finds out what a workspace holds, before anything is copied.
//!
//! Programs in the sandbox change the tree meanwhile. Each folder is opened through the handle
//! of the workspace and its entries are looked at relative to it: no link is followed, and no
//! exchange at the wrong moment leads out. Caches are looked at last and one by one, so that
//! none of them takes the room of a file that nothing makes again.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use automaton_core::snapshot::{LEFT_OUT_MAX, LeftOut, LeftOutReason};
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, readlinkat};
use nix::sys::stat::{FileStat, SFlag, fstatat};

use super::manifest::{FileIdentity, FileTime, StoredPath};
use super::path_text::encode;
use crate::fs::WorkspaceDir;
use crate::launch::now;

/// Folders of what is made again when it is gone. Over a limit they are left out first.
pub const CACHES: [&str; 12] = [
    "node_modules",
    "target",
    ".venv",
    "venv",
    "__pycache__",
    ".cache",
    ".npm",
    ".cargo",
    ".gradle",
    ".pytest_cache",
    ".mypy_cache",
    ".tox",
];
/// The longest path that is kept, in bytes: no system takes one of more than 4096 at once.
const PATH_BYTES_MAX: usize = 3072;
/// The permissions that are kept: none that changes the user of a program.
pub(super) const MODE: u32 = 0o777;

/// An entry of the workspace, as it was seen.
#[derive(Debug, Clone)]
pub(super) struct SurveyedEntry {
    pub(super) path: PathBuf,
    pub(super) mode: u32,
    pub(super) modified: FileTime,
    pub(super) kind: SurveyedKind,
}

#[derive(Debug, Clone)]
pub(super) enum SurveyedKind {
    Folder,
    File { bytes: u64, identity: FileIdentity },
    Link { target: StoredPath },
}

/// What is left out, of which only the first are named.
#[derive(Debug, Default)]
pub(super) struct LeftOutList {
    pub(super) named: Vec<LeftOut>,
    pub(super) more: u64,
}

impl LeftOutList {
    pub(super) fn add(&mut self, path: &Path, why: LeftOutReason, bytes: u64) {
        if self.named.len() >= LEFT_OUT_MAX {
            self.more = self.more.saturating_add(1);
            return;
        }
        let path = if path.as_os_str().is_empty() { ".".to_owned() } else { encode(path) };
        self.named.push(LeftOut { path, why, bytes });
    }
}

/// A cache, with all that is in it.
#[derive(Debug)]
pub(super) struct SurveyedCache {
    pub(super) folder: PathBuf,
    pub(super) entries: Vec<SurveyedEntry>,
}

/// What a workspace holds.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub(super) entries: Vec<SurveyedEntry>,
    pub(super) caches: Vec<SurveyedCache>,
    pub(super) left_out: LeftOutList,
}

/// The bounds of a survey.
#[derive(Debug, Clone, Copy)]
pub(super) struct SurveyBounds<'a> {
    pub(super) entries_max: u64,
    pub(super) deadline: Instant,
    /// Names at the top that are not looked at.
    pub(super) skipped: &'a [&'a str],
}

/// Looks at all that a workspace holds.
pub(super) fn survey(root: &WorkspaceDir, bounds: SurveyBounds<'_>) -> Survey {
    let mut walk = SurveyWalk { root, bounds, room: bounds.entries_max };
    let mut found = Survey::default();
    let mut caches = Vec::new();
    let ended =
        walk.below(PathBuf::new(), &mut found.entries, &mut found.left_out, Some(&mut caches));
    if let Err((path, why)) = ended {
        found.left_out.add(&path, why, 0);
    }
    for folder in caches {
        let (mut entries, room) = (Vec::new(), walk.room);
        let mut inside = LeftOutList::default();
        match walk.below(folder.clone(), &mut entries, &mut inside, None) {
            Ok(()) => {
                for left in inside.named {
                    found.left_out.named.push(LeftOut { why: LeftOutReason::Cache, ..left });
                }
                found.left_out.more = found.left_out.more.saturating_add(inside.more);
                found.caches.push(SurveyedCache { folder, entries });
            }
            Err(_) => {
                walk.room = room;
                found.left_out.add(&folder, LeftOutReason::Cache, total(&entries));
            }
        }
    }
    if found.left_out.named.len() > LEFT_OUT_MAX {
        let more = found.left_out.named.split_off(LEFT_OUT_MAX);
        found.left_out.more = found.left_out.more.saturating_add(more.len() as u64);
    }
    found
}

/// Returns the bytes of all files among some entries.
pub(super) fn total(entries: &[SurveyedEntry]) -> u64 {
    entries.iter().map(SurveyedEntry::bytes).fold(0, u64::saturating_add)
}

impl SurveyedEntry {
    pub(super) const fn bytes(&self) -> u64 {
        match self.kind {
            SurveyedKind::File { bytes, .. } => bytes,
            SurveyedKind::Folder | SurveyedKind::Link { .. } => 0,
        }
    }
}

/// Where a survey ended before its end, and why.
type EarlyEnd = (PathBuf, LeftOutReason);

struct SurveyWalk<'a> {
    root: &'a WorkspaceDir,
    bounds: SurveyBounds<'a>,
    /// Entries that there is room for.
    room: u64,
}

impl SurveyWalk<'_> {
    /// Looks at what is below a folder. Caches are put aside where there is a list for them.
    fn below(
        &mut self,
        folder: PathBuf,
        entries: &mut Vec<SurveyedEntry>,
        left_out: &mut LeftOutList,
        mut caches: Option<&mut Vec<PathBuf>>,
    ) -> Result<(), EarlyEnd> {
        let mut waiting = vec![folder];
        while let Some(folder) = waiting.pop() {
            if now() > self.bounds.deadline {
                return Err((folder, LeftOutReason::Time));
            }
            let names = match self.names_in(&folder) {
                Ok(names) => names,
                // It is gone since its parent was read.
                Err(Errno::ENOENT) => continue,
                Err(Errno::E2BIG) => return Err((folder, LeftOutReason::Files)),
                Err(_) => {
                    left_out.add(&folder, LeftOutReason::Unreadable, 0);
                    continue;
                }
            };
            let (dir, names) = names;
            let mut below = Vec::new();
            for name in names {
                let path = folder.join(&name);
                if path.as_os_str().len() > PATH_BYTES_MAX {
                    left_out.add(&path, LeftOutReason::Path, 0);
                    continue;
                }
                let entry = match look_at(&dir, &name, path) {
                    Ok(entry) => entry,
                    Err((_, Errno::ENOENT)) => continue,
                    Err((path, Errno::ENODEV)) => {
                        left_out.add(&path, LeftOutReason::Special, 0);
                        continue;
                    }
                    Err((path, _)) => {
                        left_out.add(&path, LeftOutReason::Unreadable, 0);
                        continue;
                    }
                };
                let Some(room) = self.room.checked_sub(1) else {
                    return Err((entry.path, LeftOutReason::Files));
                };
                self.room = room;
                if matches!(entry.kind, SurveyedKind::Folder) {
                    match &mut caches {
                        Some(caches) if is_cache(&name) => caches.push(entry.path.clone()),
                        _ => below.push(entry.path.clone()),
                    }
                }
                entries.push(entry);
            }
            waiting.extend(below.into_iter().rev());
        }
        Ok(())
    }

    /// Opens a folder and reads the names in it, sorted; no more than there is room for.
    fn names_in(&self, folder: &Path) -> nix::Result<(Dir, Vec<OsString>)> {
        let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let opened = self.root.open_folder(here)?;
        let mut dir = Dir::from_fd(opened)?;
        let mut names = Vec::new();
        let is_top = folder.as_os_str().is_empty();
        for found in dir.iter() {
            let name = found?.file_name().to_bytes().to_vec();
            let is_skipped =
                is_top && self.bounds.skipped.iter().any(|skipped| skipped.as_bytes() == name);
            if name == b"." || name == b".." || is_skipped {
                continue;
            }
            if names.len() as u64 > self.room {
                return Err(Errno::E2BIG);
            }
            names.push(OsStr::from_bytes(&name).to_owned());
        }
        names.sort_unstable();
        Ok((dir, names))
    }
}

fn is_cache(name: &OsStr) -> bool {
    CACHES.iter().any(|cache| name == *cache)
}

/// Looks at one entry of a folder. `ENODEV` says that it is a device, a pipe or a socket.
fn look_at(dir: &Dir, name: &OsStr, path: PathBuf) -> Result<SurveyedEntry, (PathBuf, Errno)> {
    let status = match fstatat(dir, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(status) => status,
        Err(errno) => return Err((path, errno)),
    };
    let kind = match SFlag::from_bits_truncate(status.st_mode & SFlag::S_IFMT.bits()) {
        SFlag::S_IFREG => SurveyedKind::File {
            bytes: status.st_size.cast_unsigned(),
            identity: identity_of(&status),
        },
        SFlag::S_IFDIR => SurveyedKind::Folder,
        SFlag::S_IFLNK => match readlinkat(dir, name) {
            Ok(target) => SurveyedKind::Link { target: StoredPath(target.into()) },
            Err(errno) => return Err((path, errno)),
        },
        _ => return Err((path, Errno::ENODEV)),
    };
    let modified = (status.st_mtime, status.st_mtime_nsec);
    Ok(SurveyedEntry { path, mode: status.st_mode & MODE, modified, kind })
}

/// Returns what tells whether a file is still the same.
pub(super) const fn identity_of(status: &FileStat) -> FileIdentity {
    FileIdentity {
        device: status.st_dev,
        number: status.st_ino,
        changed: (status.st_ctime, status.st_ctime_nsec),
    }
}

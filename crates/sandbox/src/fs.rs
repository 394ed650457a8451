//! Access to files of the workspace through handles beneath it.
//!
//! The agent's process reads and writes here with its own rights, on a tree that sandboxed
//! programs change at the same time. So every lookup starts at a handle of the workspace, and the
//! kernel keeps it beneath that handle. No link is followed, so the file that was judged by name
//! is the file that is opened. Neither `..` nor the exchange of a directory at the wrong moment
//! leads outside. Never turn a [`WorkspacePath`] into a host path to open.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use automaton_core::error::Classified;
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{
    AtFlags, OFlag, OpenHow, RenameFlags, ResolveFlag, open, openat, openat2, renameat, renameat2,
};
use nix::sys::stat::{FileStat, Mode, SFlag, fchmod, fstat, fstatat, mkdirat};
use nix::sys::statvfs::statvfs;
use nix::unistd::{UnlinkatFlags, unlinkat};
use thiserror::Error;

use crate::path::WorkspacePath;

/// The number of retries of a lookup that a concurrent rename disturbed.
const RETRIES: u32 = 64;

/// The most names read from one folder, since a sandboxed program can create any number.
const NAMES_MAX: usize = 20_000;

/// Returns the available and the total size, in bytes, of the file system of `place`.
///
/// # Errors
/// Fails if the system does not report them.
pub fn disk_space(place: &Path) -> io::Result<(u64, u64)> {
    let told = statvfs(place)?;
    let bytes = |blocks: u64| blocks.saturating_mul(told.fragment_size());
    Ok((bytes(told.blocks_available()), bytes(told.blocks())))
}

/// A handle of the workspace.
#[derive(Debug)]
pub struct WorkspaceDir {
    root: OwnedFd,
    lookup: Lookup,
}

/// The mechanism that keeps a lookup beneath the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lookup {
    /// A single `openat2` call.
    Kernel,
    /// Name by name, for kernels or containers without `openat2`.
    Walk,
}

/// The result of reading a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadResult {
    /// The first bytes, up to the limit.
    pub bytes: Vec<u8>,
    /// The size of the whole file in bytes, at the time of opening.
    pub total: u64,
}

/// The limits of listing a folder.
#[derive(Debug, Clone, Copy)]
pub struct ListOptions {
    /// The depth in folders. The listed folder itself is the first.
    pub depth: u32,
    /// The most entries. More may exist.
    pub entries_max: usize,
    /// Returns true if a folder with this parent and name is listed and not entered.
    pub is_closed: fn(&WorkspacePath, &str) -> bool,
}

/// The contents of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// The entries, sorted by name. A folder's entries are complete before those of the next
    /// folder.
    pub entries: Vec<FolderEntry>,
    /// The number of folders that were not entered because they are closed or too deep.
    pub closed: usize,
    /// True if entries are missing: too many, with names that are not UTF-8, or unreadable.
    pub cut: bool,
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderEntry {
    /// The path of the entry.
    pub path: WorkspacePath,
    /// The kind of the entry, or `None` for a regular file.
    pub kind: Option<FileKind>,
    /// The size of a regular file, in bytes.
    pub bytes: u64,
    /// The time of the last change of status (ctime), in seconds and nanoseconds. Programs cannot
    /// set it.
    pub changed: (i64, i64),
}

/// The kind of a path that is not a regular file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, derive_more::Display)]
pub enum FileKind {
    /// A directory.
    #[display("a directory")]
    Directory,
    /// A symbolic link.
    #[display("a symbolic link")]
    Link,
    /// A device, pipe or socket.
    #[display("a device, pipe or socket")]
    Special,
}

/// A file operation failed.
#[derive(Debug, Error, Classified)]
pub enum FsError {
    /// The workspace itself cannot be opened.
    #[error("cannot open the workspace {}", path.display())]
    #[class(Config)]
    Root {
        /// Its path on the host.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// There is no such file.
    #[error("{path} does not exist")]
    #[class(User)]
    Missing {
        /// The path.
        path: WorkspacePath,
    },
    /// The path goes through a link or out of the workspace.
    #[error("{path} leads through a link, and no link is followed: name the file itself")]
    #[class(Denied)]
    Escapes {
        /// The path.
        path: WorkspacePath,
    },
    /// The path is not a regular file.
    #[error("{path} is {kind}, not a file")]
    #[class(User, hint = match kind {
        FileKind::Directory => Some("list_files tells what is in it.".to_owned()),
        _ => None,
    })]
    NotAFile {
        /// The path.
        path: WorkspacePath,
        /// The kind of the file.
        kind: FileKind,
    },
    /// The content is larger than permitted.
    #[error("{bytes} bytes are too many for {path}: at most {bytes_max} can be written")]
    #[class(User)]
    TooLarge {
        /// The path.
        path: WorkspacePath,
        /// Its size.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// It could not be read.
    #[error("cannot read {path}")]
    #[class(Internal)]
    Read {
        /// The path.
        path: WorkspacePath,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The file could not be written. The previous content is unchanged.
    #[error("cannot write {path}")]
    #[class(Internal)]
    Write {
        /// The path.
        path: WorkspacePath,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

impl WorkspaceDir {
    /// Opens a workspace by its host path.
    ///
    /// # Errors
    /// Fails if the path is not a directory that this process can open.
    pub fn open(root: &Path) -> Result<Self, FsError> {
        let failed = |errno: Errno| FsError::Root { path: root.to_owned(), source: errno.into() };
        let handle = open(root, directory_flags(), Mode::empty()).map_err(failed)?;
        let how = OpenHow::new().flags(directory_flags()).resolve(ResolveFlag::RESOLVE_BENEATH);
        let lookup = match openat2(&handle, ".", how) {
            Ok(_) => Lookup::Kernel,
            Err(_) => Lookup::Walk,
        };
        Ok(Self { root: handle, lookup })
    }

    /// Opens a workspace without `openat2`, even if the kernel has it.
    #[doc(hidden)]
    pub fn open_walking(root: &Path) -> Result<Self, FsError> {
        Ok(Self { lookup: Lookup::Walk, ..Self::open(root)? })
    }

    /// Reads at most `cap` bytes of a regular file.
    ///
    /// # Errors
    /// Fails if the file is missing, is not a regular file, or lies outside.
    pub fn read(&self, path: &WorkspacePath, cap: u64) -> Result<ReadResult, FsError> {
        let (file, total) = self.open_file(path)?;
        let mut bytes = Vec::new();
        file.take(cap)
            .read_to_end(&mut bytes)
            .map_err(|source| FsError::Read { path: path.clone(), source })?;
        Ok(ReadResult { total: total.max(bytes.len() as u64), bytes })
    }

    /// Opens a regular file for reading in pieces. Also returns its size in bytes.
    ///
    /// # Errors
    /// As [`WorkspaceDir::read`].
    pub fn open_file(&self, path: &WorkspacePath) -> Result<(File, u64), FsError> {
        // Without O_NONBLOCK, opening a pipe would wait for its writer.
        let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let failed = |errno| match errno {
            Errno::ENOENT => FsError::Missing { path: path.clone() },
            errno => path_error(path, errno, |path, source| FsError::Read { path, source }),
        };
        let file = self.lookup(path.relative(), flags).map_err(failed)?;
        let status = fstat(&file).map_err(failed)?;
        if let Some(kind) = special_kind(&status) {
            return Err(FsError::NotAFile { path: path.clone(), kind });
        }
        Ok((File::from(file), status.st_size.cast_unsigned()))
    }

    /// Opens a file or folder of any name, to copy it. No link is followed, and the call never
    /// blocks. The metadata tell the kind.
    ///
    /// # Errors
    /// Fails if the path is missing or lies outside.
    pub fn open_for_copy(&self, path: &Path) -> io::Result<File> {
        let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        Ok(File::from(self.lookup(path, flags)?))
    }

    /// Opens a folder by any name that the system has, as [`WorkspaceDir::open_any`] does.
    pub(crate) fn open_folder(&self, path: &Path) -> nix::Result<OwnedFd> {
        self.lookup(path, directory_flags())
    }

    /// Writes a regular file atomically and creates the directories above it. A replaced file
    /// keeps its permissions.
    ///
    /// # Errors
    /// Fails if the content is larger than `cap`, the path is not a regular file, or it lies
    /// outside.
    pub fn write(&self, path: &WorkspacePath, bytes: &[u8], cap: u64) -> Result<(), FsError> {
        if bytes.len() as u64 > cap {
            let size = bytes.len() as u64;
            return Err(FsError::TooLarge { path: path.clone(), bytes: size, bytes_max: cap });
        }
        let mut draft = self.draft(path)?;
        draft.write(bytes)?;
        draft.commit()
    }

    /// Begins to write a regular file in pieces, with the effect of [`WorkspaceDir::write`].
    ///
    /// # Errors
    /// Fails if the path is not a regular file, or lies outside.
    pub fn draft(&self, path: &WorkspacePath) -> Result<AtomicFile, FsError> {
        let names: Vec<&str> = path.names().collect();
        let Some((name, above)) = names.split_last() else {
            return Err(FsError::NotAFile { path: path.clone(), kind: FileKind::Directory });
        };
        let failed =
            |errno| path_error(path, errno, |path, source| FsError::Write { path, source });
        let folder = self.make_folder(above).map_err(failed)?;
        let mode = match fstatat(&folder, *name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(status) => match special_kind(&status) {
                Some(kind) => return Err(FsError::NotAFile { path: path.clone(), kind }),
                None => Mode::from_bits_truncate(status.st_mode & 0o777),
            },
            Err(Errno::ENOENT) => Mode::from_bits_truncate(0o644),
            Err(errno) => return Err(failed(errno)),
        };
        let unsaid = |source| FsError::Write { path: path.clone(), source };
        let (file, beside) = create_temporary(folder.as_fd()).map_err(unsaid)?;
        let name = (*name).to_owned();
        Ok(AtomicFile { path: path.clone(), folder, name, beside, file, mode, is_kept: false })
    }

    /// Removes a regular file.
    ///
    /// # Errors
    /// Fails if the file is missing or lies outside.
    pub fn remove(&self, path: &WorkspacePath) -> Result<(), FsError> {
        let failed =
            |errno| path_error(path, errno, |path, source| FsError::Write { path, source });
        let above = path.relative().parent().filter(|above| !above.as_os_str().is_empty());
        let name = path.relative().file_name().unwrap_or_default();
        let folder = self.lookup(above.unwrap_or(Path::new(".")), directory_flags());
        folder
            .and_then(|folder| unlinkat(&folder, name, UnlinkatFlags::NoRemoveDir))
            .map_err(failed)
    }

    /// Frees the name of a folder at the top of the workspace. Anything else with this name is
    /// renamed.
    ///
    /// # Errors
    /// Fails if it cannot be renamed.
    pub fn free_folder_name(&self, name: &str) -> Result<(), FsError> {
        let there = fstatat(&self.root, name, AtFlags::AT_SYMLINK_NOFOLLOW);
        let done = match there {
            Ok(found) if special_kind(&found) == Some(FileKind::Directory) => Ok(()),
            Ok(_) => {
                let aside = |nth: usize| {
                    let to = format!("{name}.{nth}");
                    let flags = RenameFlags::RENAME_NOREPLACE;
                    renameat2(&self.root, name, &self.root, to.as_str(), flags)
                };
                let moved = (1..=NAMES_MAX).map(aside).find(|done| *done != Err(Errno::EEXIST));
                moved.unwrap_or(Err(Errno::EEXIST))
            }
            Err(Errno::ENOENT) => Ok(()),
            Err(errno) => Err(errno),
        };
        let path = WorkspacePath::parse(name).unwrap_or_else(|_| WorkspacePath::root());
        done.map_err(|errno| FsError::Write { path, source: errno.into() })
    }

    /// Lists a folder, or the single named file. No link is followed. Entries that disappear
    /// meanwhile are left out.
    ///
    /// # Errors
    /// Fails if the path is missing or lies outside.
    pub fn list(&self, path: &WorkspacePath, reach: ListOptions) -> Result<Listing, FsError> {
        let failed = |errno| match errno {
            Errno::ENOENT => FsError::Missing { path: path.clone() },
            errno => path_error(path, errno, |path, source| FsError::Read { path, source }),
        };
        let mut listing = Listing::default();
        let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let status = self.lookup(path.relative(), flags).and_then(fstat).map_err(failed)?;
        if special_kind(&status) != Some(FileKind::Directory) {
            listing.entries.push(entry(path.clone(), &status));
            return Ok(listing);
        }
        // Folders are kept by path, since a program could create more folders than there are
        // handles.
        let mut open = vec![(path.clone(), reach.depth)];
        let mut looked_at = 0;
        while let Some((path, depth)) = open.pop() {
            let Ok(folder) = self.lookup(path.relative(), directory_flags()) else {
                listing.cut = true;
                continue;
            };
            let mut below = Vec::new();
            for name in names(&folder, &mut listing.cut) {
                if looked_at >= reach.entries_max {
                    listing.cut = true;
                    return Ok(listing);
                }
                let (Ok(inside), Ok(status)) = (
                    WorkspacePath::parse(&format!("{path}/{name}")),
                    fstatat(&folder, name.as_str(), AtFlags::AT_SYMLINK_NOFOLLOW),
                ) else {
                    listing.cut = true;
                    looked_at += 1;
                    continue;
                };
                looked_at += 1;
                let found = entry(inside, &status);
                let is_closed = depth <= 1 || (reach.is_closed)(&found.path, &name);
                if found.kind == Some(FileKind::Directory) {
                    listing.closed += usize::from(is_closed);
                    if !is_closed {
                        below.push((found.path.clone(), depth - 1));
                    }
                }
                listing.entries.push(found);
            }
            open.extend(below.into_iter().rev());
        }
        Ok(listing)
    }

    /// Opens the directory with these names. Creates missing ones.
    fn make_folder(&self, names: &[&str]) -> nix::Result<OwnedFd> {
        let mut reached = PathBuf::from(".");
        let mut folder = self.lookup(&reached, directory_flags())?;
        for name in names {
            reached.push(name);
            // Starts at the root each time, since a directory reached earlier may have been
            // moved.
            folder = match self.lookup(&reached, directory_flags()) {
                Err(Errno::ENOENT) => {
                    match mkdirat(&folder, *name, Mode::from_bits_truncate(0o755)) {
                        Ok(()) | Err(Errno::EEXIST) => {}
                        Err(errno) => return Err(errno),
                    }
                    self.lookup(&reached, directory_flags())?
                }
                other => other?,
            };
        }
        Ok(folder)
    }

    fn lookup(&self, path: &Path, flags: OFlag) -> nix::Result<OwnedFd> {
        match self.lookup {
            Lookup::Kernel => {
                let resolve = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS;
                let how = OpenHow::new().flags(flags).resolve(resolve);
                // The kernel cannot tell whether a rename that happened
                // meanwhile led the lookup out, and asks to repeat it.
                let mut answers = (0..=RETRIES).map(|_| openat2(&self.root, path, how));
                let undisturbed = |answer: &nix::Result<OwnedFd>| {
                    !matches!(answer, Err(Errno::EAGAIN | Errno::EINTR))
                };
                answers.find(undisturbed).unwrap_or(Err(Errno::EAGAIN))
            }
            Lookup::Walk => walk(&self.root, path, flags),
        }
    }
}

/// Returns the names in a folder, sorted, up to the limit. Sets `cut` if some are missing.
fn names(folder: &OwnedFd, cut: &mut bool) -> Vec<String> {
    let opened = folder.try_clone().map_err(|_| Errno::EMFILE).and_then(Dir::from_fd);
    let Ok(mut opened) = opened else {
        *cut = true;
        return Vec::new();
    };
    let mut names = Vec::new();
    for (nth, found) in opened.iter().enumerate() {
        if nth >= NAMES_MAX {
            *cut = true;
            break;
        }
        match found.as_ref().ok().and_then(|entry| entry.file_name().to_str().ok()) {
            Some("." | "..") => {}
            Some(name) => names.push(name.to_owned()),
            None => *cut = true,
        }
    }
    names.sort_unstable();
    names
}

fn entry(path: WorkspacePath, status: &FileStat) -> FolderEntry {
    let kind = special_kind(status);
    let bytes = if kind.is_none() { status.st_size.cast_unsigned() } else { 0 };
    FolderEntry { path, kind, bytes, changed: (status.st_ctime, status.st_ctime_nsec) }
}

/// Opens a path name by name and follows no link.
fn walk(root: &OwnedFd, path: &Path, flags: OFlag) -> nix::Result<OwnedFd> {
    let none = Mode::empty();
    let mut reached = openat(root, ".", directory_flags(), none)?;
    let mut names = path.iter().filter(|name| *name != ".").peekable();
    while let Some(name) = names.next() {
        let flags = if names.peek().is_some() { directory_flags() } else { flags };
        reached = openat(&reached, name, flags | OFlag::O_NOFOLLOW, none).map_err(|errno| {
            // With O_DIRECTORY, a link is reported as not being a directory.
            let link = fstatat(&reached, name, AtFlags::AT_SYMLINK_NOFOLLOW)
                .is_ok_and(|status| special_kind(&status) == Some(FileKind::Link));
            if link { Errno::EXDEV } else { errno }
        })?;
    }
    Ok(reached)
}

/// A temporary file that replaces a file when complete. Dropping it before that removes it.
#[derive(Debug)]
pub struct AtomicFile {
    path: WorkspacePath,
    folder: OwnedFd,
    name: String,
    beside: CString,
    file: File,
    mode: Mode,
    is_kept: bool,
}

impl AtomicFile {
    /// Writes the next bytes.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), FsError> {
        self.file.write_all(bytes).map_err(|source| self.failed(source))
    }

    /// Replaces the target with this file.
    ///
    /// # Errors
    /// Fails if the file cannot be renamed. The target is then unchanged.
    pub fn commit(mut self) -> Result<(), FsError> {
        let kept = fchmod(&self.file, self.mode).and_then(|()| {
            renameat(&self.folder, self.beside.as_c_str(), &self.folder, self.name.as_str())
        });
        kept.map_err(|errno| self.failed(errno.into()))?;
        self.is_kept = true;
        Ok(())
    }

    fn failed(&self, source: io::Error) -> FsError {
        FsError::Write { path: self.path.clone(), source }
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.is_kept {
            // silent-ok: the failure has been reported already.
            let _ = unlinkat(&self.folder, self.beside.as_c_str(), UnlinkatFlags::NoRemoveDir);
        }
    }
}

/// Creates a temporary file in a folder. Returns it with its name.
pub(crate) fn create_temporary(folder: BorrowedFd<'_>) -> io::Result<(File, CString)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let unique = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = CString::new(format!(".automaton-{}-{unique}.tmp", std::process::id()))?;
    let flags =
        OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let file = openat(folder, name.as_c_str(), flags, Mode::S_IRUSR | Mode::S_IWUSR)?;
    Ok((file.into(), name))
}

fn directory_flags() -> OFlag {
    OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC
}

/// Returns the kind, or `None` for a regular file.
fn special_kind(status: &FileStat) -> Option<FileKind> {
    match SFlag::from_bits_truncate(status.st_mode & SFlag::S_IFMT.bits()) {
        SFlag::S_IFREG => None,
        SFlag::S_IFDIR => Some(FileKind::Directory),
        SFlag::S_IFLNK => Some(FileKind::Link),
        _ => Some(FileKind::Special),
    }
}

/// Converts the error of opening a path. `other` makes the error for unspecific causes.
fn path_error(
    path: &WorkspacePath,
    errno: Errno,
    other: impl FnOnce(WorkspacePath, io::Error) -> FsError,
) -> FsError {
    let path = path.clone();
    match errno {
        Errno::EXDEV | Errno::ELOOP => FsError::Escapes { path },
        Errno::ENXIO => FsError::NotAFile { path, kind: FileKind::Special },
        errno => other(path, errno.into()),
    }
}

//! The contents of files, each once, under the SHA-256 of its bytes.
//!
//! The folder lies in the home, where the sandbox does not reach. A content is never a hard link
//! to a file of the workspace: a command could change it there. Where the file system can share
//! blocks a large file is cloned, which costs no room.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::manifest::is_object_name;

/// Files up to this size are read at once, in bytes.
const SMALL: u64 = 1 << 20;
/// Bytes that are read at a time of a larger one.
const CHUNK: usize = 1 << 20;
/// Blocks of zeros of this size become holes.
const HOLE: usize = 1 << 16;
/// The name of what is being written.
const PARTIAL: &str = "partial";

/// A content that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredContent {
    pub(super) hash: String,
    pub(super) bytes: u64,
    /// Whether it was not there before.
    pub(super) is_new: bool,
}

/// The folder of contents.
#[derive(Debug)]
pub(super) struct ContentStore {
    folder: PathBuf,
}

impl ContentStore {
    /// Opens the folder, which is made if there is none.
    pub(super) fn open(folder: PathBuf) -> io::Result<Self> {
        make_folder(&folder)?;
        Ok(Self { folder })
    }

    pub(super) fn path_of(&self, hash: &str) -> PathBuf {
        let (shelf, rest) = hash.split_at_checked(2).unwrap_or((hash, ""));
        self.folder.join(shelf).join(rest)
    }

    /// Stores what a file holds, at most `bytes_max` bytes of it. Nothing is stored of a file
    /// that has more.
    pub(super) fn add(&self, file: File, bytes_max: u64) -> io::Result<Option<StoredContent>> {
        let size = file.metadata()?.len();
        if size > bytes_max {
            return Ok(None);
        }
        if size > SMALL {
            return self.add_large(file, bytes_max);
        }
        let mut content = Vec::new();
        // One that grew meanwhile is as long as it was.
        (&file).take(size).read_to_end(&mut content)?;
        let hash = hex(&Sha256::digest(&content));
        let path = self.path_of(&hash);
        let is_new = !path.try_exists()?;
        if is_new {
            let partial = self.folder.join(PARTIAL);
            let mut out = create(&partial)?;
            out.write_all(&content)?;
            self.put(&partial, &path)?;
        }
        Ok(Some(StoredContent { hash, bytes: content.len() as u64, is_new }))
    }

    fn add_large(&self, file: File, bytes_max: u64) -> io::Result<Option<StoredContent>> {
        let partial = self.folder.join(PARTIAL);
        let mut out = create(&partial)?;
        let (hash, bytes) = if clone_blocks(&file, &out) {
            // Nobody writes to the clone, so that what is hashed is what is stored.
            out.rewind()?;
            copy_hashed(&out, None, bytes_max)?
        } else {
            copy_hashed(&file, Some(&out), bytes_max)?
        };
        if bytes > bytes_max {
            fs::remove_file(&partial)?;
            return Ok(None);
        }
        let path = self.path_of(&hash);
        let is_new = !path.try_exists()?;
        match is_new {
            true => self.put(&partial, &path)?,
            false => fs::remove_file(&partial)?,
        }
        Ok(Some(StoredContent { hash, bytes, is_new }))
    }

    fn put(&self, partial: &Path, path: &Path) -> io::Result<()> {
        match fs::rename(partial, path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_folder(path.parent().unwrap_or(&self.folder))?;
                fs::rename(partial, path)
            }
            done => done,
        }
    }

    /// Writes a content into a file, and checks it on the way.
    ///
    /// # Errors
    /// When it is not there or is damaged, or the file cannot be written.
    pub(super) fn copy_to(&self, hash: &str, out: &File) -> io::Result<u64> {
        let content = File::open(self.path_of(hash))?;
        let (found, bytes) = if clone_blocks(&content, out) {
            copy_hashed(&content, None, u64::MAX)?
        } else {
            copy_hashed(&content, Some(out), u64::MAX)?
        };
        if found != hash {
            let what = "its copy in the snapshot is damaged";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        Ok(bytes)
    }

    /// Deletes every content that is not named, and what was left half-written. Returns the
    /// bytes that are deleted.
    pub(super) fn keep_only(&self, named: &BTreeSet<String>) -> io::Result<u64> {
        let mut freed: u64 = 0;
        for shelf in fs::read_dir(&self.folder)? {
            let shelf = shelf?;
            if !shelf.file_type()?.is_dir() {
                fs::remove_file(shelf.path())?;
                continue;
            }
            for object in fs::read_dir(shelf.path())? {
                let object = object?;
                let name = [shelf.file_name(), object.file_name()].map(|it| it.into_string());
                let [Ok(start), Ok(rest)] = name else { continue };
                let name = start + &rest;
                if is_object_name(&name) && !named.contains(&name) {
                    freed = freed.saturating_add(object.metadata()?.len());
                    fs::remove_file(object.path())?;
                }
            }
        }
        Ok(freed)
    }
}

/// Returns the hash of all that a file holds.
pub(super) fn hash_of(file: &File) -> io::Result<String> {
    Ok(copy_hashed(file, None, u64::MAX)?.0)
}

pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Has a file share the blocks of another one, where the file system can do that.
fn clone_blocks(from: &File, to: &File) -> bool {
    // SAFETY: both are open files, and the call reads and writes nothing of our memory.
    unsafe { libc::ioctl(to.as_raw_fd(), libc::FICLONE, from.as_raw_fd()) == 0 }
}

/// Reads to the end, or until there is more than `bytes_max`; writes what it reads with holes for
/// zeros. Returns the hash and the number of bytes.
fn copy_hashed(mut from: &File, to: Option<&File>, bytes_max: u64) -> io::Result<(String, u64)> {
    let mut hash = Sha256::new();
    let mut chunk = vec![0_u8; CHUNK];
    let mut bytes: u64 = 0;
    loop {
        let read = match from.read(&mut chunk) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        let Some(filled) = chunk.get(..read).filter(|filled| !filled.is_empty()) else { break };
        hash.update(filled);
        bytes = bytes.saturating_add(read as u64);
        if bytes > bytes_max {
            break;
        }
        if let Some(out) = to {
            write_with_holes(out, filled)?;
        }
    }
    if let Some(out) = to {
        // Zeros at the end are a hole, too.
        out.set_len(bytes)?;
    }
    Ok((hex(&hash.finalize()), bytes))
}

fn write_with_holes(mut out: &File, bytes: &[u8]) -> io::Result<()> {
    for block in bytes.chunks(HOLE) {
        if block.iter().any(|byte| *byte != 0) {
            out.write_all(block)?;
        } else {
            let over = i64::try_from(block.len()).map_err(io::Error::other)?;
            out.seek(SeekFrom::Current(over))?;
        }
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // silent-ok: a string takes what is written to it.
        write!(text, "{byte:02x}").ok();
    }
    text
}

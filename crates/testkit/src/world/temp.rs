//! A directory that is removed with the value that holds it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, io, process};

use super::WorldError;

/// The most names that are tried. Others can only be left over from processes with the same id.
const NAMES_MAX: u32 = 10_000;

/// A new, empty directory that only its owner can enter. Removed on drop.
#[derive(Debug)]
pub struct TempDir(PathBuf);

impl TempDir {
    /// Creates a directory in the system's directory for temporary files.
    ///
    /// # Errors
    /// Fails if it cannot be created.
    pub fn new() -> Result<Self, WorldError> {
        Self::below(&env::temp_dir())
    }

    /// Creates a directory in memory if possible, for files that are synced often and need not
    /// last.
    ///
    /// # Errors
    /// Fails if it cannot be created.
    pub fn in_memory() -> Result<Self, WorldError> {
        Self::below(Path::new("/dev/shm")).or_else(|_| Self::new())
    }

    fn below(parent: &Path) -> Result<Self, WorldError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mut path = parent.to_owned();
        for _ in 0..NAMES_MAX {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            path = parent.join(format!("automaton-lab-{}-{number}", process::id()));
            match make(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(WorldError::Make { path, source }),
            }
        }
        Err(WorldError::Make { path, source: io::ErrorKind::AlreadyExists.into() })
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

fn make(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(path)
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // silent-ok: leftovers in the temporary directory harm nobody.
        drop(fs::remove_dir_all(&self.0));
    }
}

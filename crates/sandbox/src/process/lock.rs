//! A lock file that admits one process at a time and is released when its holder dies.
//!
//! The file is never removed, since removing it would let two processes lock two files of the
//! same name.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use automaton_core::error::Classified;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use thiserror::Error;

/// The reason why a lock was not taken.
#[derive(Debug, Error, Classified)]
pub enum LockError {
    /// Another process has it.
    #[error("{} is locked by {}", path.display(), holder_text(*holder))]
    #[class(User)]
    Held {
        /// The lock file.
        path: PathBuf,
        /// The process id in the file, if it is readable.
        holder: Option<i32>,
    },
    /// The lock file could not be opened, locked or written.
    #[error("cannot use the lock file {}", path.display())]
    #[class(Internal)]
    File {
        /// The lock file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

fn holder_text(holder: Option<i32>) -> String {
    holder.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

/// A held lock. Dropping it, or the end of the process, releases it.
#[derive(Debug)]
pub struct LockGuard {
    _lock: Flock<File>,
}

/// Locks a file and writes our process id into it. Creates the file if it is missing. Does not
/// wait.
///
/// # Errors
/// Fails if another process has the lock, or the file cannot be used.
pub fn lock(path: &Path) -> Result<LockGuard, LockError> {
    let failed = |source| LockError::File { path: path.to_owned(), source };
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(path).map_err(failed)?;
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(mut held) => {
            let mut note = || -> io::Result<()> {
                held.set_len(0)?;
                held.rewind()?;
                writeln!(held, "{}", std::process::id())
            };
            note().map_err(failed)?;
            Ok(LockGuard { _lock: held })
        }
        Err((file, Errno::EWOULDBLOCK)) => {
            let mut text = String::new();
            let holder = file.take(32).read_to_string(&mut text).ok();
            let holder = holder.and_then(|_| text.trim().parse().ok());
            Err(LockError::Held { path: path.to_owned(), holder })
        }
        Err((_, errno)) => Err(failed(errno.into())),
    }
}

//! Closes our own processes to inspection.
//!
//! Must be called before any secret is read and before any other thread runs.

use std::io;

use automaton_core::error::Classified;
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::stat::{Mode, umask};
use thiserror::Error;

use crate::plan::NO_CORES;

/// A protection of this process could not be set.
#[derive(Debug, Error, Classified)]
#[class(Internal)]
pub enum HardenError {
    /// Debuggers of the same user can still attach to this process.
    #[error("cannot close this process to debuggers")]
    Dumpable(#[source] io::Error),
    /// The limit of open files could not be raised.
    #[error("cannot let this process open as many files as it may at most")]
    OpenFiles(#[source] io::Error),
    /// Core dumps could not be forbidden.
    #[error("cannot forbid core dumps of this process")]
    Core(#[source] io::Error),
}

/// Closes this process to debuggers of the same user, forbids core dumps, and makes new files
/// private to their owner. Raises the limit of open files to its maximum. Descriptors that are in
/// transit between processes count for the whole user, including sandboxed programs, and a
/// process with a low limit could then pass none.
///
/// # Errors
/// Fails if the kernel refuses. Then no secret may be loaded.
pub fn harden() -> Result<(), HardenError> {
    prctl::set_dumpable(false).map_err(|errno| HardenError::Dumpable(errno.into()))?;
    setrlimit(Resource::RLIMIT_CORE, NO_CORES, NO_CORES)
        .map_err(|errno| HardenError::Core(errno.into()))?;
    let most = getrlimit(Resource::RLIMIT_NOFILE).map(|(_, most)| most);
    most.and_then(|most| setrlimit(Resource::RLIMIT_NOFILE, most, most))
        .map_err(|errno| HardenError::OpenFiles(errno.into()))?;
    umask(Mode::S_IRWXG | Mode::S_IRWXO);
    Ok(())
}

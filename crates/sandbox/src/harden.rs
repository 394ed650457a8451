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

/// A protection of our own process that could not be set.
#[derive(Debug, Error, Classified)]
#[class(Internal)]
pub enum HardenError {
    /// The process stays open to debuggers of the same user.
    #[error("cannot close this process to debuggers")]
    Dumpable(#[source] io::Error),
    /// The process may open few files.
    #[error("cannot let this process open as many files as it may at most")]
    OpenFiles(#[source] io::Error),
    /// The process may leave its memory in a file.
    #[error("cannot forbid core dumps of this process")]
    Core(#[source] io::Error),
}

/// Makes this process invisible to debuggers of the same user, forbids core
/// dumps, and makes new files private to their owner. Lets it open as many files as it may at
/// all: descriptors under way between processes count for all of a user together, those of
/// sandboxed programs too, and whoever may open few cannot pass any then.
///
/// # Errors
///
/// When the kernel refuses; then no secret may be loaded.
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

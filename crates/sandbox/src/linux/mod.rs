//! The kernel mechanisms, one file each.
//!
//! Everything here runs in the helper, in single-threaded processes. It must never be called from
//! the launching process.

pub(crate) mod caps;
pub(crate) mod cgroup;
pub(crate) mod features;
pub(crate) mod helper;
pub(crate) mod init;
pub(crate) mod landlock;
pub(crate) mod mount;
pub(crate) mod ns;
pub(crate) mod own_user;
pub(crate) mod program;
pub(crate) mod rlimit;
pub(crate) mod seccomp;
pub(crate) mod serve;
mod syscalls;
pub(crate) mod watch;

use std::fmt;

use crate::report::StepFailure;

/// Names the step that an error belongs to.
pub(crate) trait StepContext<T> {
    /// Adds the step, as an infinitive with its object.
    fn step(self, step: impl fmt::Display) -> Result<T, StepFailure>;
}

impl<T, E: std::error::Error + 'static> StepContext<T> for Result<T, E> {
    fn step(self, step: impl fmt::Display) -> Result<T, StepFailure> {
        self.map_err(|error| StepFailure {
            step: step.to_string(),
            problem: automaton_core::error::chain(&error).to_string(),
        })
    }
}

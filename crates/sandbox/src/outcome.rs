//! Pure: the outcome of a run.
//!
//! It must never guess: an end that the helper did not report is an error of the launch, not an
//! outcome.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::capture::CapturedOutput;

/// The outcome of a run, after its whole process tree is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOutcome {
    /// The program's exit status.
    pub status: ExitStatus,
    /// The captured standard output.
    pub stdout: CapturedOutput,
    /// The captured standard error.
    pub stderr: CapturedOutput,
    /// The time from the start of the program to the end of its tree.
    pub duration: Duration,
    /// The mechanism that held the memory and process limits.
    pub enforcement: Enforcement,
}

/// The exit status of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, derive_more::Display)]
#[serde(rename_all = "snake_case")]
pub enum ExitStatus {
    /// The program exited with this code.
    #[display("exited with code {_0}")]
    Exited(i32),
    /// This signal ended the program. The sandbox did not send it.
    #[display("ended by signal {_0}")]
    Signalled(i32),
    /// The program reached its wall-clock limit.
    #[display("stopped at its time limit")]
    TimedOut,
    /// The tree used more memory than its limit.
    #[display("stopped at its memory limit")]
    MemoryExceeded,
    /// The tree had more processes than its limit. Occurs only without a cgroup: with one,
    /// starting another process fails and the run continues.
    #[display("stopped at its process limit")]
    ProcessesExceeded,
    /// The run's owner ended the program.
    #[display("stopped by its owner")]
    Killed,
}

impl ExitStatus {
    /// Returns true if the program exited with code 0.
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Exited(0))
    }

    /// Returns true if the program exited by itself.
    #[must_use]
    pub const fn exited_by_itself(self) -> bool {
        matches!(self, Self::Exited(_))
    }

    /// Returns the exit code that shells and `timeout` use for it.
    #[must_use]
    pub const fn code(self) -> i32 {
        match self {
            Self::Exited(code) => code,
            Self::Signalled(signal) => 128 + signal,
            Self::TimedOut => 124,
            Self::MemoryExceeded | Self::ProcessesExceeded | Self::Killed => 137,
        }
    }
}

/// The current resource usage of a session. Values are `None` without a control group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionUsage {
    /// The memory of all its processes and of its files in memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// The number of processes and threads, including the namespaces' first process.
    pub processes: Option<u64>,
    /// The processor time of all its programs. On cgroup v1 it is known only if processors are
    /// limited.
    pub cpu: Option<Duration>,
}

/// The mechanism that holds the limits of memory and processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, derive_more::Display)]
#[serde(rename_all = "snake_case")]
pub enum Enforcement {
    /// The kernel, over the whole tree, by a control group.
    #[display("cgroup {version}")]
    Cgroup {
        /// The cgroup interface.
        version: CgroupVersion,
    },
    /// The kernel for each process, and a watcher that ends the tree when its sum is too large.
    /// Weaker: a burst between two checks is not stopped.
    #[display("rlimits")]
    Rlimits,
}

/// The version of the control group interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, derive_more::Display)]
#[serde(rename_all = "snake_case")]
pub enum CgroupVersion {
    /// One hierarchy for each controller.
    #[display("v1")]
    V1,
    /// One hierarchy for all.
    #[display("v2")]
    V2,
}

//! Pure: how a run ended.
//!
//! Must never guess: what the helper did not report is an error of the launch,
//! not an outcome.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::capture::CapturedOutput;

/// All that is known about a run after its whole tree of processes is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOutcome {
    /// How the program ended.
    pub status: ExitStatus,
    /// What it wrote to its standard output.
    pub stdout: CapturedOutput,
    /// What it wrote to its standard error.
    pub stderr: CapturedOutput,
    /// From the start of the program to the end of its tree.
    pub duration: Duration,
    /// What held the memory and process limits.
    pub enforcement: Enforcement,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, derive_more::Display)]
#[serde(rename_all = "snake_case")]
pub enum ExitStatus {
    /// By itself, with this code.
    #[display("exited with code {_0}")]
    Exited(i32),
    /// By this signal, which was not sent by the sandbox.
    #[display("ended by signal {_0}")]
    Signalled(i32),
    /// Its wall-clock limit was reached.
    #[display("stopped at its time limit")]
    TimedOut,
    /// Its tree used more memory than its limit.
    #[display("stopped at its memory limit")]
    MemoryExceeded,
    /// Its tree had more processes than its limit. Only without a cgroup: with
    /// one, starting a process too many fails inside and the run goes on.
    #[display("stopped at its process limit")]
    ProcessesExceeded,
    /// Its owner ended it.
    #[display("stopped by its owner")]
    Killed,
}

impl ExitStatus {
    /// Whether the program ended by itself with code 0.
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Exited(0))
    }

    /// Whether nobody ended it.
    #[must_use]
    pub const fn is_by_itself(self) -> bool {
        matches!(self, Self::Exited(_))
    }

    /// The code that shells and `timeout` have for it.
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

/// What a session uses at one moment. Unknown where no control group counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionUsage {
    /// Memory of all its processes and of its files in memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// Processes and threads, the first process of the namespaces among them.
    pub processes: Option<u64>,
    /// Processor time of all that ran in it. On the first interface of control groups it is
    /// known where processors are limited.
    pub cpu: Option<Duration>,
}

/// What holds the limits of memory and processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, derive_more::Display)]
#[serde(rename_all = "snake_case")]
pub enum Enforcement {
    /// The kernel, over the whole tree, by a control group.
    #[display("cgroup {version}")]
    Cgroup {
        /// Which of the two interfaces.
        version: CgroupVersion,
    },
    /// The kernel per process, and a watcher that ends the tree when its sum
    /// is too large. Weaker: a burst between two looks is not stopped.
    #[display("rlimits")]
    Rlimits,
}

/// The interface through which control groups are set up.
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

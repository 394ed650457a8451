//! What this machine gives a sandbox.
//!
//! The probe tries each feature in a process of the helper, as a launch would,
//! since what a kernel permits depends on its configuration, on the container
//! around us and on the program that asks. It must never report a feature as
//! available that was not tried.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::launch::Launcher;
use crate::outcome::CgroupVersion;

/// Whether the machine gives a feature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Feature<T = ()> {
    /// It does.
    Available(T),
    /// It does not, and this is what was met.
    Missing(String),
}

impl<T> Feature<T> {
    /// Whether the machine gives it.
    #[must_use]
    pub const fn is_available(&self) -> bool {
        matches!(self, Self::Available(_))
    }

    /// What was met instead of it.
    pub(crate) fn missing(&self) -> Option<&str> {
        match self {
            Self::Available(_) => None,
            Self::Missing(reason) => Some(reason),
        }
    }
}

/// All features that a plan depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// A user namespace in which the caller is mapped to 0.
    pub user_namespace: Feature,
    /// A mount namespace in which mounts work.
    pub mount_namespace: Feature,
    /// `open_tree`, `move_mount` and `mount_setattr`.
    pub mount_interface: Feature,
    /// A user of the host for each workspace, to whom files can be lent. Needed by nothing:
    /// without it commands are to the host who launched them.
    pub own_user: Feature,
    /// A process namespace.
    pub process_namespace: Feature,
    /// A process file system of that namespace.
    pub private_proc: Feature,
    /// A network namespace.
    pub network_namespace: Feature,
    /// An IPC namespace.
    pub ipc_namespace: Feature,
    /// A host name namespace.
    pub host_name_namespace: Feature,
    /// The version of Landlock.
    pub landlock_abi: Feature<i32>,
    /// Seccomp filters, on an architecture whose system calls we know.
    pub seccomp: Feature,
    /// Where control groups for memory and processes can be made.
    pub cgroup: Feature<CgroupBase>,
}

/// The groups below which a run gets its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CgroupBase {
    /// One directory in each of two hierarchies.
    V1 {
        /// In the memory controller's.
        memory: PathBuf,
        /// In the process controller's.
        pids: PathBuf,
        /// In the two of processors: where their time is limited, and where it is counted.
        cpu: Option<[PathBuf; 2]>,
    },
    /// One directory for all controllers.
    V2 {
        /// In the unified hierarchy.
        parent: PathBuf,
        /// Whether processors are limited there; their time is counted in any case.
        cpu: bool,
    },
}

impl CgroupBase {
    /// Which interface it belongs to.
    #[must_use]
    pub const fn version(&self) -> CgroupVersion {
        match self {
            Self::V1 { .. } => CgroupVersion::V1,
            Self::V2 { .. } => CgroupVersion::V2,
        }
    }

    /// Whether a run can be held to a number of processors.
    #[must_use]
    pub const fn limits_cpus(&self) -> bool {
        matches!(self, Self::V1 { cpu: Some(_), .. } | Self::V2 { cpu: true, .. })
    }

    /// The same for a run that may use all processors: each hierarchy that it needs not be
    /// in saves it time.
    #[must_use]
    pub(crate) fn without_cpus(mut self) -> Self {
        match &mut self {
            Self::V1 { cpu, .. } => *cpu = None,
            Self::V2 { cpu, .. } => *cpu = false,
        }
        self
    }

    /// The directories in which each run gets one of its own.
    #[must_use]
    pub fn folders(&self) -> Vec<&Path> {
        let mut folders: Vec<&Path> = match self {
            Self::V1 { memory, pids, cpu } => [memory, pids]
                .into_iter()
                .chain(cpu.iter().flatten())
                .map(PathBuf::as_path)
                .collect(),
            Self::V2 { parent, .. } => vec![parent],
        };
        // Controllers can share a hierarchy.
        folders.sort_unstable();
        folders.dedup();
        folders
    }
}

impl Probe {
    /// A machine that gives nothing, for this reason.
    #[must_use]
    pub fn nothing(reason: &str) -> Self {
        let missing = || Feature::Missing(reason.to_owned());
        Self {
            user_namespace: missing(),
            mount_namespace: missing(),
            mount_interface: missing(),
            own_user: missing(),
            process_namespace: missing(),
            private_proc: missing(),
            network_namespace: missing(),
            ipc_namespace: missing(),
            host_name_namespace: missing(),
            landlock_abi: Feature::Missing(reason.to_owned()),
            seccomp: missing(),
            cgroup: Feature::Missing(reason.to_owned()),
        }
    }
}

/// Tries every feature. Takes some milliseconds; the answer holds until the
/// machine's configuration changes. Also removes control groups that a killed
/// launcher left behind.
#[must_use]
pub fn probe(launcher: &Launcher) -> Probe {
    probe_with(launcher, None)
}

/// The same, and whether the files of this workspace can be lent to a user of its own; else
/// it is any place's files.
#[must_use]
pub fn probe_with(launcher: &Launcher, workspace: Option<&Path>) -> Probe {
    launcher
        .probe_features(workspace)
        .unwrap_or_else(|error| Probe::nothing(&automaton_core::error::chain(&error).to_string()))
}

//! The features that this machine provides for a sandbox.
//!
//! The probe tries each feature in a process of the helper, as a launch would. What a kernel
//! permits depends on its configuration, on a surrounding container and on the calling program.
//! The probe must never report a feature as available that was not tried.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::launch::Launcher;
use crate::outcome::CgroupVersion;

/// The availability of a feature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Feature<T = ()> {
    /// The machine provides it.
    Available(T),
    /// The machine lacks it, for this reason.
    Missing(String),
}

impl<T> Feature<T> {
    /// Returns true if the machine provides the feature.
    #[must_use]
    pub const fn is_available(&self) -> bool {
        matches!(self, Self::Available(_))
    }

    /// Returns the reason why it is missing.
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
    /// A separate host user for each workspace, with mapped files. Optional: without it, commands
    /// run as the launching host user.
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
    /// Seccomp filters, on an architecture whose system calls are known.
    pub seccomp: Feature,
    /// A place for control groups with memory and process limits.
    pub cgroup: Feature<CgroupBase>,
}

/// The parent groups in which each run gets its own group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CgroupBase {
    /// One directory in each of two hierarchies.
    V1 {
        /// The directory of the memory controller.
        memory: PathBuf,
        /// The directory of the process controller.
        pids: PathBuf,
        /// The directories where processor time is limited, and where it is counted.
        cpu: Option<[PathBuf; 2]>,
    },
    /// One directory for all controllers.
    V2 {
        /// The directory in the unified hierarchy.
        parent: PathBuf,
        /// True if processor time is limited there. It is counted in any case.
        cpu: bool,
    },
}

impl CgroupBase {
    /// Returns the interface version.
    #[must_use]
    pub const fn version(&self) -> CgroupVersion {
        match self {
            Self::V1 { .. } => CgroupVersion::V1,
            Self::V2 { .. } => CgroupVersion::V2,
        }
    }

    /// Returns true if a run can be limited to a number of processors.
    #[must_use]
    pub const fn limits_cpus(&self) -> bool {
        matches!(self, Self::V1 { cpu: Some(_), .. } | Self::V2 { cpu: true, .. })
    }

    /// Returns the base without processor limits. Each hierarchy that a run does not enter saves
    /// time.
    #[must_use]
    pub(crate) fn without_cpus(mut self) -> Self {
        match &mut self {
            Self::V1 { cpu, .. } => *cpu = None,
            Self::V2 { cpu, .. } => *cpu = false,
        }
        self
    }

    /// Returns the directories in which each run gets its own.
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
    /// Returns a machine without any feature, for this reason.
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

/// Tries every feature. Takes some milliseconds. The result holds until the machine's
/// configuration changes. Also removes control groups of killed launchers.
#[must_use]
pub fn probe(launcher: &Launcher) -> Probe {
    probe_with(launcher, None)
}

/// Tries every feature, and whether this workspace's files can be mapped to a separate user.
/// Without a workspace, any place counts.
#[must_use]
pub fn probe_with(launcher: &Launcher, workspace: Option<&Path>) -> Probe {
    launcher
        .probe_features(workspace)
        .unwrap_or_else(|error| Probe::nothing(&automaton_core::error::chain(&error).to_string()))
}

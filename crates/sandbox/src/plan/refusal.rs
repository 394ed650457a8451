//! Pure: why a run is refused before anything is started.
//!
//! Must never be caught to try again with less protection.

use std::fmt;
use std::path::PathBuf;

use automaton_core::error::{Classified, Kind};
use thiserror::Error;

/// Why nothing will be run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The machine lacks what one of the layers is made of.
    #[error("the sandbox needs {feature}, which this machine does not give: {reason}")]
    MissingFeature {
        /// What is missing.
        feature: FeatureName,
        /// What the probe met.
        reason: String,
    },
    /// There is nothing to run.
    #[error("the command is empty")]
    NoProgram,
    /// An argument or variable cannot be passed to a program.
    #[error("the command or its environment contains a NUL byte")]
    NulByte,
    /// Arguments and variables are too long.
    #[error("the command and its environment have {bytes} bytes; {bytes_max} are possible")]
    TooLong {
        /// Their sum.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// A variable's name is empty or contains an equals sign.
    #[error("{name:?} cannot be the name of an environment variable")]
    VariableName {
        /// The name.
        name: String,
    },
    /// A host path is not absolute.
    #[error("the host path {} is not absolute", path.display())]
    RelativePath {
        /// The path.
        path: PathBuf,
    },
    /// A path inside is not absolute, not plain, or taken by the system.
    #[error("nothing can be bound at {} in the sandbox", path.display())]
    BindTarget {
        /// The path.
        path: PathBuf,
    },
    /// A descriptor's number inside is out of range or used twice.
    #[error("descriptor number {target} is out of range or used twice")]
    DescriptorNumber {
        /// The number.
        target: i32,
    },
}

impl Classified for Refusal {
    fn kind(&self) -> Kind {
        match self {
            Self::MissingFeature { .. } => Kind::Config,
            Self::NoProgram | Self::NulByte | Self::TooLong { .. } | Self::VariableName { .. } => {
                Kind::User
            }
            Self::RelativePath { .. } | Self::BindTarget { .. } | Self::DescriptorNumber { .. } => {
                Kind::Internal
            }
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::MissingFeature { feature, .. } => Some(feature.remedy().to_owned()),
            _ => None,
        }
    }
}

/// A feature of the kernel that a layer needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FeatureName {
    /// User namespaces for this user.
    UserNamespace,
    /// Mount namespaces.
    MountNamespace,
    /// The mount calls of Linux 5.12.
    MountInterface,
    /// Process namespaces.
    ProcessNamespace,
    /// A process file system of one's own.
    PrivateProc,
    /// Network namespaces.
    NetworkNamespace,
    /// IPC namespaces.
    IpcNamespace,
    /// Host name namespaces.
    HostNameNamespace,
    /// Landlock.
    Landlock,
    /// Seccomp filters.
    Seccomp,
}

impl FeatureName {
    /// One sentence on how to get it.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::UserNamespace => {
                "Permit user namespaces: sysctl user.max_user_namespaces above 0, \
                 kernel.unprivileged_userns_clone=1 on older Debian, and on Ubuntu an AppArmor \
                 profile with `userns` for this program; in a container, a seccomp profile that \
                 permits them."
            }
            Self::MountNamespace => {
                "Permit mounts in user namespaces: on Ubuntu an AppArmor profile with `userns` \
                 for this program; in a container, permit mount and pivot_root."
            }
            Self::MountInterface => "Use Linux 5.13 or later.",
            Self::PrivateProc => {
                "Run outside of a container, or in one whose /proc is not masked \
                 (Docker: --security-opt systempaths=unconfined)."
            }
            Self::ProcessNamespace
            | Self::NetworkNamespace
            | Self::IpcNamespace
            | Self::HostNameNamespace => {
                "Use a kernel with CONFIG_PID_NS, CONFIG_NET_NS, CONFIG_IPC_NS and CONFIG_UTS_NS, \
                 as every distribution's is."
            }
            Self::Landlock => {
                "Use Linux 5.13 or later with CONFIG_SECURITY_LANDLOCK, and name `landlock` in \
                 the kernel's `lsm=` parameter."
            }
            Self::Seccomp => "Use a kernel with CONFIG_SECCOMP_FILTER on x86_64 or aarch64.",
        }
    }
}

impl fmt::Display for FeatureName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UserNamespace => "user namespaces",
            Self::MountNamespace => "mount namespaces",
            Self::MountInterface => "the mount interface of Linux 5.12",
            Self::ProcessNamespace => "process namespaces",
            Self::PrivateProc => "a /proc of its own",
            Self::NetworkNamespace => "network namespaces",
            Self::IpcNamespace => "IPC namespaces",
            Self::HostNameNamespace => "host name namespaces",
            Self::Landlock => "Landlock",
            Self::Seccomp => "seccomp filters",
        })
    }
}

//! Pure: the specification of a run and its limits.
//!
//! A [`SandboxSpec`] says what to run, never how: [`crate::plan::plan`] turns it into ordered
//! steps. It must never carry a way to ask for less than the full protection. Outside of
//! `crate::drill`, which is in no product build, [`Defences`] can only be built complete.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The workspace's path inside, which is also the home directory.
pub const HOME_INSIDE: &str = "/root";

/// A program to run in the sandbox, its inputs and its limits.
#[derive(Debug, Clone)]
pub struct SandboxSpec {
    /// The program.
    pub program: Program,
    /// The writable host directory. It appears as `/root`, which is the working directory and
    /// `$HOME`. Without it `/root` is an empty read-only directory.
    pub workspace: Option<PathBuf>,
    /// Names of folders in the workspace that the program may only read. A missing one is
    /// created. If the name is not a folder, the launch fails.
    pub sealed: Vec<String>,
    /// Host files and directories that the program may read and execute.
    pub read_only: Vec<Bind>,
    /// Host directories that the program may also write: in `/usr/local`, which must exist on the
    /// host, or in places that the root itself does not use.
    pub kept: Vec<Bind>,
    /// Open descriptors that the program receives.
    pub inherit: Vec<Inherit>,
    /// The permitted sockets.
    pub network: Network,
    /// Variables added to the constructed environment. Nothing is inherited.
    pub env: Vec<(String, String)>,
    /// The limits of the program and its descendants.
    pub limits: RunLimits,
    /// The limits on captured output.
    pub capture: Capture,
    /// The whole standard input.
    pub stdin: Vec<u8>,
    /// The protection. It is complete, except in a drill.
    pub defences: Defences,
}

impl SandboxSpec {
    /// Creates a specification with no workspace, no network, default limits and full protection.
    #[must_use]
    pub fn new(program: Program) -> Self {
        Self {
            program,
            workspace: None,
            sealed: Vec::new(),
            read_only: Vec::new(),
            kept: Vec::new(),
            inherit: Vec::new(),
            network: Network::None,
            env: Vec::new(),
            limits: RunLimits::default(),
            capture: Capture::default(),
            stdin: Vec::new(),
            defences: Defences::default(),
        }
    }
}

/// A program to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A command line for `bash -c`, or for `sh -c` where there is no bash.
    Shell(String),
    /// A program and its arguments. A name without a slash is looked up in the `PATH` inside the
    /// sandbox.
    Argv(Vec<String>),
    /// No program yet. Programs are started later in the open sandbox, see [`crate::Session`].
    Later,
}

/// A program to start in a [`crate::Session`].
#[derive(Debug, Clone)]
pub struct SessionProgram {
    /// The program.
    pub program: Program,
    /// Variables added to the constructed environment.
    pub env: Vec<(String, String)>,
    /// The time from start to forced end.
    pub wall: Option<Duration>,
    /// The limits on captured output.
    pub capture: Capture,
    /// The whole standard input.
    pub stdin: Vec<u8>,
}

impl SessionProgram {
    /// Creates a program without its own time limit.
    #[must_use]
    pub fn new(program: Program) -> Self {
        let env = Vec::new();
        let stdin = Vec::new();
        Self { program, env, wall: None, capture: Capture::default(), stdin }
    }
}

/// A host path that is visible inside under another name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    /// The file or directory on the host. It must exist.
    pub host: PathBuf,
    /// Its absolute path inside.
    pub inside: PathBuf,
}

/// An open descriptor that the program receives under a chosen number.
///
/// Clones of the specification share the descriptor. To see the program's death at the other end,
/// drop the specification and the plan first.
#[derive(Debug, Clone)]
pub struct Inherit {
    /// The descriptor.
    pub descriptor: Arc<OwnedFd>,
    /// Its number inside: 3 to [`Inherit::TARGET_MAX`].
    pub target: i32,
}

impl Inherit {
    /// The highest number that a descriptor can have inside.
    pub const TARGET_MAX: i32 = 63;
}

/// The permitted sockets. A program never reaches another machine or the host directly: its
/// network namespace has only its own loopback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Network {
    /// Unix sockets only.
    #[default]
    None,
    /// Also IPv4 and IPv6 between the run's own processes, over a private loopback interface.
    /// Interfaces and routes can be listed.
    Loopback,
    /// As `Loopback`, and the run's owner listens on [`PROXY_INSIDE`]. The owner judges what goes
    /// through it.
    Served,
    /// As `Served`, and the address is an HTTP proxy, named in the environment.
    Proxied,
}

/// The port of the proxy inside, on 127.0.0.1.
pub const PROXY_PORT: u16 = 3128;
/// The proxy's URL inside.
pub const PROXY_INSIDE: &str = "http://127.0.0.1:3128";

/// The resource limits of a run. [`crate::Enforcement`] tells what holds the memory and process
/// limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunLimits {
    /// The time from start to forced end, or `None` for a service that its owner ends.
    pub wall: Option<Duration>,
    /// The memory of the whole tree, in bytes.
    pub memory_bytes: u64,
    /// The processes and threads of the whole tree.
    pub processes: u32,
    /// The processors that the whole tree may keep busy, or `None` for all. Only a control group
    /// enforces it: if [`crate::CgroupBase::limits_cpus`] is false, it has no effect.
    pub cpus: Option<u32>,
    /// The size of the private `/tmp`, in bytes. It counts as memory.
    pub tmp_bytes: u64,
    /// The largest file that the program can write, in bytes.
    pub file_bytes: u64,
    /// The open descriptors of each process.
    pub open_files: u32,
    /// The processor time of each process, rounded up to whole seconds. `Duration::MAX` for a
    /// service.
    pub cpu: Duration,
}

impl RunLimits {
    /// Returns the limits of a service that its owner ends: no time limits, the others as for one
    /// call.
    #[must_use]
    pub fn service() -> Self {
        Self { wall: None, cpu: Duration::MAX, ..Self::default() }
    }
}

impl Default for RunLimits {
    /// Returns the limits of one `exec` call.
    fn default() -> Self {
        Self {
            wall: Some(Duration::from_secs(120)),
            memory_bytes: 1 << 30,
            processes: 256,
            cpus: None,
            tmp_bytes: 256 << 20,
            file_bytes: 1 << 30,
            open_files: 1024,
            cpu: Duration::from_secs(120),
        }
    }
}

/// The limits on captured output for each stream. The middle is cut out, since the beginning and
/// the end tell most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capture {
    /// The bytes kept of standard output.
    pub stdout_bytes_max: usize,
    /// The bytes kept of standard error.
    pub stderr_bytes_max: usize,
}

impl Default for Capture {
    fn default() -> Self {
        Self { stdout_bytes_max: 64 << 10, stderr_bytes_max: 64 << 10 }
    }
}

/// One layer of the protection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Defence {
    /// A user namespace: nothing inside is privileged on the host.
    Users,
    /// A root of its own, in which the host's files do not exist.
    Files,
    /// A process namespace with its own `/proc`.
    Processes,
    /// A network namespace without a connection to the outside.
    Network,
    /// A namespace for System V IPC and message queues.
    Ipc,
    /// A namespace for the host's name.
    HostName,
    /// Landlock rules over files, TCP, signals and abstract sockets.
    Landlock,
    /// A list of permitted system calls.
    Seccomp,
    /// Gives up capabilities before the program starts.
    Capabilities,
    /// Gives up capabilities that executing a file could restore.
    BoundingSet,
    /// No privilege from set-user-id files or file capabilities.
    NoNewPrivileges,
    /// No further user namespaces.
    Nesting,
    /// Only the named descriptors.
    Descriptors,
    /// Only the constructed environment.
    Environment,
    /// The memory limit.
    MemoryLimit,
    /// The process limit.
    ProcessLimit,
    /// The size of `/tmp`.
    TmpLimit,
    /// The per-process limits: file size, open files, processor time.
    ResourceLimits,
}

impl Defence {
    /// Every layer.
    pub const ALL: [Self; 18] = [
        Self::Users,
        Self::Files,
        Self::Processes,
        Self::Network,
        Self::Ipc,
        Self::HostName,
        Self::Landlock,
        Self::Seccomp,
        Self::Capabilities,
        Self::BoundingSet,
        Self::NoNewPrivileges,
        Self::Nesting,
        Self::Descriptors,
        Self::Environment,
        Self::MemoryLimit,
        Self::ProcessLimit,
        Self::TmpLimit,
        Self::ResourceLimits,
    ];
}

/// The layers that are on: all of them, unless a drill switches some off to show which of them stops an
/// attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Defences {
    /// A bit for each layer that is off.
    off: u32,
}

impl Defences {
    /// Returns true if this layer is on.
    #[must_use]
    pub const fn has(self, defence: Defence) -> bool {
        self.off & (1 << defence as u8) == 0
    }

    #[cfg(feature = "drill")]
    pub(crate) fn except(off: &[Defence]) -> Self {
        Self { off: off.iter().fold(0, |mask, defence| mask | 1 << *defence as u8) }
    }
}

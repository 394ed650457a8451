//! Pure: what a caller wants to run, and under which limits.
//!
//! A [`SandboxSpec`] says what, never how: [`crate::plan::plan`] turns it into ordered
//! steps. It must never carry a way to ask for less than the full protection;
//! [`Defences`] can only be built complete outside of `crate::drill`, which is
//! in no product build.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Where the workspace appears inside, which is also the home directory.
pub const HOME_INSIDE: &str = "/root";

/// A program to run in the sandbox, what it may see and what it may use up.
#[derive(Debug, Clone)]
pub struct SandboxSpec {
    /// What to run.
    pub program: Program,
    /// The one host directory that the program may write. It appears as
    /// `/root`, which is the working directory and `$HOME`. Without it `/root`
    /// is an empty directory that cannot be written.
    pub workspace: Option<PathBuf>,
    /// Folders right in the workspace, by name, that the program may only read. One that is
    /// missing is made; what is no folder ends the launch.
    pub sealed: Vec<String>,
    /// Host files and directories that the program may read and execute.
    pub read_only: Vec<Bind>,
    /// Host directories that the program may write too, apart from the workspace: in
    /// `/usr/local`, which must exist on the host, or where the root itself has nothing.
    pub kept: Vec<Bind>,
    /// Open descriptors that the program receives.
    pub inherit: Vec<Inherit>,
    /// What the program may do with sockets.
    pub network: Network,
    /// Variables added to the constructed environment; nothing is inherited.
    pub env: Vec<(String, String)>,
    /// What the program and all that it starts may use up.
    pub limits: RunLimits,
    /// How much of the output is kept.
    pub capture: Capture,
    /// What the program reads on its standard input before it sees its end.
    pub stdin: Vec<u8>,
    /// The protection. Complete, except in the hands of a drill.
    pub defences: Defences,
}

impl SandboxSpec {
    /// A program with no workspace, no network, default limits, full defences.
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

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A command line for `bash -c`, or for `sh -c` where there is no bash.
    Shell(String),
    /// A program and its arguments. A name without a slash is looked up in the
    /// `PATH` inside the sandbox.
    Argv(Vec<String>),
    /// Nothing at first: tasks are started in it, beside each other, as long as it lives. See
    /// [`crate::Session`].
    Later,
}

/// A program to start in a [`crate::Session`], beside those that run there.
#[derive(Debug, Clone)]
pub struct SessionProgram {
    /// What to run.
    pub program: Program,
    /// Variables added to the constructed environment.
    pub env: Vec<(String, String)>,
    /// Time from start to forced end.
    pub wall: Option<Duration>,
    /// How much of the output is kept.
    pub capture: Capture,
    /// What it reads on its standard input before it sees its end.
    pub stdin: Vec<u8>,
}

impl SessionProgram {
    /// A program without a limit of time of its own.
    #[must_use]
    pub fn new(program: Program) -> Self {
        let (env, stdin) = (Vec::new(), Vec::new());
        Self { program, env, wall: None, capture: Capture::default(), stdin }
    }
}

/// A host path that can be read inside under another name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    /// The file or directory on the host. It must exist.
    pub host: PathBuf,
    /// Its absolute path inside.
    pub inside: PathBuf,
}

/// An open descriptor handed to the program under a chosen number.
///
/// Clones of the specification share the descriptor; whoever waits for the
/// other end to see the program's death drops specification and plan first.
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

/// What a program may do with sockets. Nothing ever reaches another machine
/// or the host: the network namespace has no interface but its own loopback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Network {
    /// Unix sockets only.
    #[default]
    None,
    /// Also IPv4 and IPv6 among the program's own processes, over a loopback
    /// interface that belongs to this run alone. Interfaces and routes can be listed.
    Loopback,
    /// The same, and on that interface one address, [`PROXY_INSIDE`], where the owner of the
    /// run listens. What goes through it is the owner's to judge.
    Served,
    /// The same, and the address is an HTTP proxy, named in the environment.
    Proxied,
}

/// The port of the proxy inside, on 127.0.0.1.
pub const PROXY_PORT: u16 = 3128;
/// The proxy's URL inside.
pub const PROXY_INSIDE: &str = "http://127.0.0.1:3128";

/// What a run may use up. See [`crate::Enforcement`] for what holds the
/// memory and process limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunLimits {
    /// Time from start to forced end; `None` for a service that its owner ends.
    pub wall: Option<Duration>,
    /// Memory of the whole tree, in bytes.
    pub memory_bytes: u64,
    /// Processes and threads of the whole tree.
    pub processes: u32,
    /// As many processors as the whole tree may keep busy; `None` for all of the machine's.
    /// Held by a control group alone: where [`crate::CgroupBase::limits_cpus`] says no, it
    /// is not held.
    pub cpus: Option<u32>,
    /// Size of the private `/tmp`, in bytes. It counts as memory.
    pub tmp_bytes: u64,
    /// The largest file that the program can write, in bytes.
    pub file_bytes: u64,
    /// Open descriptors of each process.
    pub open_files: u32,
    /// Processor time of each process, rounded up to whole seconds;
    /// `Duration::MAX` for a service.
    pub cpu: Duration,
}

impl RunLimits {
    /// The limits of a program that its owner ends: no limit of time, the
    /// others as for one call.
    #[must_use]
    pub fn service() -> Self {
        Self { wall: None, cpu: Duration::MAX, ..Self::default() }
    }
}

impl Default for RunLimits {
    /// The limits of one `exec` call.
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

/// How much of each output stream is kept. What is beyond is cut out of the
/// middle, since both the beginning and the end of an output tell most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capture {
    /// Bytes kept of the standard output.
    pub stdout_bytes_max: usize,
    /// Bytes kept of the standard error.
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
    /// A network namespace without any way out.
    Network,
    /// A namespace for System V IPC and message queues.
    Ipc,
    /// A namespace for the host's name.
    HostName,
    /// Landlock rules over files, TCP, signals and abstract sockets.
    Landlock,
    /// A list of permitted system calls.
    Seccomp,
    /// Capabilities given up before the program starts.
    Capabilities,
    /// Capabilities that executing a file could give back.
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

/// The layers that are on. All of them, unless a drill takes some away to
/// show which of them stops an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Defences {
    /// A bit for each layer that is off.
    off: u32,
}

impl Defences {
    /// Whether this layer is on.
    #[must_use]
    pub const fn has(self, defence: Defence) -> bool {
        self.off & (1 << defence as u8) == 0
    }

    #[cfg(feature = "drill")]
    pub(crate) fn except(off: &[Defence]) -> Self {
        Self { off: off.iter().fold(0, |mask, defence| mask | 1 << *defence as u8) }
    }
}

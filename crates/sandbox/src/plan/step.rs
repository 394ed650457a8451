//! Pure: the steps of a plan.
//!
//! Every variant is one action of the helper, with all its inputs. Nothing here may be optional
//! at run time: a step that fails ends the launch.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::probe::CgroupBase;
use crate::spec::Network;

/// All steps of the helper, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelperScript {
    /// The control group to create first, if the machine has them.
    pub cgroup: Option<Cgroup>,
    /// The host user and group of the tree, if the machine supports a separate one. Otherwise the
    /// tree belongs to the caller.
    pub user: Option<u32>,
    /// The namespaces of the first process.
    pub namespaces: Vec<Namespace>,
    /// The steps of the first process before the program starts.
    pub setup: Vec<Setup>,
    /// The limits that the first process watches while the program runs.
    pub watch: TreeLimits,
    /// The restrictions of the program's own process before `execve`.
    pub confine: Vec<Confine>,
    /// The program, or `None` if programs come later.
    pub exec: Option<ProgramExec>,
}

/// A control group for one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cgroup {
    /// The parent of the group.
    pub base: CgroupBase,
    /// The memory limit of the tree, in bytes.
    pub memory_bytes: Option<u64>,
    /// The limit of processes and threads of the tree.
    pub processes: Option<u32>,
    /// The number of processors that the tree may keep busy.
    pub cpus: Option<u32>,
    /// True if the tree continues when one process needs too much memory, since it is not a
    /// single program.
    pub lasts: bool,
}

/// A kind of Linux namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Namespace {
    /// User ids and capabilities.
    User,
    /// Mounts.
    Mount,
    /// Process ids.
    Process,
    /// Network interfaces and abstract sockets.
    Network,
    /// System V IPC and POSIX message queues.
    Ipc,
    /// Host name.
    HostName,
    /// The view of control groups.
    Cgroup,
}

/// A step of the namespaces' first process, which still has capabilities there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Setup {
    /// Map the caller's user and group to 0, and no others.
    MapIds,
    /// Make the tree the kernel's first choice when memory runs out.
    OomScore(i32),
    /// Set the host name.
    HostName(String),
    /// Bring the private loopback interface up.
    Loopback,
    /// Listen on this port of the loopback for the launcher.
    Proxy {
        /// The port.
        port: u16,
    },
    /// Stop the exchange of mounts with the host.
    PrivateMounts,
    /// Build a root from these nodes, in order, and make it the only one.
    Root(Vec<RootNode>),
    /// Mount a process file system of this namespace over `/proc`.
    FreshProc,
    /// Forbid further user namespaces.
    NoNesting,
    /// Limit the namespace's inotify usage, which the host counts too.
    Inotify {
        /// The most instances.
        instances: u32,
        /// The most watches.
        watches: u32,
    },
    /// Limit the default buffer of a TCP socket in this network.
    TcpBuffers {
        /// The limit in each direction, in bytes.
        bytes_max: u64,
    },
    /// Make `/proc` read-only.
    SealProc,
    /// Close this process to inspection and core dumps.
    Hide,
}

/// One entry of the new root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RootNode {
    /// A directory.
    Directory {
        /// The path inside.
        path: PathBuf,
    },
    /// A symbolic link.
    Link {
        /// The path inside.
        path: PathBuf,
        /// The link's target.
        target: PathBuf,
    },
    /// A small file that nobody can write.
    Text {
        /// The path inside.
        path: PathBuf,
        /// The whole content.
        text: String,
    },
    /// A system directory under its own name: bound read-only, or a copy of the host's link.
    /// Skipped if the host lacks it.
    System {
        /// The path on the host and inside.
        path: PathBuf,
    },
    /// A part of the host's file system.
    Bind {
        /// The path on the host.
        host: PathBuf,
        /// The path inside.
        inside: PathBuf,
        /// The permitted access.
        access: BindAccess,
        /// The rule if the path is absent on the host.
        presence: Presence,
    },
    /// The host's folders in one folder whose names have this prefix, bound read-only under their
    /// own names.
    Family {
        /// The parent folder.
        folder: PathBuf,
        /// The prefix of the names.
        prefix: String,
    },
    /// A file of zeros, longer than any program reads.
    Zeros {
        /// The path inside.
        path: PathBuf,
    },
    /// A private terminal file system. Left out if the machine has none.
    Terminals {
        /// The path inside.
        path: PathBuf,
        /// The most terminals at a time.
        count_max: u32,
    },
    /// A folder that is attached already and becomes read-only. Created if it is missing.
    Sealed {
        /// The path inside.
        path: PathBuf,
    },
    /// A file or folder that is attached already and is covered by an empty one. Skipped if it is
    /// missing.
    Covered {
        /// The path inside.
        path: PathBuf,
    },
    /// An empty file system in memory.
    Memory {
        /// The path inside.
        path: PathBuf,
        /// The size in bytes, or `None` for the kernel's default, half of the memory.
        bytes_max: Option<u64>,
    },
    /// A process file system.
    Proc {
        /// The namespace that it shows.
        source: ProcSource,
    },
}

/// The access to a bound part of the host's file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BindAccess {
    /// Read and execute.
    ReadOnly,
    /// Read, write and execute, but no device and no set-user-id program.
    Write,
    /// Use as a device.
    Device,
}

/// The rule for a host path that may be absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Presence {
    /// If it is absent, the launch fails.
    Required,
    /// If it is absent, it is left out.
    IfPresent,
}

/// The processes that `/proc` shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcSource {
    /// Those of the sandbox.
    Own,
    /// Those of the host. Drills only.
    Host,
}

/// Limits that the kernel does not hold for the whole tree, so that the first process checks the
/// sum periodically.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TreeLimits {
    /// The memory limit of the tree and of its files in memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// The place of its files in memory, if it has its own.
    pub files_in_memory: Option<PathBuf>,
    /// The limit of processes of the tree.
    pub processes: Option<u32>,
}

/// A step of the program's own process. The program cannot undo it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Confine {
    /// Start a session of its own, without a terminal.
    Session,
    /// Lower the limits of this process and its children.
    ResourceLimits(Vec<ResourceLimit>),
    /// Change to this directory.
    WorkingDirectory(PathBuf),
    /// Empty the set of capabilities that executing a file can give, and remove the special
    /// meaning of user id 0.
    DropBoundingSet,
    /// Set `no_new_privs`.
    NoNewPrivileges,
    /// Apply Landlock.
    Landlock(LandlockRules),
    /// Apply the system call filter.
    Seccomp(SyscallFilter),
    /// Give up all capabilities.
    DropCapabilities,
    /// Close all descriptors but the standard three and these.
    CloseDescriptors(Vec<i32>),
}

/// A limit of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimit {
    /// The limited resource.
    pub resource: ResourceKind,
    /// The limit, in the resource's own unit.
    pub value: u64,
}

/// A resource that the kernel limits for each process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ResourceKind {
    /// Size of a core dump, in bytes.
    Core,
    /// Size of a written file, in bytes.
    FileSize,
    /// Open descriptors.
    OpenFiles,
    /// Processor time, in seconds.
    Cpu,
    /// Private writable memory, in bytes.
    Data,
    /// Processes of this user in this user namespace.
    Processes,
    /// Queued signals of this user.
    PendingSignals,
}

/// The permissions that Landlock enforces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandlockRules {
    /// The Landlock version. All of its rights are restricted.
    pub abi: i32,
    /// Paths and their permitted rights.
    pub files: Vec<FileRule>,
    /// The network mode. Without a network, TCP is refused too.
    pub network: Network,
    /// True if signals and abstract sockets are limited to the program and its children.
    pub scoped: bool,
}

/// The rights beneath one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRule {
    /// A directory or file. Skipped if it does not exist.
    pub path: PathBuf,
    /// The rights.
    pub rights: FileRights,
}

/// A set of file rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileRights {
    /// List directories.
    List,
    /// Read files, list directories.
    Read,
    /// Read and execute files, list directories.
    Execute,
    /// Read and write, nothing else.
    Device,
    /// Read, write and control terminals, list them.
    Terminal,
    /// Everything except creating device nodes.
    Write,
}

/// The permitted system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyscallFilter {
    /// The network mode, which determines the permitted socket families.
    pub network: Network,
    /// The rule for memory that belongs to no process.
    pub shared_memory: SharedMemory,
}

/// The rule for memory that no process maps or that outlives processes: `memfd_create` and System
/// V segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SharedMemory {
    /// Permitted, since a control group counts it.
    Counted,
    /// Refused, since a watcher over processes does not see it.
    Refused,
}

/// The program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramExec {
    /// Argument vectors. The first whose program exists is executed.
    pub candidates: Vec<Vec<String>>,
    /// Its environment.
    pub environment: ProgramEnvironment,
}

/// The source of the program's environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProgramEnvironment {
    /// Exactly these variables.
    Only(Vec<(String, String)>),
    /// The launcher's own variables and these. Drills only.
    InheritedAnd(Vec<(String, String)>),
}

//! Pure: the vocabulary of a plan.
//!
//! Every variant is one thing that the helper does, with all that it needs to
//! do it. Nothing here may be optional at run time: a step that cannot be
//! taken ends the launch.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::probe::CgroupBase;
use crate::spec::Network;

/// All that the helper does, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelperScript {
    /// The control group to make first, if the machine has them.
    pub cgroup: Option<Cgroup>,
    /// The user and the group of the host that the tree belongs to, where that machine gives it
    /// one of its own; else it is the caller's.
    pub user: Option<u32>,
    /// The namespaces into which the first process is born.
    pub namespaces: Vec<Namespace>,
    /// What the namespaces' first process does before the program exists.
    pub setup: Vec<Setup>,
    /// What that process looks after while the program runs.
    pub watch: TreeLimits,
    /// What the program's own process gives up before it becomes the program.
    pub confine: Vec<Confine>,
    /// The program; none where programs come later.
    pub exec: Option<ProgramExec>,
}

/// A control group for one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cgroup {
    /// Below which group it is made.
    pub base: CgroupBase,
    /// Memory of the tree, in bytes.
    pub memory_bytes: Option<u64>,
    /// Processes and threads of the tree.
    pub processes: Option<u32>,
    /// Processors that the tree may keep busy.
    pub cpus: Option<u32>,
    /// Whether the tree goes on when one of it needs too much memory, since it is not one
    /// program.
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
    /// Map the caller's user and group to 0, and no other.
    MapIds,
    /// Make the tree the kernel's first choice when memory runs out.
    OomScore(i32),
    /// Set the host name.
    HostName(String),
    /// Bring the private loopback interface up.
    Loopback,
    /// Listen on this port of the loopback, for whoever launched us.
    Proxy {
        /// The port.
        port: u16,
    },
    /// Cut the exchange of mounts with the host.
    PrivateMounts,
    /// Build a root from these nodes, in order, and make it the only one.
    Root(Vec<RootNode>),
    /// Mount a process file system of this namespace over `/proc`.
    FreshProc,
    /// Forbid further user namespaces.
    NoNesting,
    /// Limit what the namespace's users may have of inotify, which the host counts too.
    Inotify {
        /// How many instances.
        instances: u32,
        /// How many files watched.
        watches: u32,
    },
    /// Limit what a TCP socket of this network has queued without being asked to.
    TcpBuffers {
        /// In each direction.
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
        /// Where.
        path: PathBuf,
    },
    /// A symbolic link.
    Link {
        /// Where.
        path: PathBuf,
        /// What it says.
        target: PathBuf,
    },
    /// A small file that nobody can write.
    Text {
        /// Where.
        path: PathBuf,
        /// Its whole content.
        text: String,
    },
    /// A system directory under its own name: bound read-only, or the same
    /// link where the host has a link. Skipped where the host has nothing.
    System {
        /// Its path on the host and inside.
        path: PathBuf,
    },
    /// A part of the host's file system.
    Bind {
        /// Where it is on the host.
        host: PathBuf,
        /// Where it appears.
        inside: PathBuf,
        /// What can be done with it.
        access: BindAccess,
        /// Whether it may be absent on the host.
        presence: Presence,
    },
    /// The host's folders of one folder whose names begin like this, bound read-only under
    /// their own names.
    Family {
        /// The folder that they are in.
        folder: PathBuf,
        /// How their names begin.
        prefix: String,
    },
    /// A file of zeros that is longer than anybody reads.
    Zeros {
        /// Where.
        path: PathBuf,
    },
    /// Pseudo-terminals of its own. Left out where the machine gives none.
    Terminals {
        /// Where.
        path: PathBuf,
        /// How many there can be at a time.
        count_max: u32,
    },
    /// A folder of what is attached already, from now on read-only. Made where it is missing.
    Sealed {
        /// Where.
        path: PathBuf,
    },
    /// A file or folder of what is attached already, empty from now on. Passed over where it is
    /// missing.
    Covered {
        /// Where.
        path: PathBuf,
    },
    /// An empty file system in memory.
    Memory {
        /// Where.
        path: PathBuf,
        /// Its size; `None` for the kernel's default, half of the memory.
        bytes_max: Option<u64>,
    },
    /// A process file system.
    Proc {
        /// Of which namespace.
        source: ProcSource,
    },
}

/// What can be done with a bound part of the host's file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BindAccess {
    /// Read and execute.
    ReadOnly,
    /// Read, write and execute, but no device and no set-user-id program.
    Write,
    /// Use as a device.
    Device,
}

/// Whether something may be absent on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Presence {
    /// Without it nothing starts.
    Required,
    /// Left out where there is none.
    IfPresent,
}

/// Whose processes `/proc` shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcSource {
    /// Those of the sandbox.
    Own,
    /// Those of the host. Drills only.
    Host,
}

/// Limits that nothing in the kernel holds for the whole tree, so that the
/// first process looks at the sum from time to time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TreeLimits {
    /// Memory of the tree and of its files in memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// Where its files in memory are, if it has such a place of its own.
    pub files_in_memory: Option<PathBuf>,
    /// Processes of the tree.
    pub processes: Option<u32>,
}

/// A step of the program's own process. None of them can be undone by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Confine {
    /// Start a session of its own, without a terminal.
    Session,
    /// Lower the limits of this process and its children.
    ResourceLimits(Vec<ResourceLimit>),
    /// Change to this directory.
    WorkingDirectory(PathBuf),
    /// Empty the set of capabilities that executing a file can give, and the
    /// special meaning of user id 0.
    DropBoundingSet,
    /// Give up gaining privileges.
    NoNewPrivileges,
    /// Apply Landlock.
    Landlock(LandlockRules),
    /// Apply the list of system calls.
    Seccomp(SyscallFilter),
    /// Give up all capabilities.
    DropCapabilities,
    /// Close all descriptors but the standard three and these.
    CloseDescriptors(Vec<i32>),
}

/// A limit of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimit {
    /// Of what.
    pub resource: ResourceKind,
    /// How much, in the resource's own unit.
    pub value: u64,
}

/// Something that the kernel limits for each process.
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
    /// Signals that are queued for this user's processes.
    PendingSignals,
}

/// What Landlock permits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandlockRules {
    /// The version of Landlock whose whole set of rights is restricted.
    pub abi: i32,
    /// Hierarchies and what is permitted beneath them.
    pub files: Vec<FileRule>,
    /// Whether TCP is restricted too: to nothing.
    pub network: Network,
    /// Whether signals and abstract sockets are kept to the program and its children.
    pub scoped: bool,
}

/// What is permitted beneath one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRule {
    /// A directory or file. Skipped where there is none.
    pub path: PathBuf,
    /// What is permitted.
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
    /// Read, write and steer terminals, list them.
    Terminal,
    /// Everything but making device nodes.
    Write,
}

/// Which system calls are permitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyscallFilter {
    /// Which socket families can be opened.
    pub network: Network,
    /// Whether memory that belongs to no process is permitted.
    pub shared_memory: SharedMemory,
}

/// Memory that outlives or is not mapped by any process: `memfd_create` and
/// System V segments.
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
    /// Argument vectors; the first whose program exists is executed.
    pub candidates: Vec<Vec<String>>,
    /// Its environment.
    pub environment: ProgramEnvironment,
}

/// Where the program's environment comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProgramEnvironment {
    /// Exactly these variables.
    Only(Vec<(String, String)>),
    /// The launcher's own and these. Drills only.
    InheritedAnd(Vec<(String, String)>),
}

//! Pure: turns a specification and the machine's features into ordered steps.
//!
//! The plan is data, so that tests can read what will happen. Planning must never weaken a
//! specification to fit a machine: a missing feature is a [`PlanRefusal`]. The one exception is
//! the control group. Without it the limits of memory and processes are weaker, and each outcome
//! says so.

mod configuration;
mod needs;
mod refusal;
mod root;
mod step;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use refusal::PlanRefusal;
#[cfg(feature = "drill")]
pub(crate) use root::COVERED;
pub use step::{
    BindAccess, Cgroup, Confine, FileRights, FileRule, HelperScript, LandlockRules, Namespace,
    Presence, ProcSource, ProgramEnvironment, ProgramExec, ResourceKind, ResourceLimit, RootNode,
    Setup, SharedMemory, SyscallFilter, TreeLimits,
};

use crate::outcome::Enforcement;
use crate::probe::{Feature, Probe};
use crate::process::impossible_target;
use crate::spec::{
    Capture, Defence, Defences, HOME_INSIDE, Inherit, Network, PROXY_INSIDE, PROXY_PORT, Program,
    SandboxSpec, SessionProgram,
};

/// The program search path inside.
pub const PATH_INSIDE: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The longest accepted sum of arguments and environment, in bytes. The kernel's own limit for
/// one argument is 128 KiB.
const ARGUMENT_BYTES_MAX: usize = 128 << 10;

/// The most pending signals of a sandbox. The kernel counts them for a host user, so the rest of
/// the user's limit is left to others.
const PENDING_SIGNALS: u64 = 1024;
/// The core dump limit in bytes. It is smaller than any image, so no file is written. With 1, the
/// kernel also starts no core handler, which with 0 it would start outside and as root.
pub(crate) const NO_CORES: u64 = 1;
/// The kernel's default buffer size of a socket, in bytes.
const SOCKET_BYTES: u64 = 212_992;
const INOTIFY_INSTANCES: u32 = 32;
const INOTIFY_WATCHES: u32 = 16_384;

/// The host users and groups reserved for sandboxes. Nothing else uses them: the ranges of
/// containers, subordinate ids and directory services end below, and numbers that some programs
/// read as negative begin above.
pub(crate) const OWN_USERS: Range<u32> = 0x7800_0000..0x7c00_0000;

/// Variables in which programs look for a proxy. Different programs know different spellings.
const PROXY_VARIABLES: [(&str, &str); 6] = [
    ("http_proxy", PROXY_INSIDE),
    ("HTTP_PROXY", PROXY_INSIDE),
    ("https_proxy", PROXY_INSIDE),
    ("HTTPS_PROXY", PROXY_INSIDE),
    ("no_proxy", NOT_PROXIED),
    ("NO_PROXY", NOT_PROXIED),
];
/// Variables that make package managers fail fast without a network, instead of retrying for
/// minutes. None is set to offline, since a registry on the loopback works.
const FEW_RETRIES: [(&str, &str); 11] = [
    ("NPM_CONFIG_FETCH_RETRIES", "0"),
    ("NPM_CONFIG_UPDATE_NOTIFIER", "false"),
    ("NPM_CONFIG_AUDIT", "false"),
    ("NPM_CONFIG_FUND", "false"),
    ("PIP_RETRIES", "0"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("UV_HTTP_RETRIES", "0"),
    ("CARGO_NET_RETRY", "0"),
    ("BUNDLE_RETRY", "0"),
    ("CONDA_REMOTE_MAX_RETRIES", "0"),
    ("GOTOOLCHAIN", "local"),
];
/// Destinations that programs reach without the proxy.
const NOT_PROXIED: &str = "localhost,127.0.0.1,::1";

/// The plan of a run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The helper's steps.
    pub script: HelperScript,
    /// The mechanism that will hold the limits of memory and processes.
    pub enforcement: Enforcement,
    /// The time from start to forced end.
    pub wall: Option<Duration>,
    /// The limits on captured output.
    pub capture: Capture,
    pub(crate) network: Network,
    pub(crate) defences: Defences,
    pub(crate) stdin: Vec<u8>,
    pub(crate) inherit: Vec<Inherit>,
}

/// Plans a run.
///
/// # Errors
/// Fails if the machine lacks a feature, or the specification is invalid.
pub fn plan(spec: &SandboxSpec, probe: &Probe) -> Result<Plan, PlanRefusal> {
    needs::check(spec, probe)?;
    check_spec(spec)?;
    let (cgroup, watch) = tree_limits(spec, probe);
    let enforcement = match &probe.cgroup {
        Feature::Available(base) => Enforcement::Cgroup { version: base.version() },
        Feature::Missing(_) => Enforcement::Rlimits,
    };
    let script = HelperScript {
        cgroup,
        user: own_user(spec, probe),
        namespaces: namespaces(spec),
        setup: setup(spec, enforcement),
        watch,
        confine: confine(spec, probe, enforcement),
        exec: exec(&spec.program, &spec.env, spec.network, spec.defences),
    };
    Ok(Plan {
        script,
        enforcement,
        wall: spec.limits.wall,
        capture: spec.capture,
        network: spec.network,
        defences: spec.defences,
        stdin: spec.stdin.clone(),
        inherit: spec.inherit.clone(),
    })
}

impl Plan {
    /// Returns the command that starts a task in the session of this plan.
    ///
    /// # Errors
    /// Fails if the task is invalid.
    pub(crate) fn task(&self, task: &SessionProgram) -> Result<ProgramExec, PlanRefusal> {
        check_program(&task.program, &task.env)?;
        exec(&task.program, &task.env, self.network, self.defences).ok_or(PlanRefusal::NoProgram)
    }
}

fn check_program(program: &Program, env: &[(String, String)]) -> Result<(), PlanRefusal> {
    let arguments: Vec<&str> = match program {
        Program::Shell(line) => vec![line],
        Program::Argv(words) => words.iter().map(String::as_str).collect(),
        Program::Later => Vec::new(),
    };
    let nothing = arguments.first().is_none_or(|program| program.is_empty());
    if nothing && *program != Program::Later {
        return Err(PlanRefusal::NoProgram);
    }
    let texts = || {
        let variables = env.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
        arguments.iter().copied().chain(variables)
    };
    if texts().any(|text| text.contains('\0')) {
        return Err(PlanRefusal::NulByte);
    }
    let bytes = texts().map(|text| text.len() + 1).sum();
    if bytes >= ARGUMENT_BYTES_MAX {
        return Err(PlanRefusal::TooLong { bytes, bytes_max: ARGUMENT_BYTES_MAX });
    }
    let impossible = env.iter().find(|(name, _)| name.is_empty() || name.contains('='));
    impossible.map_or(Ok(()), |(name, _)| Err(PlanRefusal::VariableName(name.clone())))
}

fn check_spec(spec: &SandboxSpec) -> Result<(), PlanRefusal> {
    check_program(&spec.program, &spec.env)?;
    let binds = || spec.read_only.iter().chain(&spec.kept);
    let hosts = binds().map(|bind| &bind.host).chain(&spec.workspace);
    if let Some(path) = hosts.into_iter().find(|path| !path.is_absolute()) {
        return Err(PlanRefusal::RelativePath(path.clone()));
    }
    let misplaced = spec.read_only.iter().find(|bind| !root::can_hold(&bind.inside));
    if let Some(bind) = misplaced.or(spec.kept.iter().find(|bind| !root::can_keep(&bind.inside))) {
        return Err(PlanRefusal::BindTarget(bind.inside.clone()));
    }
    if let Some(name) = spec.sealed.iter().find(|name| !root::is_name(name)) {
        return Err(PlanRefusal::BindTarget(Path::new(HOME_INSIDE).join(name)));
    }
    let target = impossible_target(spec.inherit.iter().map(|inherit| inherit.target));
    target.map_or(Ok(()), |target| Err(PlanRefusal::DescriptorNumber(target)))
}

fn tree_limits(spec: &SandboxSpec, probe: &Probe) -> (Option<Cgroup>, TreeLimits) {
    let when = |defence: Defence| spec.defences.has(defence);
    let memory_bytes = when(Defence::MemoryLimit).then_some(spec.limits.memory_bytes);
    let processes = when(Defence::ProcessLimit).then_some(spec.limits.processes);
    match &probe.cgroup {
        Feature::Available(base) => {
            let lasts = spec.program == Program::Later;
            let cpus = spec.limits.cpus.filter(|_| base.limits_cpus());
            let base = base.clone();
            let base = if cpus.is_some() { base } else { base.without_cpus() };
            let cgroup = Cgroup { base, memory_bytes, processes, cpus, lasts };
            (Some(cgroup), TreeLimits::default())
        }
        Feature::Missing(_) => {
            let files_in_memory = when(Defence::Files).then(|| PathBuf::from("/tmp"));
            (None, TreeLimits { memory_bytes, files_in_memory, processes })
        }
    }
}

/// Returns the host user of a sandbox, derived from its workspace. Files can only be mapped in a
/// root of its own.
fn own_user(spec: &SandboxSpec, probe: &Probe) -> Option<u32> {
    let defences = [Defence::Users, Defence::Files];
    if !probe.own_user.is_available() || !defences.iter().all(|it| spec.defences.has(*it)) {
        return None;
    }
    let first = spec.read_only.first().map(|bind| &bind.host);
    let place = spec.workspace.as_ref().or(first).map_or(Path::new("/"), PathBuf::as_path);
    let mix = |sum: u32, byte: &u8| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    let sum = place.as_os_str().as_encoded_bytes().iter().fold(0x811c_9dc5, mix);
    Some(OWN_USERS.start + sum % (OWN_USERS.end - OWN_USERS.start))
}

fn namespaces(spec: &SandboxSpec) -> Vec<Namespace> {
    let switchable = [
        (Defence::Users, Namespace::User),
        (Defence::Processes, Namespace::Process),
        (Defence::Network, Namespace::Network),
        (Defence::Ipc, Namespace::Ipc),
        (Defence::HostName, Namespace::HostName),
    ];
    let mut namespaces: Vec<Namespace> = switchable
        .into_iter()
        .filter(|(defence, _)| spec.defences.has(*defence))
        .map(|(_, namespace)| namespace)
        .collect();
    // Without the private root these two hide nothing. They are kept so that a drill can never
    // change the host's mounts.
    namespaces.extend([Namespace::Mount, Namespace::Cgroup]);
    namespaces
}

fn setup(spec: &SandboxSpec, enforcement: Enforcement) -> Vec<Setup> {
    let has = |defence| spec.defences.has(defence);
    let mut steps = Vec::new();
    if has(Defence::Users) {
        steps.push(Setup::MapIds);
    }
    steps.push(Setup::OomScore(500));
    if has(Defence::HostName) {
        steps.push(Setup::HostName("automaton".to_owned()));
    }
    if spec.network != Network::None && has(Defence::Network) {
        steps.push(Setup::Loopback);
    }
    if matches!(spec.network, Network::Served | Network::Proxied) && has(Defence::Network) {
        steps.push(Setup::Proxy { port: PROXY_PORT });
    }
    steps.push(Setup::PrivateMounts);
    if has(Defence::Files) {
        steps.push(Setup::Root(root::nodes(spec, enforcement)));
    } else if has(Defence::Processes) {
        steps.push(Setup::FreshProc);
    }
    let is_own = spec.network != Network::None && has(Defence::Network);
    if is_own && enforcement == Enforcement::Rlimits {
        steps.push(Setup::TcpBuffers { bytes_max: SOCKET_BYTES });
    }
    // In the host's own namespace this would change the host.
    if has(Defence::Nesting) && has(Defence::Users) {
        steps.push(Setup::NoNesting);
    }
    if has(Defence::ResourceLimits) && has(Defence::Users) {
        let instances = INOTIFY_INSTANCES;
        let watches = INOTIFY_WATCHES;
        steps.push(Setup::Inotify { instances, watches });
    }
    if has(Defence::Files) {
        steps.push(Setup::SealProc);
    }
    steps.push(Setup::Hide);
    steps
}

/// Returns the restrictions of the program's process. Capabilities go last, although they could
/// go first. So a drill can take away each layer alone, since without `no_new_privs` only a
/// capability permits the two steps after it.
fn confine(spec: &SandboxSpec, probe: &Probe, enforcement: Enforcement) -> Vec<Confine> {
    let has = |defence| spec.defences.has(defence);
    let mut steps = vec![Confine::Session];
    steps.push(Confine::ResourceLimits(resource_limits(spec, enforcement)));
    steps.push(Confine::WorkingDirectory(working_directory(spec)));
    if has(Defence::BoundingSet) {
        steps.push(Confine::DropBoundingSet);
    }
    if has(Defence::NoNewPrivileges) {
        steps.push(Confine::NoNewPrivileges);
    }
    if let (true, Feature::Available(abi)) = (has(Defence::Landlock), &probe.landlock_abi) {
        let files = root::landlock_files(spec);
        // Programs of one session may signal each other. The namespaces keep them from reaching
        // anybody else.
        let scoped = spec.program != Program::Later;
        let rules = LandlockRules { abi: *abi, files, network: spec.network, scoped };
        steps.push(Confine::Landlock(rules));
    }
    if has(Defence::Seccomp) {
        let shared_memory = match enforcement {
            Enforcement::Cgroup { .. } => SharedMemory::Counted,
            Enforcement::Rlimits => SharedMemory::Refused,
        };
        steps.push(Confine::Seccomp(SyscallFilter { network: spec.network, shared_memory }));
    }
    if has(Defence::Capabilities) {
        steps.push(Confine::DropCapabilities);
    }
    if has(Defence::Descriptors) {
        let targets = spec.inherit.iter().map(|inherit| inherit.target).collect();
        steps.push(Confine::CloseDescriptors(targets));
    }
    steps
}

fn resource_limits(spec: &SandboxSpec, enforcement: Enforcement) -> Vec<ResourceLimit> {
    let limits = &spec.limits;
    let mut list = vec![(ResourceKind::Core, NO_CORES)];
    if spec.defences.has(Defence::ResourceLimits) {
        let started_second = u64::from(limits.cpu.subsec_nanos() > 0);
        let cpu_seconds = limits.cpu.as_secs().saturating_add(started_second);
        list.extend([
            (ResourceKind::FileSize, limits.file_bytes),
            (ResourceKind::OpenFiles, u64::from(limits.open_files)),
            (ResourceKind::Cpu, cpu_seconds),
            (ResourceKind::PendingSignals, PENDING_SIGNALS),
        ]);
    }
    if enforcement == Enforcement::Rlimits {
        if spec.defences.has(Defence::MemoryLimit) {
            list.push((ResourceKind::Data, limits.memory_bytes));
        }
        if spec.defences.has(Defence::ProcessLimit) {
            // The namespace's first process counts as one.
            list.push((ResourceKind::Processes, u64::from(limits.processes) + 1));
        }
    }
    list.into_iter().map(|(resource, value)| ResourceLimit { resource, value }).collect()
}

fn working_directory(spec: &SandboxSpec) -> PathBuf {
    match (&spec.workspace, spec.defences.has(Defence::Files)) {
        (Some(_), true) => PathBuf::from(HOME_INSIDE),
        (Some(host), false) => host.clone(),
        (None, _) => PathBuf::from("/"),
    }
}

/// Returns the program with its environment, or `None` if programs come later.
fn exec(
    program: &Program,
    env: &[(String, String)],
    network: Network,
    defences: Defences,
) -> Option<ProgramExec> {
    let candidates = match program {
        Program::Shell(line) => ["/bin/bash", "/bin/sh"]
            .map(|shell| vec![shell.to_owned(), "-c".to_owned(), line.clone()])
            .to_vec(),
        Program::Argv(words) => match words.split_first() {
            Some((name, rest)) if !name.contains('/') => PATH_INSIDE
                .split(':')
                .map(|folder| {
                    let program = Path::new(folder).join(name).to_string_lossy().into_owned();
                    std::iter::once(program).chain(rest.iter().cloned()).collect()
                })
                .collect(),
            _ => vec![words.clone()],
        },
        Program::Later => return None,
    };
    let fixed = [
        ("PATH", PATH_INSIDE),
        ("HOME", HOME_INSIDE),
        ("LANG", "C.UTF-8"),
        ("TERM", "dumb"),
        // A program with a sanitizer would inspect itself as a debugger does, and fail.
        ("LSAN_OPTIONS", "detect_leaks=0"),
        // As for every user but root. For root, tar would keep set-user-id bits.
        ("TAR_OPTIONS", "--no-same-permissions"),
    ];
    let by_network: &[(&str, &str)] = match network {
        Network::None => &[],
        Network::Loopback | Network::Served => &FEW_RETRIES,
        Network::Proxied => &PROXY_VARIABLES,
    };
    let mut variables: Vec<(String, String)> = fixed
        .iter()
        .chain(by_network)
        .filter(|(name, _)| env.iter().all(|(given, _)| given != name))
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    variables.extend(env.iter().cloned());
    let environment = match defences.has(Defence::Environment) {
        true => ProgramEnvironment::Only(variables),
        false => ProgramEnvironment::InheritedAnd(variables),
    };
    Some(ProgramExec { candidates, environment })
}

#[cfg(test)]
mod tests;

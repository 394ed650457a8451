//! The first process of the namespaces: builds the sandbox, starts the program, reaps orphans,
//! and ends the whole tree with itself.
//!
//! It keeps its capabilities in the namespace. So it must never touch anything that the program
//! controls once the program runs.

use std::fs::{self, File};
use std::io::Read as _;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill, killpg};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{ForkResult, Pid, fork, pipe2, sethostname};

use super::helper::{Reporter, leave_standard_streams};
use super::mount::{self, HostTrees};
use super::ns::{self, Ids, NetworkId};
use super::program::{self, Confinement, PendingProgram};
use super::{StepContext as _, StepFailure, cgroup, serve, watch};
use crate::launch::now;
use crate::outcome::ExitStatus;
use crate::plan::{HelperScript, Setup, TreeLimits};
use crate::process::{await_any, ended};
use crate::report::HelperReport;

/// The longest time from a process's start until it executes its program.
const BIRTH_MAX: Duration = Duration::from_secs(5);

/// The inputs that the helper passes to the first process.
pub(crate) struct Init<'a> {
    pub(crate) script: &'a HelperScript,
    pub(crate) ids: Ids,
    /// The opened host trees of the root, if the helper has opened them.
    pub(crate) trees: Option<HostTrees>,
    pub(crate) reporter: &'a Reporter,
    /// A descriptor that closes with the launcher.
    pub(crate) lifeline: OwnedFd,
    /// The program's descriptors and their numbers.
    pub(crate) inherit: Vec<(OwnedFd, i32)>,
    pub(crate) null: File,
    /// The files with which this process enters its control group, before anything else. Empty if
    /// there is no group, or if the helper moves the process.
    pub(crate) cgroup_files: Vec<File>,
    /// See [`watch::socket_bytes_max`].
    pub(crate) socket_bytes_max: u64,
    /// The network outside of the sandbox.
    pub(crate) outer_network: NetworkId,
    /// A pipe on which the helper permits the program to start, after it has moved this process
    /// into the control group.
    pub(crate) go: OwnedFd,
}

/// Runs the program to its end, and then ends this process. That ends every process in the
/// namespace.
pub(crate) fn run(init: Init<'_>) -> ! {
    let reporter = init.reporter;
    match start_and_wait(init) {
        Ok(Some(status)) => reporter.send(&HelperReport::Ended(status)),
        Ok(None) => {}
        Err(problem) => reporter.send(&HelperReport::Failed(problem)),
    }
    // SAFETY: ends this copy of the helper at once. The helper's own exit handlers and
    // destructors belong to the helper.
    unsafe { libc::_exit(0) }
}

/// Runs the program. Returns its exit status, or `None` if the launcher is gone or wants an end.
fn start_and_wait(init: Init<'_>) -> Result<Option<ExitStatus>, StepFailure> {
    let Init { script, reporter, lifeline, inherit, null, cgroup_files: doors, .. } = init;
    let ids = init.ids;
    let mut trees = init.trees;
    let go = init.go;
    let watch = Watcher::new(&script.watch, init.socket_bytes_max);
    cgroup::enter(doors)?;
    for step in &script.setup {
        set_up(step, &init.outer_network, ids, &mut trees, reporter)?;
    }
    // If this process did not enter its control group itself, the helper moves it meanwhile. The
    // program must not be started before that.
    let mut byte = [0];
    if File::from(go).read(&mut byte).step("wait for the helper")? == 0 {
        return Ok(None);
    }
    let ends = child_ends()?;
    let confine = Confinement::new(&script.confine)?;
    let Some(exec) = &script.exec else {
        leave_standard_streams(&null)?;
        reporter.send(&HelperReport::Started);
        return serve::SessionServer::new(&confine, reporter).serve(watch, &lifeline, &ends);
    };
    let born = PendingProgram { confine: &confine, exec, inherit, terminal: false };
    let program = start_program(born, &lifeline)?;
    leave_standard_streams(&null)?;
    reporter.send(&HelperReport::Started);
    let end = supervise_program(program, &ends, &lifeline, watch);
    // silent-ok: the namespace usually ends with us. This is for a drill without a namespace.
    let _ = killpg(program, Signal::SIGKILL);
    end
}

/// Creates a descriptor that is readable when a child has ended.
fn child_ends() -> Result<SignalFd, StepFailure> {
    let mut children = SigSet::empty();
    children.add(Signal::SIGCHLD);
    children.thread_block().step("block SIGCHLD")?;
    SignalFd::with_flags(&children, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .step("receive SIGCHLD")
}

/// Starts a program and waits until it runs. The wait ends with the lifeline or after a fixed
/// time, since running programs may stop a new one.
pub(crate) fn start_program(
    born: PendingProgram<'_>,
    lifeline: &OwnedFd,
) -> Result<Pid, StepFailure> {
    let (failure, failure_write) = pipe2(OFlag::O_CLOEXEC).step("make a pipe")?;
    // SAFETY: this process has one thread, so the copy can do anything.
    let program = match unsafe { fork() }.step("start the program's process")? {
        ForkResult::Child => {
            drop(failure);
            program::run(born, failure_write)
        }
        ForkResult::Parent { child } => child,
    };
    drop((failure_write, born));
    let told = read_start_error(failure.into(), lifeline).inspect_err(|_| {
        // silent-ok: it may just have ended by itself.
        let _ = kill(program, Signal::SIGKILL);
    })?;
    if told.is_empty() {
        return Ok(program);
    }
    let told = String::from_utf8_lossy(&told);
    let (step, problem) = told.split_once('\n').unwrap_or((&told, ""));
    Err(StepFailure { step: step.to_owned(), problem: problem.to_owned() })
}

/// Reads the error of a process that fails to execute its program. Empty if it succeeds.
fn read_start_error(mut failure: File, lifeline: &OwnedFd) -> Result<Vec<u8>, StepFailure> {
    let step = "wait for the program's start";
    let deadline = now() + BIRTH_MAX;
    let mut told = Vec::new();
    let mut piece = [0; 512];
    loop {
        let left = deadline.saturating_duration_since(now());
        match await_any([failure.as_fd(), lifeline.as_fd()], Some(left)).step(step)? {
            [true, _] => match failure.read(&mut piece).step(step)? {
                0 => return Ok(told),
                count => told.extend_from_slice(&piece[..count]),
            },
            [false, cut] if cut || left.is_zero() => {
                let problem = if cut { "nobody wants it any more" } else { "it does not go on" };
                return Err(StepFailure { step: step.to_owned(), problem: problem.to_owned() });
            }
            [false, _] => {}
        }
    }
}

fn set_up(
    step: &Setup,
    outer_network: &NetworkId,
    ids: Ids,
    trees: &mut Option<HostTrees>,
    reporter: &Reporter,
) -> Result<(), StepFailure> {
    match step {
        Setup::MapIds => ns::map_ids(ids),
        Setup::OomScore(score) => {
            fs::write("/proc/self/oom_score_adj", score.to_string()).step("set the OOM score")
        }
        Setup::HostName(name) => sethostname(name).step("set the host name"),
        Setup::Loopback => ns::require_own_network(outer_network).and_then(|()| ns::loopback_up()),
        Setup::Proxy { port } => {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, *port));
            let listener = listener.step("listen for the way out")?;
            reporter.send_with(&HelperReport::Proxy, &[listener.as_fd()]);
            Ok(())
        }
        Setup::PrivateMounts => mount::make_private(),
        Setup::Root(nodes) => mount::build_root(nodes, trees.take(), ids.is_root()),
        Setup::FreshProc => mount::mount_proc(Path::new("/proc")).step("mount /proc"),
        Setup::NoNesting => {
            fs::write("/proc/sys/user/max_user_namespaces", "0").step("forbid user namespaces")
        }
        Setup::Inotify { instances, watches } => {
            let set = |what, most: &u32| {
                fs::write(format!("/proc/sys/user/max_inotify_{what}"), most.to_string())
            };
            set("instances", instances)
                .and_then(|()| set("watches", watches))
                .step("limit what is watched")
        }
        Setup::TcpBuffers { bytes_max } => {
            let set = |which: &str| {
                fs::write(
                    format!("/proc/sys/net/ipv4/tcp_{which}"),
                    format!("4096 16384 {bytes_max}"),
                )
            };
            set("wmem").and_then(|()| set("rmem")).step("limit what sockets queue")
        }
        Setup::SealProc => mount::seal_proc(),
        Setup::Hide => prctl::set_dumpable(false).step("close the first process to inspection"),
    }
}

/// Reaps processes until the program ends or something demands an end.
fn supervise_program(
    program: Pid,
    ends: &SignalFd,
    lifeline: &OwnedFd,
    mut watch: Watcher<'_>,
) -> Result<Option<ExitStatus>, StepFailure> {
    loop {
        let ready = await_any([lifeline.as_fd(), ends.as_fd()], watch.next_check());
        let [cut, _] = ready.step("wait for the program")?;
        if cut {
            return Ok(None);
        }
        ends.read_signal().step("receive SIGCHLD")?;
        if let Some(status) = reap(program)? {
            return Ok(Some(watch.correct_status(status)));
        }
        if let Some(status) = watch.exceeded() {
            return Ok(Some(status));
        }
    }
}

/// Watches the totals of the tree, if nothing in the kernel does.
pub(crate) struct Watcher<'a> {
    limits: &'a TreeLimits,
    socket_bytes_max: u64,
    looked: Option<Instant>,
}

impl<'a> Watcher<'a> {
    const fn new(limits: &'a TreeLimits, socket_bytes_max: u64) -> Self {
        Self { limits, socket_bytes_max, looked: None }
    }

    const fn watches(&self) -> bool {
        self.limits.memory_bytes.is_some() || self.limits.processes.is_some()
    }

    /// Corrects the exit status of a program. With the watcher's filter, a request for uncounted
    /// memory ends the program by SIGSYS, which means that it exceeded its memory limit.
    pub(crate) const fn correct_status(&self, status: ExitStatus) -> ExitStatus {
        match status {
            ExitStatus::Signalled(libc::SIGSYS) if self.limits.memory_bytes.is_some() => {
                ExitStatus::MemoryExceeded
            }
            status => status,
        }
    }

    /// Returns the longest wait until the next check.
    pub(crate) fn next_check(&self) -> Option<Duration> {
        self.watches().then_some(watch::INTERVAL)
    }

    /// Returns how the tree must end now, if a total is over its limit. Called whenever a child
    /// ends, it checks at most once per interval, since a check is expensive.
    pub(crate) fn exceeded(&mut self) -> Option<ExitStatus> {
        if !self.watches() || self.looked.is_some_and(|then| then.elapsed() < watch::INTERVAL) {
            return None;
        }
        self.looked = Some(now());
        watch::exceeded(self.limits, self.socket_bytes_max)
    }
}

/// Reaps all ended children. Returns the program's status if it was among them.
fn reap(program: Pid) -> Result<Option<ExitStatus>, StepFailure> {
    while let Some((pid, status)) = reap_next()? {
        if pid == program {
            return Ok(Some(status));
        }
    }
    Ok(None)
}

/// Reaps one ended child, if there is one.
pub(crate) fn reap_next() -> Result<Option<(Pid, ExitStatus)>, StepFailure> {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(state) => match (state.pid(), ended(state)) {
                (Some(pid), Some(status)) => return Ok(Some((pid, status))),
                (Some(_), None) => {}
                (None, _) => return Ok(None),
            },
            Err(Errno::ECHILD) => return Ok(None),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno).step("wait for the program"),
        }
    }
}

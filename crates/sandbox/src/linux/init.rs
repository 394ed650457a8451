//! The first process of the namespaces: builds the sandbox, starts the
//! program, reaps orphans, and takes the whole tree with it when it ends.
//!
//! It keeps its capabilities in the namespace, so it must never touch
//! anything that the program controls once that runs.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::time::Instant;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{ForkResult, Pid, fork, pipe2, sethostname};

use super::helper::{Reporter, leave_standard_streams};
use super::ns::{self, Ids};
use super::{Named as _, Problem, cgroup, mount, program, watch};
use crate::launch::now;
use crate::outcome::ExitStatus;
use crate::plan::{Script, Setup, Watch};
use crate::process::{await_any, ended};
use crate::report::Report;

/// What the helper leaves to the first process.
pub(crate) struct Init<'a> {
    pub(crate) script: &'a Script,
    pub(crate) ids: Ids,
    pub(crate) reporter: &'a Reporter,
    /// Ends with the launcher.
    pub(crate) lifeline: OwnedFd,
    /// The program's descriptors and their numbers.
    pub(crate) inherit: Vec<(OwnedFd, i32)>,
    pub(crate) null: File,
    /// By which it enters its control group before anything else, and what it starts with
    /// it. Empty where there is none, or where the helper puts it there.
    pub(crate) doors: Vec<File>,
    /// Says that the program may start: where the helper puts this process into the control
    /// group, that it has.
    pub(crate) go: OwnedFd,
}

/// Runs the program to its end. Its end is the end of this process, and with
/// it of every process in the namespace.
pub(crate) fn run(init: Init<'_>) -> ! {
    let reporter = init.reporter;
    match start_and_wait(init) {
        Ok(Some(status)) => reporter.say(&Report::Ended(status)),
        Ok(None) => {}
        Err(problem) => reporter.say(&Report::Failed(problem)),
    }
    // SAFETY: ends this copy of the helper at once; the helper's own exit
    // handlers and destructors belong to the helper.
    unsafe { libc::_exit(0) }
}

/// How the program ended; `None` when the launcher is gone or wants an end.
fn start_and_wait(init: Init<'_>) -> Result<Option<ExitStatus>, Problem> {
    let Init { script, ids, reporter, lifeline, inherit, null, doors, go } = init;
    cgroup::enter(doors)?;
    for step in &script.setup {
        set_up(step, ids)?;
    }
    // Where this process did not enter its control group by itself, the helper has put it
    // there meanwhile. The program must not be born before that.
    let mut byte = [0];
    if File::from(go).read(&mut byte).step("wait for the helper")? == 0 {
        return Ok(None);
    }
    let mut children = SigSet::empty();
    children.add(Signal::SIGCHLD);
    children.thread_block().step("block SIGCHLD")?;
    let ends = SignalFd::with_flags(&children, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .step("receive SIGCHLD")?;
    let (failure, failure_write) = pipe2(OFlag::O_CLOEXEC).step("make a pipe")?;
    // SAFETY: this process has one thread, so the copy can do anything.
    let program = match unsafe { fork() }.step("start the program's process")? {
        ForkResult::Child => {
            drop((failure, ends, lifeline));
            program::run(script, inherit, failure_write)
        }
        ForkResult::Parent { child } => child,
    };
    drop((failure_write, inherit));
    leave_standard_streams(&null)?;
    let mut told = Vec::new();
    File::from(failure).read_to_end(&mut told).step("wait for the program's start")?;
    if !told.is_empty() {
        let told = String::from_utf8_lossy(&told);
        let (step, problem) = told.split_once('\n').unwrap_or((&told, ""));
        return Err(Problem { step: step.to_owned(), problem: problem.to_owned() });
    }
    reporter.say(&Report::Started);
    let end = look_after(program, &ends, &lifeline, &script.watch);
    // silent-ok: where the namespace ends with us this is not needed; it is
    // where a drill took the namespace away.
    let _ = killpg(program, Signal::SIGKILL);
    end
}

fn set_up(step: &Setup, ids: Ids) -> Result<(), Problem> {
    match step {
        Setup::MapIds => ns::map_ids(ids),
        Setup::OomScore(score) => {
            fs::write("/proc/self/oom_score_adj", score.to_string()).step("set the OOM score")
        }
        Setup::HostName(name) => sethostname(name).step("set the host name"),
        Setup::Loopback => ns::loopback_up(),
        Setup::PrivateMounts => mount::make_private(),
        Setup::Root(nodes) => mount::build_root(nodes),
        Setup::FreshProc => mount::mount_proc(Path::new("/proc")).step("mount /proc"),
        Setup::NoNesting => {
            fs::write("/proc/sys/user/max_user_namespaces", "0").step("forbid user namespaces")
        }
        Setup::SealProc => mount::seal_proc(),
        Setup::Hide => prctl::set_dumpable(false).step("close the first process to inspection"),
    }
}

/// Reaps what ends, until that is the program or something demands an end.
fn look_after(
    program: Pid,
    ends: &SignalFd,
    lifeline: &OwnedFd,
    limits: &Watch,
) -> Result<Option<ExitStatus>, Problem> {
    let watching = limits.memory_bytes.is_some() || limits.processes.is_some();
    let patience = watching.then_some(watch::INTERVAL);
    let mut looked = None;
    loop {
        let ready = await_any([lifeline.as_fd(), ends.as_fd()], patience);
        let [cut, _] = ready.step("wait for the program")?;
        if cut {
            return Ok(None);
        }
        ends.read_signal().step("receive SIGCHLD")?;
        if let Some(status) = reap(program)? {
            return Ok(Some(status));
        }
        // Every child that ends wakes this loop; the look is not that cheap.
        if watching && looked.is_none_or(|looked: Instant| looked.elapsed() >= watch::INTERVAL) {
            looked = Some(now());
            if let Some(status) = watch::exceeded(limits) {
                return Ok(Some(status));
            }
        }
    }
}

/// Reaps all that ended; the answer is the program's end if it was among them.
fn reap(program: Pid) -> Result<Option<ExitStatus>, Problem> {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(state) => match (state.pid(), ended(state)) {
                (Some(pid), Some(status)) if pid == program => return Ok(Some(status)),
                (Some(_), _) => {}
                (None, _) => return Ok(None),
            },
            Err(Errno::ECHILD) => return Ok(None),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno).step("wait for the program"),
        }
    }
}

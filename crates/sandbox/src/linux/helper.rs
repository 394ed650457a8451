//! The helper: the launcher's executable under another name.
//!
//! It stays outside of the namespaces, holds the control group, and waits for the tree to end. It
//! must be entered on the main thread before any other thread exists, since it clones itself.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use nix::fcntl::OFlag;
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::MsgFlags;
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, dup2_stderr, dup2_stdin, dup2_stdout, pipe2, setgroups};

use super::cgroup::CgroupHandle;
use super::init::{self, Init};
use super::ns::{self, Ids, NetworkId};
use super::own_user::OwnUser;
use super::{StepContext as _, StepFailure, features, rlimit, watch};
use crate::plan::HelperScript;
use crate::process::{ProcessError, await_any, packet, pidfd_open, take_inherited};
use crate::report::{HelperReport, HelperRequest, INHERIT_FD, LIFELINE_FD, REPORT_FD, REQUEST_FD};

/// The name under which an executable is the helper.
pub const ARG0: &str = "automaton-sandbox";

/// Runs the sandbox's helper if this process was started as one, and returns the exit code of
/// `main`. It must be the first call of `main`.
#[must_use]
pub fn helper_main_if_invoked() -> Option<ExitCode> {
    let arg0 = std::env::args_os().next()?;
    (Path::new(&arg0).file_name()? == ARG0).then(helper_main)
}

/// The channel on which the helper and the first process report.
#[derive(Debug)]
pub(crate) struct Reporter(OwnedFd);

impl Reporter {
    pub(crate) const fn new(socket: OwnedFd) -> Self {
        Self(socket)
    }

    /// Sends a report. If nobody listens, the run is ending anyway.
    pub(crate) fn send(&self, report: &HelperReport) {
        self.send_with(report, &[]);
    }

    /// Sends a report with descriptors.
    pub(crate) fn send_with(&self, report: &HelperReport, descriptors: &[BorrowedFd<'_>]) {
        if let Ok(text) = serde_json::to_vec(report) {
            // silent-ok: a launcher that is gone has also closed the lifeline.
            let _ = packet::send(&self.0, &text, descriptors, MsgFlags::empty());
        }
    }
}

impl AsFd for Reporter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn helper_main() -> ExitCode {
    // Otherwise a process started through a descriptor is named after the descriptor's number.
    // silent-ok: the name only helps people who look at processes.
    prctl::set_name(c"automaton-sandb").ok();
    // Without the channels no launcher started this process, and nobody can be told.
    let channels = [REQUEST_FD, REPORT_FD, LIFELINE_FD].map(take_inherited);
    let [Ok(request), Ok(report), Ok(lifeline)] = channels else { return ExitCode::FAILURE };
    let reporter = Reporter(report);
    let done = read_request(request).and_then(|request| match request {
        HelperRequest::Run { script, targets } => supervise(&script, &targets, &reporter, lifeline),
        HelperRequest::Probe { workspace } => {
            features::die_with_parent();
            // The launcher may have died before that.
            if matches!(await_any([lifeline.as_fd()], Some(Duration::ZERO)), Ok([false])) {
                reporter.send(&HelperReport::Features(Box::new(features::probe(workspace))));
            }
            Ok(())
        }
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            reporter.send(&HelperReport::Failed(problem));
            ExitCode::FAILURE
        }
    }
}

fn read_request(request: OwnedFd) -> Result<HelperRequest, StepFailure> {
    let mut text = Vec::new();
    File::from(request).read_to_end(&mut text).step("read the plan")?;
    serde_json::from_slice(&text).step("understand the plan")
}

/// Starts the process tree, and stays until it is gone.
fn supervise(
    script: &HelperScript,
    targets: &[i32],
    reporter: &Reporter,
    lifeline: OwnedFd,
) -> Result<(), StepFailure> {
    let inherit = targets
        .iter()
        .zip(INHERIT_FD..)
        .map(|(target, number)| Ok((take_inherited(number)?, *target)))
        .collect::<Result<Vec<_>, ProcessError>>()
        .step("receive the program's descriptors")?;
    let own = OwnUser::make(script)?;
    let caller = Ids::current();
    if caller.is_root() {
        // An ordinary user cannot do this and keeps its groups.
        setgroups(&[]).step("give up supplementary groups")?;
    }
    let group = script.cgroup.as_ref().map(CgroupHandle::make).transpose()?;
    let doors = group.as_ref().map_or(Ok(Vec::new()), CgroupHandle::entry_files)?;
    let enters_itself = !doors.is_empty();
    rlimit::forbid_core_dumps()?;
    let outer_network = NetworkId::current()?;
    let null = File::options().read(true).write(true).open("/dev/null").step("open /dev/null")?;
    let socket_bytes_max = watch::socket_bytes_max();
    let (go_read, go) = pipe2(OFlag::O_CLOEXEC).step("make a pipe")?;
    let ids = own.as_ref().map_or(caller, |own| own.ids);
    match ns::clone_as(ids, &script.namespaces).step("make the namespaces")? {
        ForkResult::Child => {
            // Both belong to the helper, whose end this process must notice.
            drop(go);
            std::mem::forget(group);
            init::run(Init {
                script,
                ids,
                trees: own.map(|own| own.trees),
                reporter,
                lifeline,
                inherit,
                null,
                cgroup_files: doors,
                socket_bytes_max,
                outer_network,
                go: go_read,
            })
        }
        ForkResult::Parent { child } => {
            drop((inherit, go_read, doors, own));
            let moved = group.as_ref().filter(|_| !enters_itself);
            let born = leave_standard_streams(&null)
                .and_then(|()| moved.map_or(Ok(()), |group| group.add(child)))
                .and_then(|()| File::from(go).write_all(b"g").step("start the first process"));
            if born.is_err() {
                kill_child(child);
            }
            wait_or_end(child, &lifeline);
            // silent-ok: the first process itself reports its end.
            let _ = waitpid(child, None);
            if let Some(group) = &group {
                reporter.send(&HelperReport::Usage { memory_kills: group.memory_kills() });
            }
            born
        }
    }
}

/// Waits until the first process ends. Kills it if the lifeline is closed.
fn wait_or_end(child: Pid, lifeline: &OwnedFd) {
    let Ok(pidfd) = pidfd_open(child) else { return kill_child(child) };
    loop {
        match await_any([pidfd.as_fd(), lifeline.as_fd()], None) {
            Ok([true, _]) => return,
            Ok([false, false]) => {}
            Ok([false, true]) | Err(_) => return kill_child(child),
        }
    }
}

fn kill_child(child: Pid) {
    // silent-ok: a process that is already gone is fine.
    let _ = kill(child, Signal::SIGKILL);
}

/// Releases the program's standard streams, so that only the program has them.
pub(crate) fn leave_standard_streams(null: &File) -> Result<(), StepFailure> {
    dup2_stdin(null)
        .and_then(|()| dup2_stdout(null))
        .and_then(|()| dup2_stderr(null))
        .step("leave the program's standard streams")
}

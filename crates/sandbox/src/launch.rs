//! Starts a plan in a helper process and supervises the run.
//!
//! The launcher never unshares, mounts or confines anything itself: all of that happens in the
//! helper, a new process without our memory. A run never outlives its [`RunHandle`], and never
//! the launching process.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::net::TcpListener;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use automaton_core::error::Classified;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, socketpair};
use nix::sys::stat::{Mode, fchmod};
use nix::unistd::pipe2;
use serde::Serialize;
use thiserror::Error;

use crate::linux::helper::ARG0;
use crate::plan::{Plan, PlanRefusal};
use crate::probe::{Feature, Probe};
use crate::process::spawn::{ProcessCommand, Stdio, spawn};
use crate::process::{Child, OwnProgram, ProcessError, await_any, packet};
use crate::pump::{DEATH_MAX, Input, RunEnd, RunLifetime};
use crate::report::{
    HelperReport, HelperRequest, INHERIT_FD, LIFELINE_FD, PACKET_BYTES_MAX, REPORT_FD, REQUEST_FD,
    StepFailure,
};
use crate::running::{KillHandle, RunHandle};
use crate::session::Session;
use crate::spec::{Defence, Defences};

/// The timeout for building the sandbox.
const SETUP_MAX: Duration = Duration::from_secs(20);

/// A launcher of sandboxed programs through a helper executable.
#[derive(Debug, Clone)]
pub struct Launcher {
    helper: OwnProgram,
}

/// The reason why a run could not be started or followed.
#[derive(Debug, Error, Classified)]
pub enum LaunchError {
    /// Pipes, sockets or memory for the run could not be created.
    #[error("cannot prepare the sandbox's channels")]
    #[class(Transient)]
    Channels(#[source] io::Error),
    /// The plan could not be serialised for the helper.
    #[error("cannot pass the plan to the sandbox's helper")]
    #[class(Internal)]
    Request(#[source] serde_json::Error),
    /// The helper executable could not be started.
    #[error("cannot start the sandbox's helper")]
    #[class(kind = _0.kind())]
    Helper(#[from] ProcessError),
    /// A step of building the sandbox failed. Nothing was run.
    #[error("the sandbox could not be built: {step}: {problem}")]
    #[class(Internal)]
    Setup {
        /// The step.
        step: String,
        /// The system's message.
        problem: String,
    },
    /// The program could not be executed inside the sandbox.
    #[error("cannot execute the program in the sandbox: {0}")]
    #[class(User)]
    Exec(String),
    /// The helper ended without a report. Nothing was run.
    #[error("the sandbox's helper ended without an answer")]
    #[class(Internal)]
    Silent,
    /// The helper did not build the sandbox in time.
    #[error("the sandbox was not built within {} seconds", SETUP_MAX.as_secs())]
    #[class(Transient)]
    Slow,
    /// A plan for a session was launched as a run, or the reverse.
    #[error("this plan is not of the kind that was asked for: {0}")]
    #[class(Internal)]
    Plan(&'static str),
    /// The task is invalid.
    #[error("the task was not started")]
    #[class(kind = _0.kind())]
    Task(#[from] PlanRefusal),
    /// The session has ended.
    #[error("the sandbox has ended, and with it what ran in it")]
    #[class(Transient)]
    Over,
    /// The run ended, but its exit status is unknown.
    #[error("the sandbox's helper was lost; how the program ended is not known")]
    #[class(Internal)]
    Lost,
    /// Processes of the run could not be killed.
    #[error("the sandbox's processes did not end when they were killed")]
    #[class(Internal)]
    Stuck,
    /// The run could not be followed.
    #[error("cannot follow the run")]
    #[class(Internal)]
    Follow(#[source] io::Error),
}

/// The helper process and our ends of its channels.
pub(crate) struct Helper {
    pub(crate) child: Child,
    pub(crate) report: OwnedFd,
    pub(crate) lifeline: OwnedFd,
}

impl Helper {
    /// Returns the helper with the result of `hear`, which reads its first report. If that fails,
    /// the helper is ended before the error is returned, so that no later run meets it.
    fn wait_for_first_report<T>(
        mut self,
        hear: impl FnOnce(&OwnedFd) -> Result<T, LaunchError>,
    ) -> Result<(Self, T), LaunchError> {
        let failed = match hear(&self.report) {
            Ok(heard) => return Ok((self, heard)),
            Err(failed) => failed,
        };
        // Closing the lifeline ends the process tree, and the helper ends with it.
        drop(self.lifeline);
        if self.child.wait_timeout(DEATH_MAX)?.is_none() {
            self.child.kill()?;
            self.child.wait_timeout(DEATH_MAX)?;
        }
        Err(failed)
    }
}

/// A program's standard streams, and our ends of them.
pub(crate) struct Streams {
    pub(crate) theirs: [Stdio; 3],
    pub(crate) input: Option<Input>,
    pub(crate) outputs: [Option<File>; 2],
}

impl Streams {
    /// Creates streams with these bytes as the input, and a pipe for each output.
    pub(crate) fn piped(bytes: &[u8]) -> Result<Self, LaunchError> {
        let (input, stdin) = match bytes {
            [] => (None, Stdio::Null),
            bytes => {
                let (theirs, ours) = reopenable_pipe()?;
                let pipe = non_blocking(ours)?;
                let input = Input { pipe, bytes: bytes.to_vec(), sent: 0 };
                (Some(input), Stdio::Descriptor(theirs))
            }
        };
        let (out, stdout) = reopenable_pipe()?;
        let (err, stderr) = reopenable_pipe()?;
        let outputs = [Some(non_blocking(out)?), Some(non_blocking(err)?)];
        Ok(Self {
            theirs: [stdin, Stdio::Descriptor(stdout), Stdio::Descriptor(stderr)],
            input,
            outputs,
        })
    }
}

impl Launcher {
    /// Creates a launcher that uses the small program [`ARG0`] beside this executable if it is
    /// usable. Otherwise it uses the executable itself, whose `main` must begin with
    /// [`crate::helper_main_if_invoked`].
    #[must_use]
    pub fn new(executable: PathBuf) -> Self {
        Self { helper: OwnProgram::beside(executable, ARG0) }
    }

    /// Tells whether the small program is used. Without it, starts only take longer.
    #[must_use]
    pub fn small_program_status(&self) -> Feature {
        let large = self.helper.fallback_reason();
        large.map_or(Feature::Available(()), |why| Feature::Missing(why.to_owned()))
    }

    /// Builds the sandbox and starts the program in it. Blocks until the program has been
    /// executed, which takes some milliseconds.
    ///
    /// # Errors
    /// Fails if any step fails. Then nothing was run.
    pub fn launch(&self, plan: &Plan) -> Result<RunHandle, LaunchError> {
        if plan.script.exec.is_none() {
            return Err(LaunchError::Plan("it has no program; open it as a session"));
        }
        let started = now();
        let streams = Streams::piped(&plan.stdin)?;
        let (helper, proxy) =
            self.start_plan(plan, streams.theirs)?.wait_for_first_report(await_start)?;
        let killer = KillHandle::new(helper.lifeline);
        let tie = RunLifetime::Helper(helper.child);
        let deadline = plan.wall.map(|wall| started + wall);
        let capture = plan.capture;
        let enforcement = plan.enforcement;
        let end = RunEnd { tie, report: helper.report, killer, deadline, started, enforcement };
        let mut running = RunHandle::start(end, streams.input, streams.outputs, capture)?;
        running.proxy = proxy;
        Ok(running)
    }

    /// Builds the sandbox and keeps it open. Programs are started in it later.
    ///
    /// # Errors
    /// Fails if any step fails. Then nothing of it remains.
    pub fn open(&self, plan: &Plan) -> Result<Session, LaunchError> {
        if plan.script.exec.is_some() {
            return Err(LaunchError::Plan("it has a program; launch it"));
        }
        let streams = [Stdio::Null, Stdio::Null, Stdio::Null];
        let (helper, proxy) = self.start_plan(plan, streams)?.wait_for_first_report(await_start)?;
        Ok(Session::new(plan, helper, proxy))
    }

    fn start_plan(&self, plan: &Plan, streams: [Stdio; 3]) -> Result<Helper, LaunchError> {
        let inherit = plan.inherit.iter().map(|inherit| inherit.descriptor.try_clone());
        let inherit = inherit.collect::<io::Result<_>>().map_err(LaunchError::Channels)?;
        let request = HelperRequest::Run {
            script: Box::new(plan.script.clone()),
            targets: plan.inherit.iter().map(|inherit| inherit.target).collect(),
        };
        self.start(&request, plan.defences, streams, inherit)
    }

    pub(crate) fn probe_features(&self, workspace: Option<&Path>) -> Result<Probe, LaunchError> {
        let stdio = [Stdio::Null, Stdio::Null, Stdio::Null];
        let request = HelperRequest::Probe { workspace: workspace.map(Path::to_owned) };
        let helper = self.start(&request, Defences::default(), stdio, Vec::new())?;
        let (mut helper, probe) =
            helper.wait_for_first_report(|report| match await_report(report)? {
                (HelperReport::Features(probe), _) => Ok(probe),
                _ => Err(LaunchError::Silent),
            })?;
        helper.child.wait()?;
        Ok(*probe)
    }

    fn start(
        &self,
        request: &HelperRequest,
        defences: Defences,
        stdio: [Stdio; 3],
        inherit: Vec<OwnedFd>,
    ) -> Result<Helper, LaunchError> {
        let (report, report_given) = report_channel()?;
        let (lifeline_given, lifeline) = pipe()?;
        let [stdin, stdout, stderr] = stdio;
        let mut command = ProcessCommand::from_own_program(&self.helper)
            .arg0(ARG0)
            .stdin(stdin)
            .stdout(stdout)
            .stderr(stderr)
            .own_session()
            .descriptor(sealed_file(request)?, REQUEST_FD)
            .descriptor(report_given, REPORT_FD)
            .descriptor(lifeline_given, LIFELINE_FD);
        for (descriptor, target) in inherit.into_iter().zip(INHERIT_FD..) {
            command = command.descriptor(descriptor, target);
        }
        if !defences.has(Defence::Descriptors) {
            command = command.leaky();
        }
        if !defences.has(Defence::Environment) {
            for (name, value) in std::env::vars_os() {
                command = command.env(name, value);
            }
        }
        Ok(Helper { child: spawn(command)?, report, lifeline })
    }
}

/// Serialises a request into a sealed memory file that nobody can change.
pub(crate) fn sealed_file(request: &impl Serialize) -> Result<OwnedFd, LaunchError> {
    let text = serde_json::to_vec(request).map_err(LaunchError::Request)?;
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let mut file = File::from(memfd_create(c"automaton-sandbox", flags).map_err(channel_error)?);
    file.write_all(&text).and_then(|()| file.rewind()).map_err(LaunchError::Channels)?;
    let seals = SealFlag::F_SEAL_WRITE | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SHRINK;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals)).map_err(channel_error)?;
    Ok(file.into())
}

/// The name of the last step, which fails because of the caller's input.
pub(crate) const EXEC_STEP: &str = "execute the program";

/// Waits until the program runs, or the session waits for orders. The proxy's listener may arrive
/// before that.
fn await_start(report: &OwnedFd) -> Result<Option<TcpListener>, LaunchError> {
    let mut proxy = None;
    loop {
        match await_report(report)? {
            (HelperReport::Started, _) => return Ok(proxy),
            (HelperReport::Proxy, Some(socket)) => {
                let listener = TcpListener::from(socket);
                listener.set_nonblocking(true).map_err(LaunchError::Channels)?;
                proxy = Some(listener);
            }
            // The sandbox's first process is gone, and the programs that it started are unknown.
            _ => return Err(LaunchError::Lost),
        }
    }
}

/// Waits for the next report on a channel. Returns an error if it reports a failure.
pub(crate) fn await_report(
    channel: &OwnedFd,
) -> Result<(HelperReport, Option<OwnedFd>), LaunchError> {
    let deadline = now() + SETUP_MAX;
    loop {
        let left = deadline.saturating_duration_since(now());
        let [ready] = await_any([channel.as_fd()], Some(left)).map_err(channel_error)?;
        if ready {
            break;
        }
        if left.is_zero() {
            return Err(LaunchError::Slow);
        }
    }
    match receive_report(channel)? {
        None => Err(LaunchError::Silent),
        Some((HelperReport::Failed(StepFailure { step, problem }), _)) => {
            Err(match step.as_str() {
                EXEC_STEP => LaunchError::Exec(problem),
                _ => LaunchError::Setup { step, problem },
            })
        }
        Some(report) => Ok(report),
    }
}

/// Returns the next waiting report and its descriptor, if there is one. An unreadable report
/// counts as none: the helper is then treated as lost.
pub(crate) fn receive_report(
    report: &OwnedFd,
) -> Result<Option<(HelperReport, Option<OwnedFd>)>, LaunchError> {
    let mut text = vec![0; PACKET_BYTES_MAX];
    match packet::receive(report, &mut text, MsgFlags::MSG_DONTWAIT) {
        Ok((0, _)) | Err(Errno::EAGAIN | Errno::ECONNRESET) => Ok(None),
        Ok((count, descriptors)) => {
            let report = serde_json::from_slice(&text[..count]).ok();
            Ok(report.map(|report| (report, descriptors.into_iter().next())))
        }
        Err(errno) => Err(LaunchError::Follow(errno.into())),
    }
}

pub(crate) fn channel_error(errno: Errno) -> LaunchError {
    LaunchError::Channels(errno.into())
}

/// Creates a socket for reports. Returns our end and the reporter's end.
pub(crate) fn report_channel() -> Result<(OwnedFd, OwnedFd), LaunchError> {
    socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
        .map_err(channel_error)
}

pub(crate) fn pipe() -> Result<(OwnedFd, OwnedFd), LaunchError> {
    pipe2(OFlag::O_CLOEXEC).map_err(channel_error)
}

/// Creates a pipe whose ends can be reopened by path, as `/dev/stdout` does, by a program of
/// another user.
fn reopenable_pipe() -> Result<(OwnedFd, OwnedFd), LaunchError> {
    let ends = pipe()?;
    fchmod(&ends.0, Mode::from_bits_truncate(0o666)).map_err(channel_error)?;
    Ok(ends)
}

fn non_blocking(pipe: OwnedFd) -> Result<File, LaunchError> {
    fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(channel_error)?;
    Ok(pipe.into())
}

/// Locks a mutex. A panic elsewhere leaves the guarded values valid.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(
    clippy::disallowed_methods,
    reason = "deadlines of processes, never stored or decided upon"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

//! Starts a plan in a helper process and looks after the run.
//!
//! The launcher never unshares, mounts or confines anything itself: all of
//! that happens in the helper, which is a fresh program without our memory.
//! A run never outlives its [`RunHandle`], and never the launching process.

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

/// The longest that building the sandbox may take before it counts as hung.
const SETUP_MAX: Duration = Duration::from_secs(20);

/// Starts sandboxed programs through a helper executable.
#[derive(Debug, Clone)]
pub struct Launcher {
    helper: OwnProgram,
}

/// Why a run could not be started or followed to its end.
#[derive(Debug, Error, Classified)]
pub enum LaunchError {
    /// Pipes, sockets or memory for the run could not be had.
    #[error("cannot prepare the sandbox's channels")]
    #[class(Transient)]
    Channels(#[source] io::Error),
    /// The plan could not be written down for the helper.
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
        /// Which step.
        step: String,
        /// What the system said.
        problem: String,
    },
    /// The program could not be executed inside the sandbox.
    #[error("cannot execute the program in the sandbox: {0}")]
    #[class(User)]
    Exec(String),
    /// The helper ended without a word. Nothing was run.
    #[error("the sandbox's helper ended without an answer")]
    #[class(Internal)]
    Silent,
    /// The helper took longer than any working machine needs.
    #[error("the sandbox was not built within {} seconds", SETUP_MAX.as_secs())]
    #[class(Transient)]
    Slow,
    /// A plan that opens a session was to be launched, or the other way round.
    #[error("this plan is not of the kind that was asked for: {0}")]
    #[class(Internal)]
    Plan(&'static str),
    /// The task makes no sense.
    #[error("the task was not started")]
    #[class(kind = _0.kind())]
    Task(#[from] PlanRefusal),
    /// The session is over.
    #[error("the sandbox has ended, and with it what ran in it")]
    #[class(Transient)]
    Over,
    /// The run ended, but how is not known.
    #[error("the sandbox's helper was lost; how the program ended is not known")]
    #[class(Internal)]
    Lost,
    /// Processes of the run could not be ended.
    #[error("the sandbox's processes did not end when they were killed")]
    #[class(Internal)]
    Stuck,
    /// The run could not be followed.
    #[error("cannot follow the run")]
    #[class(Internal)]
    Follow(#[source] io::Error),
}

/// The helper, and our ends of its channels.
pub(crate) struct Helper {
    pub(crate) child: Child,
    pub(crate) report: OwnedFd,
    pub(crate) lifeline: OwnedFd,
}

impl Helper {
    /// The helper, and what it has to say first. One that fails to say it is waited for
    /// before that is told: nothing of it is left then, and no later run meets it.
    fn after<T>(
        mut self,
        hear: impl FnOnce(&OwnedFd) -> Result<T, LaunchError>,
    ) -> Result<(Self, T), LaunchError> {
        let failed = match hear(&self.report) {
            Ok(heard) => return Ok((self, heard)),
            Err(failed) => failed,
        };
        // By this the tree is told to end, and the helper ends with it.
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
    /// These bytes on its input, and two pipes from its outputs.
    pub(crate) fn piped(bytes: &[u8]) -> Result<Self, LaunchError> {
        let (input, stdin) = match bytes {
            [] => (None, Stdio::Null),
            bytes => {
                let (theirs, ours) = stream()?;
                let pipe = non_blocking(ours)?;
                let input = Input { pipe, bytes: bytes.to_vec(), sent: 0 };
                (Some(input), Stdio::Descriptor(theirs))
            }
        };
        let (out, stdout) = stream()?;
        let (err, stderr) = stream()?;
        let outputs = [Some(non_blocking(out)?), Some(non_blocking(err)?)];
        Ok(Self {
            theirs: [stdin, Stdio::Descriptor(stdout), Stdio::Descriptor(stderr)],
            input,
            outputs,
        })
    }
}

impl Launcher {
    /// Uses the small program [`ARG0`] beside this executable, or else the executable, whose
    /// `main` must begin with [`crate::helper_main_if_invoked`].
    #[must_use]
    pub fn new(executable: PathBuf) -> Self {
        Self { helper: OwnProgram::beside(executable, ARG0) }
    }

    /// Whether it is the small program that is used; what is missing costs time alone.
    #[must_use]
    pub fn quick_start(&self) -> Feature {
        let large = self.helper.why_large();
        large.map_or(Feature::Available(()), |why| Feature::Missing(why.to_owned()))
    }

    /// Builds the sandbox and starts the program in it. Blocks until the
    /// program has been executed, which takes some milliseconds.
    ///
    /// # Errors
    ///
    /// When any step fails; then nothing was run.
    pub fn launch(&self, plan: &Plan) -> Result<RunHandle, LaunchError> {
        if plan.script.exec.is_none() {
            return Err(LaunchError::Plan("it has no program; open it as a session"));
        }
        let started = now();
        let streams = Streams::piped(&plan.stdin)?;
        let (helper, proxy) = self.start_plan(plan, streams.theirs)?.after(await_start)?;
        let killer = KillHandle::new(helper.lifeline);
        let tie = RunLifetime::Helper(helper.child);
        let deadline = plan.wall.map(|wall| started + wall);
        let (capture, enforcement) = (plan.capture, plan.enforcement);
        let end = RunEnd { tie, report: helper.report, killer, deadline, started, enforcement };
        let mut running = RunHandle::follow(end, streams.input, streams.outputs, capture)?;
        running.proxy = proxy;
        Ok(running)
    }

    /// Builds the sandbox and leaves it open: programs are started in it later.
    ///
    /// # Errors
    ///
    /// When any step fails; then nothing of it is left.
    pub fn open(&self, plan: &Plan) -> Result<Session, LaunchError> {
        if plan.script.exec.is_some() {
            return Err(LaunchError::Plan("it has a program; launch it"));
        }
        let streams = [Stdio::Null, Stdio::Null, Stdio::Null];
        let (helper, proxy) = self.start_plan(plan, streams)?.after(await_start)?;
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
        let (mut helper, probe) = helper.after(|report| match await_report(report)? {
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
        let (report, report_given) = channel()?;
        let (lifeline_given, lifeline) = pipe()?;
        let [stdin, stdout, stderr] = stdio;
        let mut command = ProcessCommand::of(&self.helper)
            .arg0(ARG0)
            .stdin(stdin)
            .stdout(stdout)
            .stderr(stderr)
            .own_session()
            .descriptor(written(request)?, REQUEST_FD)
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

/// The request in a file in memory that nobody can change any more.
pub(crate) fn written(request: &impl Serialize) -> Result<OwnedFd, LaunchError> {
    let text = serde_json::to_vec(request).map_err(LaunchError::Request)?;
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let mut file = File::from(memfd_create(c"automaton-sandbox", flags).map_err(channels)?);
    file.write_all(&text).and_then(|()| file.rewind()).map_err(LaunchError::Channels)?;
    let seals = SealFlag::F_SEAL_WRITE | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SHRINK;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals)).map_err(channels)?;
    Ok(file.into())
}

/// The name of the last step, which fails through the caller's mistake.
pub(crate) const EXEC_STEP: &str = "execute the program";

/// Waits until the program runs, or orders are awaited; what the proxy listens on may come
/// before.
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
            // What runs first in the sandbox is gone; what it had started, nobody knows.
            _ => return Err(LaunchError::Lost),
        }
    }
}

/// The next word on a channel, unless that is a failure.
pub(crate) fn await_report(
    channel: &OwnedFd,
) -> Result<(HelperReport, Option<OwnedFd>), LaunchError> {
    let deadline = now() + SETUP_MAX;
    loop {
        let left = deadline.saturating_duration_since(now());
        let [ready] = await_any([channel.as_fd()], Some(left)).map_err(channels)?;
        if ready {
            break;
        }
        if left.is_zero() {
            return Err(LaunchError::Slow);
        }
    }
    match receive(channel)? {
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

/// The next report and what came with it, if one is there. What cannot be read counts as
/// none: the helper is then treated as lost.
pub(crate) fn receive(
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

pub(crate) fn channels(errno: Errno) -> LaunchError {
    LaunchError::Channels(errno.into())
}

/// A socket for reports, and the end of whoever reports.
pub(crate) fn channel() -> Result<(OwnedFd, OwnedFd), LaunchError> {
    socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
        .map_err(channels)
}

pub(crate) fn pipe() -> Result<(OwnedFd, OwnedFd), LaunchError> {
    pipe2(OFlag::O_CLOEXEC).map_err(channels)
}

/// A pipe that whoever has an end of it can open anew, as is done by `/dev/stdout`: a program
/// need not be the user who made it.
fn stream() -> Result<(OwnedFd, OwnedFd), LaunchError> {
    let ends = pipe()?;
    fchmod(&ends.0, Mode::from_bits_truncate(0o666)).map_err(channels)?;
    Ok(ends)
}

fn non_blocking(pipe: OwnedFd) -> Result<File, LaunchError> {
    fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(channels)?;
    Ok(pipe.into())
}

/// A panic elsewhere leaves what these locks hold as good as it was.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(
    clippy::disallowed_methods,
    reason = "deadlines of processes, never stored or decided upon"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

//! Starts a plan in a helper process and looks after the run.
//!
//! The launcher never unshares, mounts or confines anything itself: all of
//! that happens in the helper, which is a fresh program without our memory.
//! A run never outlives its [`Running`], and never the launching process.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use automaton_core::error::{Classified, Kind};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, socketpair};
use nix::unistd::pipe2;
use thiserror::Error;

use crate::capture::{Captured, Keeper};
use crate::linux::helper::ARG0;
use crate::outcome::{ExitStatus, Outcome};
use crate::plan::Plan;
use crate::probe::Probe;
use crate::process::spawn::{Command, Stdio, spawn};
use crate::process::{Child, ProcessError, await_any};
use crate::pump::{Input, Pump};
use crate::report::{
    INHERIT_FD, LIFELINE_FD, PACKET_BYTES_MAX, Problem, REPORT_FD, REQUEST_FD, Report, Request,
};
use crate::spec::{Capture, Defence, Defences};

/// The longest that building the sandbox may take before it counts as hung.
const SETUP_MAX: Duration = Duration::from_secs(20);

/// Starts sandboxed programs through a helper executable.
#[derive(Debug, Clone)]
pub struct Launcher {
    helper: PathBuf,
}

/// Why a run could not be started or followed to its end.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// Pipes, sockets or memory for the run could not be had.
    #[error("cannot prepare the sandbox's channels")]
    Channels(#[source] io::Error),
    /// The plan could not be written down for the helper.
    #[error("cannot pass the plan to the sandbox's helper")]
    Request(#[source] serde_json::Error),
    /// The helper executable could not be started.
    #[error("cannot start the sandbox's helper")]
    Helper(#[from] ProcessError),
    /// A step of building the sandbox failed. Nothing was run.
    #[error("the sandbox could not be built: {step}: {problem}")]
    Setup {
        /// Which step.
        step: String,
        /// What the system said.
        problem: String,
    },
    /// The program could not be executed inside the sandbox.
    #[error("cannot execute the program in the sandbox: {0}")]
    Exec(String),
    /// The helper ended without a word. Nothing was run.
    #[error("the sandbox's helper ended without an answer")]
    Silent,
    /// The helper took longer than any working machine needs.
    #[error("the sandbox was not built within {} seconds", SETUP_MAX.as_secs())]
    Slow,
    /// The run ended, but how is not known.
    #[error("the sandbox's helper was lost; how the program ended is not known")]
    Lost,
    /// Processes of the run could not be ended.
    #[error("the sandbox's processes did not end when they were killed")]
    Stuck,
    /// The run could not be followed.
    #[error("cannot follow the run")]
    Follow(#[source] io::Error),
}

impl LaunchError {
    /// Whether the program was never run.
    #[must_use]
    pub const fn is_before_start(&self) -> bool {
        !matches!(self, Self::Lost | Self::Stuck | Self::Follow(_))
    }
}

impl Classified for LaunchError {
    fn kind(&self) -> Kind {
        match self {
            Self::Exec(_) => Kind::User,
            Self::Helper(error) => error.kind(),
            Self::Channels(_) | Self::Slow => Kind::Transient,
            Self::Request(_)
            | Self::Setup { .. }
            | Self::Silent
            | Self::Lost
            | Self::Stuck
            | Self::Follow(_) => Kind::Internal,
        }
    }
}

/// The helper, and our ends of its channels.
struct Helper {
    child: Child,
    report: OwnedFd,
    lifeline: OwnedFd,
}

impl Launcher {
    /// Uses this executable, whose `main` must begin with
    /// [`crate::helper_main_if_invoked`].
    #[must_use]
    pub const fn new(helper: PathBuf) -> Self {
        Self { helper }
    }

    /// Builds the sandbox and starts the program in it. Blocks until the
    /// program has been executed, which takes some milliseconds.
    ///
    /// # Errors
    ///
    /// When any step fails; then nothing was run.
    pub fn launch(&self, plan: &Plan) -> Result<Running, LaunchError> {
        let started = now();
        let (input, stdin) = match plan.stdin.is_empty() {
            true => (None, Stdio::Null),
            false => {
                let (theirs, ours) = pipe()?;
                let bytes = plan.stdin.clone();
                let input = Input { pipe: non_blocking(ours)?, bytes, sent: 0 };
                (Some(input), Stdio::Descriptor(theirs))
            }
        };
        let (out, stdout) = pipe()?;
        let (err, stderr) = pipe()?;
        let outputs = [Some(non_blocking(out)?), Some(non_blocking(err)?)];
        let inherit = plan.inherit.iter().map(|inherit| inherit.descriptor.try_clone());
        let inherit = inherit.collect::<io::Result<_>>().map_err(LaunchError::Channels)?;
        let request = Request::Run {
            script: Box::new(plan.script.clone()),
            targets: plan.inherit.iter().map(|inherit| inherit.target).collect(),
        };
        let stdio = [stdin, Stdio::Descriptor(stdout), Stdio::Descriptor(stderr)];
        let mut helper = self.start(&request, plan.defences, stdio, inherit)?;
        let Report::Started = next_report(&mut helper)? else { return Err(LaunchError::Silent) };
        let lifeline = Some(helper.lifeline);
        let killer = Killer(Arc::new(Mutex::new(End { lifeline, reason: None })));
        let Capture { stdout_bytes_max, stderr_bytes_max } = plan.capture;
        let kept = [Keeper::new(stdout_bytes_max), Keeper::new(stderr_bytes_max)];
        let kept = Arc::new(Mutex::new(kept));
        let pump = Pump {
            child: helper.child,
            report: helper.report,
            input,
            outputs,
            kept: Arc::clone(&kept),
            killer: killer.clone(),
            deadline: plan.wall.map(|wall| started + wall),
            started,
            enforcement: plan.enforcement,
        };
        let thread = std::thread::Builder::new()
            .name("sandbox-pump".to_owned())
            .spawn(move || pump.run())
            .map_err(LaunchError::Channels)?;
        Ok(Running { killer, kept, pump: Some(thread) })
    }

    pub(crate) fn probe_features(&self) -> Result<Probe, LaunchError> {
        let stdio = [Stdio::Null, Stdio::Null, Stdio::Null];
        let mut helper = self.start(&Request::Probe, Defences::default(), stdio, Vec::new())?;
        let Report::Features(probe) = next_report(&mut helper)? else {
            return Err(LaunchError::Silent);
        };
        helper.child.wait()?;
        Ok(*probe)
    }

    fn start(
        &self,
        request: &Request,
        defences: Defences,
        stdio: [Stdio; 3],
        inherit: Vec<OwnedFd>,
    ) -> Result<Helper, LaunchError> {
        let (report, report_given) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
                .map_err(channels)?;
        let (lifeline_given, lifeline) = pipe()?;
        let [stdin, stdout, stderr] = stdio;
        let mut command = Command::new(&self.helper)
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
fn written(request: &Request) -> Result<OwnedFd, LaunchError> {
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

/// The helper's next word, unless that is a failure.
fn next_report(helper: &mut Helper) -> Result<Report, LaunchError> {
    let deadline = now() + SETUP_MAX;
    loop {
        let left = deadline.saturating_duration_since(now());
        let [ready] = await_any([helper.report.as_fd()], Some(left)).map_err(channels)?;
        if ready {
            break;
        }
        if left.is_zero() {
            // Cutting the lifeline by dropping it would do; this is quicker.
            helper.child.kill()?;
            return Err(LaunchError::Slow);
        }
    }
    let report = receive(&helper.report)?;
    if let None | Some(Report::Failed(_)) = report {
        helper.child.wait()?;
    }
    match report {
        None => Err(LaunchError::Silent),
        Some(Report::Failed(Problem { step, problem })) => Err(match step.as_str() {
            EXEC_STEP => LaunchError::Exec(problem),
            _ => LaunchError::Setup { step, problem },
        }),
        Some(report) => Ok(report),
    }
}

/// The next report, if one is there. What cannot be read counts as none: the
/// helper is then treated as lost.
pub(crate) fn receive(report: &OwnedFd) -> Result<Option<Report>, LaunchError> {
    let mut packet = vec![0; PACKET_BYTES_MAX];
    match recv(report.as_raw_fd(), &mut packet, MsgFlags::MSG_DONTWAIT) {
        Ok(0) | Err(Errno::EAGAIN | Errno::ECONNRESET) => Ok(None),
        Ok(count) => Ok(serde_json::from_slice(&packet[..count]).ok()),
        Err(errno) => Err(LaunchError::Follow(errno.into())),
    }
}

fn channels(errno: Errno) -> LaunchError {
    LaunchError::Channels(errno.into())
}

fn pipe() -> Result<(OwnedFd, OwnedFd), LaunchError> {
    pipe2(OFlag::O_CLOEXEC).map_err(channels)
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

/// A run that has begun. Dropping it ends the run and its whole tree.
#[derive(Debug)]
pub struct Running {
    killer: Killer,
    /// Of standard output and standard error.
    kept: Arc<Mutex<[Keeper; 2]>>,
    pump: Option<JoinHandle<Result<Outcome, LaunchError>>>,
}

impl Running {
    /// Blocks until the run has ended and all its processes are gone.
    ///
    /// # Errors
    ///
    /// When the helper was lost, so that the end is not known, or when a
    /// process did not die.
    pub fn wait(mut self) -> Result<Outcome, LaunchError> {
        match self.pump.take().map(JoinHandle::join) {
            Some(Ok(outcome)) => outcome,
            Some(Err(_)) | None => Err(LaunchError::Lost),
        }
    }

    /// Whether the run is over, so that [`Running::wait`] would not block.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.pump.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends the run and its whole tree; [`Running::wait`] tells when it is done.
    pub fn kill(&self) {
        self.killer.kill();
    }

    /// A handle that ends the run from anywhere.
    #[must_use]
    pub fn killer(&self) -> Killer {
        self.killer.clone()
    }

    /// What the program has written so far: standard output, standard error.
    #[must_use]
    pub fn output(&self) -> (Captured, Captured) {
        let [stdout, stderr] = &*locked(&self.kept);
        (stdout.snapshot(), stderr.snapshot())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(pump) = self.pump.take() {
            self.killer.kill();
            // silent-ok: nobody is left to hear how the run ended.
            drop(pump.join());
        }
    }
}

/// Ends a run and its whole tree, from any thread. A killer that outlives its
/// run does nothing.
#[derive(Debug, Clone)]
pub struct Killer(Arc<Mutex<End>>);

#[derive(Debug)]
struct End {
    lifeline: Option<OwnedFd>,
    reason: Option<ExitStatus>,
}

impl Killer {
    /// Ends the run. Returns at once.
    pub fn kill(&self) {
        self.end(ExitStatus::Killed);
    }

    /// Ends the run for this reason, unless it was ended before.
    pub(crate) fn end(&self, reason: ExitStatus) {
        let mut end = locked(&self.0);
        if end.lifeline.take().is_some() {
            end.reason = Some(reason);
        }
    }

    pub(crate) fn reason(&self) -> Option<ExitStatus> {
        locked(&self.0).reason
    }
}

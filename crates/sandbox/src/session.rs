//! A sandbox that stays open. Its programs run beside each other, see each other's files, ports
//! and processes, and may leave processes running. It ends as a whole.
//!
//! Each program gets the full protection of the session's plan. A session must never be adopted
//! by another process: it dies with the one that opened it.

use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::MsgFlags;

use crate::launch::{
    Helper, LaunchError, Streams, await_report, channel_error, lock, now, pipe, report_channel,
    sealed_file,
};
use crate::linux::cgroup;
use crate::outcome::{ExitStatus, SessionUsage};
use crate::plan::Plan;
use crate::process::spawn::Stdio;
use crate::process::{Child, packet};
use crate::pump::{DEATH_MAX, RunEnd, RunLifetime};
use crate::report::{HelperReport, SessionRequest};
use crate::running::{KillHandle, RunHandle};
use crate::spec::SessionProgram;

/// The byte that accompanies each order, since no descriptor is sent without data.
const KNOCK: &[u8] = &[1];

/// An open sandbox. Dropping it ends all of its programs.
#[derive(Debug)]
pub struct Session {
    plan: Plan,
    killer: KillHandle,
    helper: std::sync::Mutex<Child>,
    helper_pid: i32,
    orders: OwnedFd,
    proxy: Option<TcpListener>,
}

impl Session {
    pub(crate) fn new(plan: &Plan, helper: Helper, proxy: Option<TcpListener>) -> Self {
        Self {
            plan: plan.clone(),
            killer: KillHandle::new(helper.lifeline),
            helper_pid: helper.child.pid(),
            helper: std::sync::Mutex::new(helper.child),
            orders: helper.report,
            proxy,
        }
    }

    /// Starts a program. Blocks until it has been executed.
    ///
    /// # Errors
    /// Fails if the task is invalid, cannot be executed, or the session is over. Then nothing was
    /// run.
    pub fn run(&self, task: &SessionProgram) -> Result<RunHandle, LaunchError> {
        self.start(task, Streams::piped(&task.stdin)?, false)
    }

    /// Starts a program with this terminal as its standard streams.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub(crate) fn run_at(
        &self,
        task: &SessionProgram,
        terminal: &OwnedFd,
    ) -> Result<RunHandle, LaunchError> {
        let stream = || terminal.try_clone().map(Stdio::Descriptor).map_err(LaunchError::Channels);
        let theirs = [stream()?, stream()?, stream()?];
        self.start(task, Streams { theirs, input: None, outputs: [None, None] }, true)
    }

    fn start(
        &self,
        task: &SessionProgram,
        streams: Streams,
        terminal: bool,
    ) -> Result<RunHandle, LaunchError> {
        let Streams { theirs, input, outputs } = streams;
        let started = now();
        let order = SessionRequest::Run { exec: self.plan.task(task)?, terminal };
        let (report, told) = report_channel()?;
        let (lifeline_given, lifeline) = pipe()?;
        let theirs = theirs.into_iter().map(descriptor).collect::<Result<Vec<_>, _>>()?;
        let given = theirs.iter().chain([&told, &lifeline_given]);
        self.send_order(&order, &given.map(|fd| fd.as_fd()).collect::<Vec<_>>())?;
        drop((theirs, told, lifeline_given));
        let (HelperReport::Started, _) = self.await_reply(&report)? else {
            return Err(LaunchError::Silent);
        };
        let end = RunEnd {
            tie: RunLifetime::Session(self.killer.clone()),
            report,
            killer: KillHandle::new(lifeline),
            deadline: task.wall.map(|wall| started + wall),
            started,
            enforcement: self.plan.enforcement,
        };
        RunHandle::start(end, input, outputs, task.capture)
    }

    /// Connects to a port of the loopback inside. The stream is non-blocking and may not be
    /// connected yet: it is once it is writable, and its socket error tells if it failed.
    ///
    /// # Errors
    /// Fails if nobody listens there, or the session is over.
    pub fn connect(&self, port: u16) -> Result<TcpStream, LaunchError> {
        let (report, told) = report_channel()?;
        self.send_order(&SessionRequest::Connect { port }, &[told.as_fd()])?;
        drop(told);
        match self.await_reply(&report)? {
            (HelperReport::Connected, Some(socket)) => Ok(TcpStream::from(socket)),
            _ => Err(LaunchError::Silent),
        }
    }

    /// Takes the non-blocking listener on which the programs look for a proxy. It exists once, if
    /// the network is [`crate::Network::Served`] or [`crate::Network::Proxied`].
    #[must_use]
    pub const fn take_proxy(&mut self) -> Option<TcpListener> {
        self.proxy.take()
    }

    /// Returns a handle that ends the session from any thread.
    #[must_use]
    pub fn killer(&self) -> KillHandle {
        self.killer.clone()
    }

    /// Returns true if all of its processes are gone.
    #[must_use]
    pub fn is_over(&self) -> bool {
        // A helper that cannot be queried has been reaped.
        !matches!(lock(&self.helper).try_wait(), Ok(None))
    }

    /// Returns the session's current resource usage.
    #[must_use]
    pub fn usage(&self) -> SessionUsage {
        let group = self.plan.script.cgroup.as_ref();
        let helper = self.helper_pid.unsigned_abs();
        group.map(|group| cgroup::usage(&group.base, helper)).unwrap_or_default()
    }

    fn send_order(
        &self,
        order: &SessionRequest,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), LaunchError> {
        let text = sealed_file(order)?;
        let descriptors: Vec<BorrowedFd<'_>> =
            std::iter::once(text.as_fd()).chain(descriptors.iter().copied()).collect();
        match packet::send(&self.orders, KNOCK, &descriptors, MsgFlags::MSG_DONTWAIT) {
            Err(Errno::EPIPE | Errno::ECONNRESET | Errno::ENOTCONN) => Err(LaunchError::Over),
            sent => sent.map_err(channel_error),
        }
    }

    /// Waits for the reply to an order. Silence means that the session has ended.
    fn await_reply(
        &self,
        report: &OwnedFd,
    ) -> Result<(HelperReport, Option<OwnedFd>), LaunchError> {
        match await_report(report) {
            Err(LaunchError::Silent) => Err(LaunchError::Over),
            answer => answer,
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.killer.end(ExitStatus::Killed);
        let mut helper = lock(&self.helper);
        if let Ok(None) = helper.wait_timeout(DEATH_MAX) {
            // silent-ok: nobody is left to receive the failure.
            drop(helper.kill().and_then(|()| helper.wait_timeout(DEATH_MAX)));
        }
    }
}

fn descriptor(stream: Stdio) -> Result<OwnedFd, LaunchError> {
    match stream {
        Stdio::Descriptor(descriptor) => Ok(descriptor),
        Stdio::Null | Stdio::Inherit => {
            let null = File::options().read(true).write(true).open("/dev/null");
            null.map(OwnedFd::from).map_err(LaunchError::Channels)
        }
    }
}

//! A sandbox that stays open: programs run in it beside each other, see each other's files,
//! ports and processes, and leave running what they will. It ends as a whole.
//!
//! Each program gets the protection of the session's plan anew. Must never be adopted by
//! another process: it dies with the one that opened it.

use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::MsgFlags;

use crate::launch::{
    Helper, LaunchError, Streams, await_report, channel, channels, locked, now, pipe, written,
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

/// What goes with each order, since no descriptor travels without a byte.
const KNOCK: &[u8] = &[1];

/// A sandbox that is open. Dropping it ends all that runs in it.
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

    /// Starts a program beside the others. Blocks until it has been executed.
    ///
    /// # Errors
    ///
    /// When it makes no sense, cannot be executed, or the session is over; then nothing was
    /// run.
    pub fn run(&self, task: &SessionProgram) -> Result<RunHandle, LaunchError> {
        self.start(task, Streams::piped(&task.stdin)?, false)
    }

    /// Starts a program whose standard streams are this terminal.
    ///
    /// # Errors
    ///
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
        let (report, told) = channel()?;
        let (lifeline_given, lifeline) = pipe()?;
        let theirs = theirs.into_iter().map(descriptor).collect::<Result<Vec<_>, _>>()?;
        let given = theirs.iter().chain([&told, &lifeline_given]);
        self.order(&order, &given.map(|fd| fd.as_fd()).collect::<Vec<_>>())?;
        drop((theirs, told, lifeline_given));
        let (HelperReport::Started, _) = self.answer(&report)? else {
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
        RunHandle::follow(end, input, outputs, task.capture)
    }

    /// A connection to a port of the loopback inside. It is non-blocking and may still be on
    /// its way: it is there when it can be written, and its error says if it failed.
    ///
    /// # Errors
    ///
    /// When nobody listens there, or the session is over.
    pub fn connect(&self, port: u16) -> Result<TcpStream, LaunchError> {
        let (report, told) = channel()?;
        self.order(&SessionRequest::Connect { port }, &[told.as_fd()])?;
        drop(told);
        match self.answer(&report)? {
            (HelperReport::Connected, Some(socket)) => Ok(TcpStream::from(socket)),
            _ => Err(LaunchError::Silent),
        }
    }

    /// Where the programs look for a proxy, for whoever serves it: non-blocking. Can be taken
    /// once, where the network is [`crate::Network::Served`] or [`crate::Network::Proxied`].
    #[must_use]
    pub const fn take_proxy(&mut self) -> Option<TcpListener> {
        self.proxy.take()
    }

    /// A handle that ends the session from anywhere.
    #[must_use]
    pub fn killer(&self) -> KillHandle {
        self.killer.clone()
    }

    /// Whether all that ran in it is gone.
    #[must_use]
    pub fn is_over(&self) -> bool {
        // A helper that cannot be asked has been reaped.
        !matches!(locked(&self.helper).try_wait(), Ok(None))
    }

    /// What all of it uses now.
    #[must_use]
    pub fn usage(&self) -> SessionUsage {
        let group = self.plan.script.cgroup.as_ref();
        let helper = self.helper_pid.unsigned_abs();
        group.map(|group| cgroup::usage(&group.base, helper)).unwrap_or_default()
    }

    fn order(
        &self,
        order: &SessionRequest,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), LaunchError> {
        let text = written(order)?;
        let descriptors: Vec<BorrowedFd<'_>> =
            std::iter::once(text.as_fd()).chain(descriptors.iter().copied()).collect();
        match packet::send(&self.orders, KNOCK, &descriptors, MsgFlags::MSG_DONTWAIT) {
            Err(Errno::EPIPE | Errno::ECONNRESET | Errno::ENOTCONN) => Err(LaunchError::Over),
            sent => sent.map_err(channels),
        }
    }

    /// What was said to an order. Silence means that the session ended meanwhile.
    fn answer(&self, report: &OwnedFd) -> Result<(HelperReport, Option<OwnedFd>), LaunchError> {
        match await_report(report) {
            Err(LaunchError::Silent) => Err(LaunchError::Over),
            answer => answer,
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.killer.end(ExitStatus::Killed);
        let mut helper = locked(&self.helper);
        if let Ok(None) = helper.wait_timeout(DEATH_MAX) {
            // silent-ok: nobody is left to hear that it did not end.
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

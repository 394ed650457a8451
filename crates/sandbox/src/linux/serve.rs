//! The first process of a session: starts the programs that its launcher orders, reports how each
//! ended, and ends each whose lifeline is closed.
//!
//! Orders come only from outside. Nothing inside can reach this process. Processes that a program
//! leaves behind continue until the session ends.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::sys::signalfd::SignalFd;
use nix::sys::socket::sockopt::SocketError;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, SockaddrIn, connect, getsockopt, socket,
};
use nix::unistd::Pid;

use super::helper::Reporter;
use super::init::{Watcher, reap_next, start_program};
use super::program::{Confinement, PendingProgram};
use super::{StepContext as _, StepFailure};
use crate::outcome::ExitStatus;
use crate::plan::ProgramExec;
use crate::process::packet;
use crate::report::{HelperReport, SessionRequest};

/// The most programs at a time. Processes that they start do not count.
const PROGRAMS_MAX: usize = 256;

/// A running program.
struct RunningProgram {
    pid: Pid,
    report: Reporter,
    /// The program's lifeline, or `None` after the program was ended.
    lifeline: Option<OwnedFd>,
}

/// The running programs and the channel of orders.
pub(crate) struct SessionServer<'a> {
    confine: &'a Confinement<'a>,
    orders: &'a Reporter,
    programs: Vec<RunningProgram>,
}

impl<'a> SessionServer<'a> {
    pub(crate) const fn new(confine: &'a Confinement<'a>, orders: &'a Reporter) -> Self {
        Self { confine, orders, programs: Vec::new() }
    }

    /// Serves until the launcher is gone or wants an end, or a limit of the whole session is
    /// exceeded.
    pub(crate) fn serve(
        mut self,
        mut watch: Watcher<'_>,
        lifeline: &OwnedFd,
        ends: &SignalFd,
    ) -> Result<Option<ExitStatus>, StepFailure> {
        loop {
            let ready = self.wait(lifeline, ends, watch.next_check()).step("wait for orders")?;
            if ready[0] {
                return Ok(None);
            }
            self.end_unwanted(&ready[3..]);
            if ready[1] {
                self.take_order()?;
            }
            ends.read_signal().step("receive SIGCHLD")?;
            while let Some((pid, status)) = reap_next()? {
                if let Some(place) = self.programs.iter().position(|program| program.pid == pid) {
                    let status = watch.correct_status(status);
                    self.programs.swap_remove(place).report.send(&HelperReport::Ended(status));
                }
            }
            if let Some(status) = watch.exceeded() {
                return Ok(Some(status));
            }
        }
    }

    /// Waits for an event. Returns which descriptors are ready: the lifeline, the orders, the
    /// ends of children, the lifelines of programs.
    fn wait(
        &self,
        lifeline: &OwnedFd,
        ends: &SignalFd,
        patience: Option<Duration>,
    ) -> nix::Result<Vec<bool>> {
        let patience = patience.map_or(PollTimeout::NONE, |patience| {
            PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX)
        });
        let fixed = [lifeline.as_fd(), self.orders.as_fd(), ends.as_fd()];
        let lifelines = self.programs.iter().filter_map(|program| program.lifeline.as_ref());
        let fds = fixed.into_iter().chain(lifelines.map(AsFd::as_fd));
        let mut fds: Vec<PollFd<'_>> = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        match poll(&mut fds, patience) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
        Ok(fds.iter().map(|fd| fd.any().unwrap_or(true)).collect())
    }

    /// Ends the programs whose lifelines are closed.
    fn end_unwanted(&mut self, cut: &[bool]) {
        let held = self.programs.iter_mut().filter(|program| program.lifeline.is_some());
        for (program, _) in held.zip(cut).filter(|(_, cut)| **cut) {
            program.lifeline = None;
            // silent-ok: it may just have ended by itself.
            let _ = killpg(program.pid, Signal::SIGKILL);
        }
    }

    /// Executes the next order. Its sender is told if that fails.
    fn take_order(&mut self) -> Result<(), StepFailure> {
        let mut knock = [0; 1];
        let received = packet::receive(self.orders, &mut knock, MsgFlags::MSG_DONTWAIT);
        let (_, descriptors) = match received {
            Err(Errno::EAGAIN) => return Ok(()),
            received => received.step("receive an order")?,
        };
        let mut descriptors = descriptors.into_iter();
        // If the launcher is gone, its lifeline shows that.
        let Some(order) = descriptors.next() else { return Ok(()) };
        match (read_order(order)?, descriptors.collect()) {
            (SessionRequest::Connect { port }, given) => connect_for(port, given),
            (SessionRequest::Run { exec, terminal }, given) => {
                self.start_for(&exec, terminal, given)
            }
        }
        Ok(())
    }

    fn start_for(&mut self, exec: &ProgramExec, terminal: bool, given: Vec<OwnedFd>) {
        let Ok([stdin, stdout, stderr, report, lifeline]) = <[OwnedFd; 5]>::try_from(given) else {
            return;
        };
        let report = Reporter::new(report);
        let inherit = vec![(stdin, 0), (stdout, 1), (stderr, 2)];
        match self
            .start(PendingProgram { confine: self.confine, exec, inherit, terminal }, &lifeline)
        {
            Ok(pid) => {
                report.send(&HelperReport::Started);
                self.programs.push(RunningProgram { pid, report, lifeline: Some(lifeline) });
            }
            Err(problem) => report.send(&HelperReport::Failed(problem)),
        }
    }

    fn start(&self, born: PendingProgram<'_>, lifeline: &OwnedFd) -> Result<Pid, StepFailure> {
        if self.programs.len() >= PROGRAMS_MAX {
            let problem = format!("{PROGRAMS_MAX} programs are under way; wait for one to end");
            return Err(StepFailure { step: "start one more program".to_owned(), problem });
        }
        start_program(born, lifeline)
    }
}

fn connect_for(port: u16, given: Vec<OwnedFd>) {
    let Ok([report]) = <[OwnedFd; 1]>::try_from(given) else { return };
    let report = Reporter::new(report);
    match connect_loopback(port) {
        Ok(socket) => report.send_with(&HelperReport::Connected, &[socket.as_fd()]),
        Err(problem) => report.send(&HelperReport::Failed(problem)),
    }
}

fn read_order(order: OwnedFd) -> Result<SessionRequest, StepFailure> {
    let mut text = Vec::new();
    File::from(order).read_to_end(&mut text).step("read an order")?;
    serde_json::from_slice(&text).step("understand an order")
}

/// Opens a connection to a port of the loopback. It never waits, since the listening program may
/// not answer.
fn connect_loopback(port: u16) -> Result<OwnedFd, StepFailure> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Inet, SockType::Stream, flags, None);
    let socket = socket.step("open a socket")?;
    let address = SockaddrIn::new(127, 0, 0, 1, port);
    let refused = || format!("connect to port {port}");
    match connect(socket.as_raw_fd(), &address) {
        Ok(()) | Err(Errno::EINPROGRESS) => {}
        Err(errno) => return Err(errno).step(refused()),
    }
    // On a loopback, a refusal is there at once.
    match getsockopt(&socket, SocketError).step(refused())? {
        0 => Ok(socket),
        number => Err(Errno::from_raw(number)).step(refused()),
    }
}

//! Our own children and descriptors: operations that need `unsafe` or raw system calls.
//!
//! This is not a sandbox. It starts our own trusted programs, with the descriptors and the
//! environment that their parent names. Nothing is inherited by accident. It must never start a
//! program that an agent chose. [`crate::Launcher`] does that.

pub mod fd_passing;
mod lifeline;
mod lock;
pub(crate) mod packet;
mod signals;
mod small;
pub(crate) mod spawn;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use automaton_core::error::{Classified, ErrorClass};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid};
use thiserror::Error;

pub use lifeline::Lifeline;
pub use lock::{LockError, LockGuard, lock};
pub use signals::{Signals, StopSignal};
pub use small::OwnProgram;
pub use spawn::{ProcessCommand, Stdio, become_other, spawn};

use crate::outcome::ExitStatus;
use crate::spec::Inherit;

/// Descriptors are passed under numbers below this one.
pub(crate) const TARGET_LIMIT: RawFd = Inherit::TARGET_MAX + 1;

/// Returns the effective user id of this process.
#[must_use]
pub fn effective_user() -> u32 {
    nix::unistd::geteuid().as_raw()
}

/// An operation on a process or descriptor failed.
#[derive(Debug, Error, Classified)]
pub enum ProcessError {
    /// A program could not be started.
    #[error("cannot start {}", program.display())]
    #[class(kind = match source {
        _ if source.raw_os_error() == Some(libc::EAGAIN) => ErrorClass::Transient,
        _ if source.kind() == io::ErrorKind::NotFound => ErrorClass::Config,
        _ => ErrorClass::Internal,
    })]
    Spawn {
        /// The program.
        program: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A descriptor's target number is out of range or used twice.
    #[error("{target} cannot be the number of a passed descriptor")]
    #[class(Internal)]
    Target {
        /// The number.
        target: RawFd,
    },
    /// A child could not be waited for or signalled.
    #[error("cannot {action} process {pid}")]
    #[class(Internal)]
    Child {
        /// The failed action.
        action: &'static str,
        /// The child.
        pid: i32,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The expected descriptor was not passed to this process.
    #[error("descriptor {number} was not passed to this process")]
    #[class(Internal)]
    NotInherited {
        /// Its number.
        number: RawFd,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The descriptor was taken before.
    #[error("descriptor {number} is already taken")]
    #[class(Internal)]
    Taken {
        /// Its number.
        number: RawFd,
    },
    /// No lifeline could be made.
    #[error("cannot make a lifeline")]
    #[class(Internal)]
    Lifeline(#[source] io::Error),
    /// Stop signals could not be turned into a descriptor.
    #[error("cannot receive stop signals")]
    #[class(Internal)]
    Signals(#[source] io::Error),
}

/// A child process. Its descriptor becomes readable when the child ends.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
    pidfd: OwnedFd,
    status: Option<ExitStatus>,
}

impl AsFd for Child {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

impl Child {
    fn adopt(pid: Pid) -> io::Result<Self> {
        Ok(Self { pid, pidfd: pidfd_open(pid)?, status: None })
    }

    /// Returns the process id.
    #[must_use]
    pub const fn pid(&self) -> i32 {
        self.pid.as_raw()
    }

    /// Blocks until the child ends.
    ///
    /// # Errors
    /// Fails if something else has reaped it.
    pub fn wait(&mut self) -> Result<ExitStatus, ProcessError> {
        loop {
            if let Some(status) = self.reap(WaitPidFlag::empty())? {
                return Ok(status);
            }
        }
    }

    /// Returns the exit status, if the child has ended.
    ///
    /// # Errors
    /// Fails if something else has reaped it.
    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>, ProcessError> {
        self.reap(WaitPidFlag::WNOHANG)
    }

    /// Blocks until the child ends, at most `limit`.
    ///
    /// # Errors
    /// Fails if something else has reaped it.
    pub fn wait_timeout(&mut self, limit: Duration) -> Result<Option<ExitStatus>, ProcessError> {
        await_any([self.as_fd()], Some(limit)).map_err(|errno| self.failed("wait for", errno))?;
        self.try_wait()
    }

    /// Asks the child to end (`SIGTERM`). Does nothing if it has ended.
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub fn terminate(&self) -> Result<(), ProcessError> {
        self.signal(Signal::SIGTERM)
    }

    /// Kills the child (`SIGKILL`). Does nothing if it has ended.
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub fn kill(&self) -> Result<(), ProcessError> {
        self.signal(Signal::SIGKILL)
    }

    fn signal(&self, signal: Signal) -> Result<(), ProcessError> {
        // SAFETY: the descriptor is open, the information pointer may be null.
        let sent = unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.pidfd.as_raw_fd(),
                signal as libc::c_int,
                std::ptr::null::<libc::siginfo_t>(),
                0,
            )
        };
        match Errno::result(sent) {
            Ok(_) | Err(Errno::ESRCH) => Ok(()),
            Err(errno) => Err(self.failed("signal", errno)),
        }
    }

    fn failed(&self, action: &'static str, errno: Errno) -> ProcessError {
        ProcessError::Child { action, pid: self.pid(), source: errno.into() }
    }

    fn reap(&mut self, flags: WaitPidFlag) -> Result<Option<ExitStatus>, ProcessError> {
        if self.status.is_none() {
            self.status = match waitpid(self.pid, Some(flags)) {
                Ok(state) => ended(state),
                Err(Errno::EINTR) => None,
                Err(errno) => return Err(self.failed("wait for", errno)),
            };
        }
        Ok(self.status)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // silent-ok: the owner decides about a running child. An ended one is reaped here, so
        // that it does not stay a zombie.
        drop(self.try_wait());
    }
}

/// Creates a descriptor that is readable when this child has ended.
pub(crate) fn pidfd_open(pid: Pid) -> nix::Result<OwnedFd> {
    // SAFETY: the call takes a process id and flags by value and creates a new descriptor.
    unsafe { new_descriptor(libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0)) }
}

/// Takes ownership of the descriptor that a system call created.
///
/// # Safety
/// The number must be the result of such a call, and used nowhere else.
pub(crate) unsafe fn new_descriptor(answer: libc::c_long) -> nix::Result<OwnedFd> {
    let number = RawFd::try_from(Errno::result(answer)?).map_err(|_| Errno::ERANGE)?;
    // SAFETY: as the caller promises.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Returns the exit status in a wait status, if the process has ended.
pub(crate) fn ended(state: WaitStatus) -> Option<ExitStatus> {
    match state {
        WaitStatus::Exited(_, code) => Some(ExitStatus::Exited(code)),
        WaitStatus::Signaled(_, signal, _) => Some(ExitStatus::Signalled(signal as i32)),
        _ => None,
    }
}

/// Waits until one of the descriptors is readable or closed, at most `limit`. Returns which are
/// ready. A signal may end the wait early.
pub(crate) fn await_any<const N: usize>(
    fds: [BorrowedFd<'_>; N],
    limit: Option<Duration>,
) -> nix::Result<[bool; N]> {
    let timeout = limit.map_or(PollTimeout::NONE, |limit| {
        PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX)
    });
    let mut fds = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN));
    match poll(&mut fds, timeout) {
        Ok(_) | Err(Errno::EINTR) => Ok(fds.map(|fd| fd.any().unwrap_or(true))),
        Err(errno) => Err(errno),
    }
}

/// Returns a target number that is out of range or used twice, if there is one.
pub(crate) fn impossible_target(targets: impl Iterator<Item = RawFd>) -> Option<RawFd> {
    let mut targets: Vec<RawFd> = targets.collect();
    targets.sort_unstable();
    let bad = targets.iter().find(|target| !(3..TARGET_LIMIT).contains(*target));
    let twice = targets.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| &pair[0]);
    bad.or(twice).copied()
}

static TAKEN: AtomicU64 = AtomicU64::new(0);

/// Takes a descriptor that the parent passed under this number. Each can be taken once. Children
/// do not inherit it by accident.
///
/// # Errors
/// Fails if there is none, or it was taken before.
pub fn take_inherited(number: RawFd) -> Result<OwnedFd, ProcessError> {
    if !(3..TARGET_LIMIT).contains(&number) {
        return Err(ProcessError::Target { target: number });
    }
    // SAFETY: the number is only borrowed to check that it is open. A closed number makes fcntl
    // fail and nothing else.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    fcntl(borrowed, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))
        .map_err(|errno| ProcessError::NotInherited { number, source: errno.into() })?;
    let bit = 1u64 << number;
    if TAKEN.fetch_or(bit, Ordering::SeqCst) & bit != 0 {
        return Err(ProcessError::Taken { number });
    }
    // SAFETY: the descriptor is open, came from the parent, and the bit above makes this the only
    // owner.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Kills this process at once with `SIGKILL`, as a crash would. For fault drills.
pub fn kill_self() -> ! {
    loop {
        // silent-ok: a process may always kill itself, and the loop repeats.
        let _ = kill(getpid(), Signal::SIGKILL);
    }
}

//! `SIGTERM` and `SIGINT` as a descriptor.
//!
//! Must be set up before any other thread starts, since the signals are blocked in the calling
//! thread and in those it starts later.

use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::ProcessError;

/// A request to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    /// `SIGTERM`, from a service manager.
    Terminate,
    /// `SIGINT`, from a keyboard.
    Interrupt,
}

/// A receiver of stop signals. Its descriptor is readable while a signal waits.
#[derive(Debug)]
pub struct Signals(SignalFd);

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Signals {
    /// Blocks the stop signals' default action and receives them instead.
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub fn receive() -> Result<Self, ProcessError> {
        let mut set = SigSet::empty();
        set.add(Signal::SIGTERM);
        set.add(Signal::SIGINT);
        set.thread_block()
            .and_then(|()| {
                SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
            })
            .map(Self)
            .map_err(|errno| ProcessError::Signals(errno.into()))
    }

    /// Returns the next waiting signal, or `None`.
    ///
    /// # Errors
    /// Fails if the descriptor cannot be read.
    pub fn next(&self) -> Result<Option<StopSignal>, ProcessError> {
        let info = self.0.read_signal().map_err(|errno| ProcessError::Signals(errno.into()))?;
        Ok(info.map(|info| match i32::try_from(info.ssi_signo) {
            Ok(libc::SIGINT) => StopSignal::Interrupt,
            _ => StopSignal::Terminate,
        }))
    }
}

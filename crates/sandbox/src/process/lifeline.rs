//! Lifelines: how parent and child notice each other's death.
//!
//! A lifeline is a pair of connected sockets, one in each process. When a process dies, the
//! kernel closes its end. Nothing must ever be written to it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};

use super::{ProcessError, await_any};

/// One end of a lifeline. Its descriptor becomes readable when the other end closes.
#[derive(Debug)]
pub struct Lifeline(OwnedFd);

impl AsFd for Lifeline {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Lifeline {
    /// Creates both ends: one to keep, one to pass to the child.
    ///
    /// # Errors
    /// Fails if no descriptors are free.
    pub fn pair() -> Result<(Self, OwnedFd), ProcessError> {
        let (ours, theirs) =
            socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC)
                .map_err(|errno| ProcessError::Lifeline(errno.into()))?;
        Ok((Self(ours), theirs))
    }

    /// Returns true if the other process is gone.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.wait_cut(Duration::ZERO)
    }

    /// Waits until the other process is gone, at most `limit`. Returns true if it is gone.
    #[must_use]
    pub fn wait_cut(&self, limit: Duration) -> bool {
        // A lifeline that cannot be polled counts as closed.
        await_any([self.as_fd()], Some(limit)).map_or(true, |[cut]| cut)
    }
}

//! How parent and child learn of each other's death.
//!
//! A pair of connected sockets, one in each: when a process dies, however it
//! dies, the kernel closes its end. Nothing must ever be written to it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};

use super::{ProcessError, await_any};

/// One end of a lifeline. Its descriptor becomes readable when the other end
/// is gone.
#[derive(Debug)]
pub struct Lifeline(OwnedFd);

impl AsFd for Lifeline {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Lifeline {
    /// Makes both ends: one to keep, one to pass to the child.
    ///
    /// # Errors
    ///
    /// When the system has no descriptors left.
    pub fn pair() -> Result<(Self, OwnedFd), ProcessError> {
        let (ours, theirs) =
            socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC)
                .map_err(|errno| ProcessError::Lifeline(errno.into()))?;
        Ok((Self(ours), theirs))
    }

    /// Whether the other process is gone.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.wait_cut(Duration::ZERO)
    }

    /// Waits for the other process to be gone, at most this long, and says
    /// whether it is.
    #[must_use]
    pub fn wait_cut(&self, limit: Duration) -> bool {
        // A lifeline that cannot be looked at counts as cut.
        await_any([self.as_fd()], Some(limit)).map_or(true, |[cut]| cut)
    }
}

//! Messages with descriptors over a Unix socket, between our own processes.
//!
//! The receiver owns each received descriptor. Children do not inherit it by accident.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};

/// The most descriptors of one message.
pub(crate) const DESCRIPTORS_MAX: usize = 8;

/// Sends one message. Our descriptors stay open.
///
/// # Errors
/// Fails if the other end is closed, or with `MSG_DONTWAIT` if the buffer is full.
pub(crate) fn send(
    socket: impl AsFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
    flags: MsgFlags,
) -> nix::Result<()> {
    let numbers: Vec<RawFd> = descriptors.iter().map(|one| one.as_raw_fd()).collect();
    let passed = [ControlMessage::ScmRights(&numbers)];
    let passed = if numbers.is_empty() { &passed[..0] } else { &passed[..] };
    let flags = flags | MsgFlags::MSG_NOSIGNAL;
    sendmsg::<()>(socket.as_fd().as_raw_fd(), &[IoSlice::new(bytes)], passed, flags, None).map(drop)
}

/// Receives the next message. Returns its length and its descriptors.
///
/// # Errors
/// Fails if the socket cannot be read, or with `MSG_DONTWAIT` if no message waits.
pub(crate) fn receive(
    socket: impl AsFd,
    buffer: &mut [u8],
    flags: MsgFlags,
) -> nix::Result<(usize, Vec<OwnedFd>)> {
    let mut room = nix::cmsg_space!([RawFd; DESCRIPTORS_MAX]);
    let mut parts = [IoSliceMut::new(buffer)];
    let flags = flags | MsgFlags::MSG_CMSG_CLOEXEC;
    let message = loop {
        let socket = socket.as_fd().as_raw_fd();
        match recvmsg::<()>(socket, &mut parts, Some(&mut room), flags) {
            Err(Errno::EINTR) => {}
            other => break other?,
        }
    };
    let mut descriptors = Vec::new();
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(numbers) = control {
            // SAFETY: the kernel has just created these for this process, and nothing else names
            // them.
            descriptors.extend(numbers.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
        }
    }
    Ok((message.bytes, descriptors))
}

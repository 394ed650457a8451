//! Messages with descriptors over a Unix socket, between our own processes.
//!
//! A descriptor that comes is closed with whoever took it, and never passed on to a child
//! by accident.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};

/// The most descriptors of one message.
pub(crate) const DESCRIPTORS_MAX: usize = 8;

/// Sends one message. Ours stay open.
///
/// # Errors
/// When nobody is there any more, or with `MSG_DONTWAIT` when there is no room.
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

/// Takes the next message: its length and what came with it.
///
/// # Errors
/// When the socket cannot be read, or with `MSG_DONTWAIT` when there is none.
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
            // SAFETY: the kernel has just made these for this process, and they are
            // named nowhere else.
            descriptors.extend(numbers.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
        }
    }
    Ok((message.bytes, descriptors))
}

//! A socket over which descriptors are passed, one after the other.
//!
//! Between our own processes only: whoever holds an end may hand in anything. Must
//! never be given to a sandbox.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::sys::socket::MsgFlags;

use super::packet;

/// What goes with each descriptor, since none travels without a byte.
const FD_MARKER: &[u8] = &[1];

/// Hands a descriptor to whoever is at the other end; ours stays open.
///
/// # Errors
/// When nobody is there any more.
pub fn send_fd(socket: &UnixStream, descriptor: impl AsFd) -> io::Result<()> {
    Ok(packet::send(socket, FD_MARKER, &[descriptor.as_fd()], MsgFlags::empty())?)
}

/// Waits for the next descriptor; `None` when the other end is closed.
///
/// # Errors
/// When the door cannot be read, or something else comes than one descriptor.
pub fn receive_fd(socket: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut knock = [0; FD_MARKER.len()];
    let (bytes, mut descriptors) = packet::receive(socket, &mut knock, MsgFlags::empty())?;
    match (bytes, descriptors.pop()) {
        (0, None) => Ok(None),
        (_, Some(one)) if descriptors.is_empty() => Ok(Some(one)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "no descriptor came with a message")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};

    #[test]
    fn what_is_passed_works_at_the_other_end_and_a_closed_door_is_told() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        for word in [b"one", b"two"] {
            let (mut kept, given) = UnixStream::pair().unwrap();
            send_fd(&ours, given).unwrap();
            let mut received = UnixStream::from(receive_fd(&theirs).unwrap().unwrap());
            received.write_all(word).unwrap();
            drop(received);
            let mut heard = Vec::new();
            kept.read_to_end(&mut heard).unwrap();
            assert_eq!(heard, word);
        }
        (&ours).write_all(b"x").unwrap();
        assert_eq!(receive_fd(&theirs).unwrap_err().kind(), io::ErrorKind::InvalidData);
        drop(ours);
        assert!(receive_fd(&theirs).unwrap().is_none());
        assert!(send_fd(&theirs, &theirs).is_err());
    }
}

//! Passes descriptors over a socket, one after the other.
//!
//! It is for our own processes only, since a peer may pass anything. It must never be given to a
//! sandbox.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::sys::socket::MsgFlags;

use super::packet;

/// The byte that accompanies each descriptor, since none is sent without data.
const FD_MARKER: &[u8] = &[1];

/// Sends a descriptor. Ours stays open.
///
/// # Errors
/// Fails if the other end is closed.
pub fn send_fd(socket: &UnixStream, descriptor: impl AsFd) -> io::Result<()> {
    Ok(packet::send(socket, FD_MARKER, &[descriptor.as_fd()], MsgFlags::empty())?)
}

/// Waits for the next descriptor. Returns `None` if the other end is closed.
///
/// # Errors
/// Fails if the socket cannot be read, or a message has not exactly one descriptor.
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

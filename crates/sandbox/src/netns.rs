//! The network of another process, such as the first one of a container.
//!
//! Whoever connects or listens there joins it on a thread that ends with that. Must never lead into our own
//! network, in which the host's services listen.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::thread;
use std::time::Duration;

use nix::sched::{CloneFlags, setns};

/// A network that is not ours.
#[derive(Debug)]
pub struct Netns(File);

impl Netns {
    /// The network of a process. An id is used again once its process is gone: ask after this
    /// whether that is still there, and only then connect.
    ///
    /// # Errors
    ///
    /// When there is no such process, we may not look (that takes root), or its network is ours.
    pub fn of(pid: u32) -> io::Result<Self> {
        let theirs = File::open(format!("/proc/{pid}/ns/net"))?;
        if theirs.metadata()?.ino() == fs::metadata("/proc/self/ns/net")?.ino() {
            return Err(io::Error::other("it has no network of its own"));
        }
        Ok(Self(theirs))
    }

    /// A connection to a port of its loopback, non-blocking. Blocks until it is there.
    ///
    /// # Errors
    ///
    /// When we may not join (that takes root), or nobody listens there.
    pub fn connect(self, port: u16, within: Duration) -> io::Result<TcpStream> {
        self.joined(move || {
            let stream = TcpStream::connect_timeout(&(Ipv4Addr::LOCALHOST, port).into(), within)?;
            stream.set_nonblocking(true)?;
            Ok(stream)
        })
    }

    /// A listener at a port of its loopback, non-blocking.
    ///
    /// # Errors
    ///
    /// When we may not join (that takes root), or somebody listens there.
    pub fn listen(self, port: u16) -> io::Result<TcpListener> {
        self.joined(move || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        })
    }

    /// Does something on a thread that has joined the network.
    fn joined<T: Send + 'static>(
        self,
        inside: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        // A thread that has joined does not come back.
        let joined = thread::Builder::new().spawn(move || {
            setns(&self.0, CloneFlags::CLONE_NEWNET)?;
            inside()
        })?;
        joined.join().map_err(|_| io::Error::other("the thread that joined it ended"))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_network_is_no_other_one() {
        let error = Netns::of(std::process::id()).unwrap_err();
        assert!(error.to_string().contains("of its own"), "{error}");
        assert!(Netns::of(u32::MAX).is_err());
    }
}

//! The network of another process, such as the first one of a container.
//!
//! Connecting and listening happen on a thread that joins the network and then ends. It must
//! never lead into our own network, in which the host's services listen.

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
    /// Opens the network of a process. Process ids are reused, so check after this call that the
    /// process still runs, and only then connect.
    ///
    /// # Errors
    /// Fails if there is no such process, if this process is not root, or if the network is ours.
    pub fn of_process(pid: u32) -> io::Result<Self> {
        let theirs = File::open(format!("/proc/{pid}/ns/net"))?;
        if theirs.metadata()?.ino() == fs::metadata("/proc/self/ns/net")?.ino() {
            return Err(io::Error::other("it has no network of its own"));
        }
        Ok(Self(theirs))
    }

    /// Connects to a port of its loopback. Blocks until connected. The stream is non-blocking.
    ///
    /// # Errors
    /// Fails if this process is not root, or nobody listens there.
    pub fn connect(self, port: u16, within: Duration) -> io::Result<TcpStream> {
        self.run_joined(move || {
            let stream = TcpStream::connect_timeout(&(Ipv4Addr::LOCALHOST, port).into(), within)?;
            stream.set_nonblocking(true)?;
            Ok(stream)
        })
    }

    /// Listens on a port of its loopback. The listener is non-blocking.
    ///
    /// # Errors
    /// Fails if this process is not root, or the port is in use.
    pub fn listen(self, port: u16) -> io::Result<TcpListener> {
        self.run_joined(move || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        })
    }

    /// Runs a closure on a thread that has joined the network.
    fn run_joined<T: Send + 'static>(
        self,
        inside: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        // A thread that has joined cannot leave again.
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
        let error = Netns::of_process(std::process::id()).unwrap_err();
        assert!(error.to_string().contains("of its own"), "{error}");
        assert!(Netns::of_process(u32::MAX).is_err());
    }
}

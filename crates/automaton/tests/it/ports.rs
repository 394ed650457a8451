//! Ports that a test keeps for itself while no process listens on them.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;
use std::{io, thread};

use tokio::net::TcpSocket;

/// A port of this machine for a server that stops and starts again. While no server listens, it
/// refuses connections, and the system gives it to no other program that asks for a free port.
pub(crate) struct ReservedPort(TcpSocket);

/// Waits for a port, of [`STEP`] each.
const STEPS_MAX: u32 = 6_000;
const STEP: Duration = Duration::from_millis(10);

impl ReservedPort {
    pub(crate) fn new() -> Self {
        Self(bind("127.0.0.1:0".parse().unwrap()).unwrap())
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    /// Listens on it in this process.
    pub(crate) fn listen(&self) -> TcpListener {
        TcpListener::bind(self.address()).unwrap()
    }

    /// Waits until no process listens on it. A child that a killed server had just begun to start
    /// holds the server's sockets a moment longer.
    pub(crate) fn wait_until_free(&self) {
        for _ in 0..STEPS_MAX {
            match bind(self.address()) {
                Ok(_) => return,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::AddrInUse, "{error}"),
            }
            thread::sleep(STEP);
        }
        panic!("a process still listens on {}", self.address());
    }
}

/// Binds a socket that does not listen. It lets a server that is given its address use it as
/// well; where a server listens already it fails.
fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

#[test]
fn a_reserved_port_refuses_connections_and_serves_again_and_again() {
    let port = ReservedPort::new();
    let connect = || std::net::TcpStream::connect(port.address());
    for _ in 0..3 {
        port.wait_until_free();
        assert!(connect().is_err());
        let server = port.listen();
        assert!(connect().is_ok());
        assert!(bind(port.address()).is_err(), "it is not free");
        assert_eq!(server.local_addr().unwrap(), port.address());
    }
}

//! Attempts on the network and on other programs' sockets. Must never send more than a few
//! bytes, nor wait long for an answer.

use std::io;
use std::net::{TcpStream, ToSocketAddrs as _, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::time::Duration;

use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};

use super::any;

/// How long another machine may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) fn attempt(words: &[&str]) -> Option<io::Result<()>> {
    Some(match *words {
        ["connect-tcp", to] => TcpStream::connect_timeout(&to.parse().ok()?, PATIENCE).map(drop),
        ["connect-abstract", name] => SocketAddr::from_abstract_name(name)
            .and_then(|address| UnixStream::connect_addr(&address).map(drop)),
        ["connect-unix", ref paths @ ..] => any(paths, |path| UnixStream::connect(path).map(drop)),
        ["send-udp", to] => {
            UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.send_to(b"out", to).map(drop))
        }
        ["send-unix", path] => {
            UnixDatagram::unbound().and_then(|socket| socket.send_to(b"out", path).map(drop))
        }
        ["ask-name", name] => (name, 443).to_socket_addrs().map(drop),
        ["raw-socket"] => open(AddressFamily::Inet, Some(SockProtocol::Icmp)),
        ["packet-socket"] => open(AddressFamily::Packet, None),
        _ => return None,
    })
}

fn open(family: AddressFamily, protocol: Option<SockProtocol>) -> io::Result<()> {
    socket(family, SockType::Raw, SockFlag::empty(), protocol).map(drop)?;
    Ok(())
}

//! Attempts on the network and on other programs' sockets. Must never send more than a few
//! bytes, nor wait long for an answer.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _, UdpSocket};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::time::Duration;

use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};

use super::{answer, any};

/// What each message of netlink begins with, in bytes.
const HEADER_BYTES: usize = 16;

/// How long another machine may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) fn attempt(words: &[&str]) -> Option<io::Result<()>> {
    Some(match *words {
        ["connect-tcp", to] => TcpStream::connect_timeout(&to.parse().ok()?, PATIENCE).map(drop),
        ["connect-abstract", name] => SocketAddr::from_abstract_name(name)
            .and_then(|address| UnixStream::connect_addr(&address).map(drop)),
        ["connect-unix", ref paths @ ..] => any(paths, |path| UnixStream::connect(path).map(drop)),
        ["send-udp", to] => UdpSocket::bind("0.0.0.0:0").and_then(|socket| send_twice(&socket, to)),
        ["send-unix", path] => {
            UnixDatagram::unbound().and_then(|socket| socket.send_to(b"out", path).map(drop))
        }
        ["ask-name", name] => (name, 443).to_socket_addrs().map(drop),
        ["raw-socket"] => open(AddressFamily::Inet, Some(SockProtocol::Icmp)),
        ["netlink-socket", protocol] => netlink(protocol.parse().ok()?).map(drop),
        ["transport", protocol] => {
            inet_socket(libc::SOCK_SEQPACKET, protocol.parse().ok()?).map(drop)
        }
        ["layer"] => put_layer(),
        ["set-link"] => set_link(),
        ["delete-route"] => delete_route(),
        ["packet-socket"] => open(AddressFamily::Packet, None),
        _ => return None,
    })
}

/// Sends to a port. That nobody is there is told by the next call.
fn send_twice(socket: &UdpSocket, to: &str) -> io::Result<()> {
    socket.connect(to)?;
    socket.send(b"out")?;
    socket.send(b"out").map(drop)
}

fn open(family: AddressFamily, protocol: Option<SockProtocol>) -> io::Result<()> {
    socket(family, SockType::Raw, SockFlag::empty(), protocol).map(drop)?;
    Ok(())
}

/// A socket to a part of the kernel.
fn netlink(protocol: i32) -> io::Result<File> {
    // SAFETY: the call makes a descriptor that nobody else has.
    unsafe {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        let socket = answer(libc::socket(libc::AF_NETLINK, kind, protocol).into())?;
        Ok(File::from_raw_fd(i32::try_from(socket).map_err(io::Error::other)?))
    }
}

/// A socket of the internet with this transport.
fn inet_socket(kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    // SAFETY: the call makes a descriptor that nobody else has.
    unsafe {
        let socket = answer(libc::socket(libc::AF_INET, kind, protocol).into())?;
        Ok(OwnedFd::from_raw_fd(i32::try_from(socket).map_err(io::Error::other)?))
    }
}

/// Asks for a layer that there is not, on a socket that is not connected.
fn put_layer() -> io::Result<()> {
    let (socket, name) = (inet_socket(libc::SOCK_STREAM, 0)?, c"none");
    // SAFETY: the name is as long as said, and outlives the call.
    let put = unsafe {
        let (level, option) = (libc::IPPROTO_TCP, libc::TCP_ULP);
        libc::setsockopt(socket.as_raw_fd(), level, option, name.as_ptr().cast(), 4)
    };
    match answer(put.into()) {
        // The kernel has looked for it.
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
        put => put.map(drop),
    }
}

/// Sends one order about the network, and gives the kernel's answer, an error number or 0.
fn order(kind: u16, body: &[u8]) -> io::Result<i32> {
    let mut socket = netlink(libc::NETLINK_ROUTE)?;
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
    let length = u32::try_from(HEADER_BYTES + body.len()).map_err(io::Error::other)?;
    let (kind, flags) = (kind.to_ne_bytes(), flags.to_ne_bytes());
    socket.write_all(&[&length.to_ne_bytes()[..], &kind, &flags, &[0; 8], body].concat())?;
    let mut told = [0; 1024];
    let count = socket.read(&mut told)?;
    let number = told.get(HEADER_BYTES..HEADER_BYTES + 4).filter(|_| count > HEADER_BYTES);
    let number = number.and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes);
    number.map(|number| -number).ok_or_else(|| io::Error::other("there is no answer"))
}

/// Sets nothing of the loopback interface, for which it takes the same right as for more.
fn set_link() -> io::Result<()> {
    let loopback = 1i32;
    match order(libc::RTM_SETLINK, &[&[0; 4][..], &loopback.to_ne_bytes(), &[0; 8]].concat())? {
        0 => Ok(()),
        number => Err(io::Error::from_raw_os_error(number)),
    }
}

/// Takes away a route that is not there, for which it takes the same right as for another.
fn delete_route() -> io::Result<()> {
    let (family, nowhere) = (libc::AF_INET as u8, libc::RT_SCOPE_NOWHERE);
    let route = [family, 32, 0, 0, libc::RT_TABLE_MAIN, 0, nowhere, 0, 0, 0, 0, 0];
    let to = [8, 0, libc::RTA_DST as u8, 0, 192, 0, 2, 1];
    match order(libc::RTM_DELROUTE, &[&route[..], &to].concat())? {
        libc::ESRCH => Ok(()),
        number => Err(io::Error::from_raw_os_error(number)),
    }
}

//! Attempts on the network and on other programs' sockets. They must never send more than a few
//! bytes, nor wait long for an answer.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _, UdpSocket};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::time::Duration;

use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};

use super::{answer, any_path};

/// The length of a netlink message header, in bytes.
const HEADER_BYTES: usize = 16;

/// The longest wait for another machine's answer.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) fn attempt(words: &[&str]) -> Option<io::Result<()>> {
    Some(match *words {
        ["connect-tcp", to] => TcpStream::connect_timeout(&to.parse().ok()?, PATIENCE).map(drop),
        ["connect-abstract", name] => SocketAddr::from_abstract_name(name)
            .and_then(|address| UnixStream::connect_addr(&address).map(drop)),
        ["connect-unix", ref paths @ ..] => {
            any_path(paths, |path| UnixStream::connect(path).map(drop))
        }
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

/// Sends to a port twice. The second call fails if nobody listens.
fn send_twice(socket: &UdpSocket, to: &str) -> io::Result<()> {
    socket.connect(to)?;
    socket.send(b"out")?;
    socket.send(b"out").map(drop)
}

fn open(family: AddressFamily, protocol: Option<SockProtocol>) -> io::Result<()> {
    socket(family, SockType::Raw, SockFlag::empty(), protocol).map(drop)?;
    Ok(())
}

/// Opens a netlink socket.
fn netlink(protocol: i32) -> io::Result<File> {
    // SAFETY: the call creates a descriptor that nobody else has.
    unsafe {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        let socket = answer(libc::socket(libc::AF_NETLINK, kind, protocol).into())?;
        Ok(File::from_raw_fd(i32::try_from(socket).map_err(io::Error::other)?))
    }
}

/// Opens an internet socket with this transport.
fn inet_socket(kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    // SAFETY: the call creates a descriptor that nobody else has.
    unsafe {
        let socket = answer(libc::socket(libc::AF_INET, kind, protocol).into())?;
        Ok(OwnedFd::from_raw_fd(i32::try_from(socket).map_err(io::Error::other)?))
    }
}

/// Asks for an unknown protocol layer on an unconnected socket.
fn put_layer() -> io::Result<()> {
    let socket = inet_socket(libc::SOCK_STREAM, 0)?;
    let name = c"none";
    // SAFETY: the name has the stated length and outlives the call.
    let put = unsafe {
        let level = libc::IPPROTO_TCP;
        let option = libc::TCP_ULP;
        libc::setsockopt(socket.as_raw_fd(), level, option, name.as_ptr().cast(), 4)
    };
    match answer(put.into()) {
        // The kernel has searched for it.
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
        put => put.map(drop),
    }
}

/// Sends one netlink request and returns the kernel's answer: an error number or 0.
fn order(kind: u16, body: &[u8]) -> io::Result<i32> {
    let mut socket = netlink(libc::NETLINK_ROUTE)?;
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
    let length = u32::try_from(HEADER_BYTES + body.len()).map_err(io::Error::other)?;
    let kind = kind.to_ne_bytes();
    let flags = flags.to_ne_bytes();
    socket.write_all(&[&length.to_ne_bytes()[..], &kind, &flags, &[0; 8], body].concat())?;
    let mut told = [0; 1024];
    let count = socket.read(&mut told)?;
    let number = told.get(HEADER_BYTES..HEADER_BYTES + 4).filter(|_| count > HEADER_BYTES);
    let number = number.and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes);
    number.map(|number| -number).ok_or_else(|| io::Error::other("there is no answer"))
}

/// Makes an empty change to the loopback interface, which needs the same right as a real one.
fn set_link() -> io::Result<()> {
    let loopback = 1i32;
    match order(libc::RTM_SETLINK, &[&[0; 4][..], &loopback.to_ne_bytes(), &[0; 8]].concat())? {
        0 => Ok(()),
        number => Err(io::Error::from_raw_os_error(number)),
    }
}

/// Deletes a route that does not exist, which needs the same right as a real one.
fn delete_route() -> io::Result<()> {
    let family = libc::AF_INET as u8;
    let nowhere = libc::RT_SCOPE_NOWHERE;
    let route = [family, 32, 0, 0, libc::RT_TABLE_MAIN, 0, nowhere, 0, 0, 0, 0, 0];
    let to = [8, 0, libc::RTA_DST as u8, 0, 192, 0, 2, 1];
    match order(libc::RTM_DELROUTE, &[&route[..], &to].concat())? {
        libc::ESRCH => Ok(()),
        number => Err(io::Error::from_raw_os_error(number)),
    }
}

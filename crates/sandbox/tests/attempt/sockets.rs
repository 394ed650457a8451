//! Attempts on the network and on other programs' sockets.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::FromRawFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};

use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};

use crate::argument;

pub(crate) fn connect_tcp(words: &[String]) -> io::Result<()> {
    TcpStream::connect(("127.0.0.1", argument(words, 0)?)).map(drop)
}

pub(crate) fn send_udp(words: &[String]) -> io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.send_to(b"out", ("127.0.0.1", argument(words, 0)?)).map(drop)
}

pub(crate) fn connect_abstract(words: &[String]) -> io::Result<()> {
    let address = SocketAddr::from_abstract_name(argument::<String>(words, 0)?)?;
    UnixStream::connect_addr(&address).map(drop)
}

pub(crate) fn connect_unix(words: &[String]) -> io::Result<()> {
    UnixStream::connect(argument::<String>(words, 0)?).map(drop)
}

pub(crate) fn raw_socket(_: &[String]) -> io::Result<()> {
    let (kind, protocol) = (SockType::Raw, SockProtocol::Icmp);
    socket(AddressFamily::Inet, kind, SockFlag::empty(), protocol)?;
    Ok(())
}

/// A service: answers each byte on a passed socket until the other end closes.
pub(crate) fn echo_descriptor(words: &[String]) -> io::Result<()> {
    // SAFETY: the test passes a socket under this number, for us alone.
    let mut socket = unsafe { File::from_raw_fd(argument(words, 0)?) };
    let mut byte = [0];
    while socket.read(&mut byte)? > 0 {
        socket.write_all(&byte)?;
    }
    Ok(())
}

/// A server and its client, both inside.
pub(crate) fn loopback(_: &[String]) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut client = TcpStream::connect(listener.local_addr()?)?;
    let (mut server, _) = listener.accept()?;
    client.write_all(b"x")?;
    server.read_exact(&mut [0])
}

/// A server that says the same to everybody who comes, and makes a file once it listens.
pub(crate) fn serve(words: &[String]) -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", argument(words, 0)?))?;
    File::create(argument::<String>(words, 2)?)?;
    loop {
        listener.accept()?.0.write_all(argument::<String>(words, 1)?.as_bytes())?;
    }
}

pub(crate) fn connect_tcp6(words: &[String]) -> io::Result<()> {
    TcpStream::connect(("::1", argument(words, 0)?)).map(drop)
}

/// Sees every packet of the machine.
pub(crate) fn packet_socket(_: &[String]) -> io::Result<()> {
    socket(AddressFamily::Packet, SockType::Raw, SockFlag::empty(), None)?;
    Ok(())
}

pub(crate) fn send_unix(words: &[String]) -> io::Result<()> {
    UnixDatagram::unbound()?.send_to(b"out", argument::<String>(words, 0)?).map(drop)
}

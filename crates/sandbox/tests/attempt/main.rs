//! The programs that tests run inside: the attempts of a drill, long-running ones and servers.
//!
//! `attempt NAME ARGUMENTS…` exits with 0 if it succeeded.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::FromRawFd as _;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

fn main() -> ExitCode {
    automaton_sandbox::drill::attempt_main_if_invoked().unwrap_or_else(run)
}

fn run() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["be-hardened"] => be_hardened(),
        ["end-itself"] => automaton_sandbox::process::kill_self(),
        ["linger", path, stay] => linger(path, stay == "stay"),
        ["echo-descriptor", number] => echo_descriptor(number),
        ["hold-signals", count] => hold_signals(count),
        ["loopback"] => loopback(),
        ["interfaces"] => interfaces(),
        ["terminals", count] => terminals(count),
        ["serve", port, text, made] => serve(port, text, made),
        ["spin"] => loop {
            std::hint::black_box(0);
        },
        _ => return ExitCode::from(3),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            writeln!(io::stderr(), "{error}").ok();
            ExitCode::from(1)
        }
    }
}

/// Hardens itself as our own processes do, and checks what came of it.
fn be_hardened() -> io::Result<()> {
    automaton_sandbox::harden().map_err(io::Error::other)?;
    let dumpable = nix::sys::prctl::get_dumpable()?;
    let core = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_CORE)?;
    let mask = nix::sys::stat::umask(nix::sys::stat::Mode::empty());
    let hardened = !dumpable && core == (1, 1) && mask.bits() == 0o077;
    if hardened { Ok(()) } else { Err(io::Error::other("it is not hardened")) }
}

/// Detaches a descendant in a session of its own that appends to a file for
/// ever, then ends or stays.
fn linger(path: &str, stay: bool) -> io::Result<()> {
    // SAFETY: this process has one thread.
    if unsafe { libc::fork() } == 0 {
        // SAFETY: as above; both calls take nothing.
        unsafe {
            libc::setsid();
            if libc::fork() != 0 {
                libc::_exit(0);
            }
        }
        loop {
            File::options().create(true).append(true).open(path)?.write_all(b"x")?;
            thread::sleep(Duration::from_millis(10));
        }
    }
    while fs::metadata(path).is_err() {
        thread::sleep(Duration::from_millis(5));
    }
    if stay {
        thread::sleep(Duration::from_secs(600));
    }
    Ok(())
}

/// A service: answers each byte on a passed socket until the other end closes.
fn echo_descriptor(number: &str) -> io::Result<()> {
    let number = number.parse().map_err(io::Error::other)?;
    // SAFETY: the test passes a socket under this number, for us alone.
    let mut socket = unsafe { File::from_raw_fd(number) };
    let mut byte = [0];
    while socket.read(&mut byte)? > 0 {
        socket.write_all(&byte)?;
    }
    Ok(())
}

/// Queues signals for itself that it does not receive, says so and stays.
fn hold_signals(count: &str) -> io::Result<()> {
    let count: usize = count.parse().map_err(io::Error::other)?;
    let signal = libc::SIGRTMIN();
    // SAFETY: the set is the calls' own; the value that goes with a signal is never read.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&raw mut set, signal);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        let value = libc::sigval { sival_ptr: std::ptr::null_mut() };
        if (0..count).any(|_| libc::sigqueue(libc::getpid(), signal, value) != 0) {
            return Err(io::Error::last_os_error());
        }
    }
    let mut out = io::stdout();
    writeln!(out, "ready").and_then(|()| out.flush())?;
    thread::sleep(Duration::from_secs(600));
    Ok(())
}

/// Names the interfaces of the network, as `getifaddrs` finds them.
fn interfaces() -> io::Result<()> {
    let mut names: Vec<String> =
        nix::ifaddrs::getifaddrs()?.map(|interface| interface.interface_name).collect();
    names.dedup();
    names.sort_unstable();
    names.dedup();
    names.iter().try_for_each(|name| writeln!(io::stdout(), "{name}"))
}

/// Makes so many terminals at once, and says the name of the first.
fn terminals(count: &str) -> io::Result<()> {
    let count: usize = count.parse().map_err(io::Error::other)?;
    let make = |_| nix::pty::openpty(None, None).map_err(io::Error::from);
    let made = (0..count).map(make).collect::<io::Result<Vec<_>>>()?;
    let first = made.first().ok_or_else(|| io::Error::other("none was asked for"))?;
    writeln!(io::stdout(), "{}", nix::unistd::ttyname(&first.slave)?.display())
}

/// A server and its client, both inside.
fn loopback() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut client = TcpStream::connect(listener.local_addr()?)?;
    let (mut server, _) = listener.accept()?;
    client.write_all(b"x")?;
    server.read_exact(&mut [0])
}

/// A server that says the same to everybody who comes, and makes a file once it listens.
fn serve(port: &str, text: &str, made: &str) -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port.parse().map_err(io::Error::other)?))?;
    File::create(made)?;
    loop {
        listener.accept()?.0.write_all(text.as_bytes())?;
    }
}

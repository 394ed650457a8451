//! Attempts to use up the machine. Each holds what it has for long enough that
//! a watcher that looks from time to time has looked. Must never hold it longer.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use nix::sys::inotify::{InitFlags, Inotify};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::SndBuf;

use super::{answer, given};

const HOLD: Duration = Duration::from_millis(300);

pub(super) fn attempt(words: &[&str]) -> Option<io::Result<()>> {
    let (name, rest) = words.split_first()?;
    let (folder, numbers) = if *name == "fill" { rest.split_first()? } else { (&".", rest) };
    let numbers = numbers.iter().map(|word| word.parse().ok()).collect::<Option<Vec<usize>>>()?;
    Some(match (*name, &numbers[..]) {
        ("many-processes", [count]) => many_processes(*count),
        ("much-memory", [bytes]) => much_memory(*bytes),
        ("headless-memory", [bytes]) => headless_memory(*bytes),
        ("socket-memory", [count]) => socket_memory(*count),
        ("enlarge-socket", []) => enlarge_socket(),
        ("hidden-memory", [bytes]) => hidden_memory(*bytes),
        ("fill", [total, each]) => fill(folder, *total, *each),
        ("queue-signals", [count]) => queue_signals(*count),
        ("inotify-instances", [count]) => {
            let make = |_| Inotify::init(InitFlags::empty()).map_err(io::Error::from);
            (0..*count).map(make).collect::<io::Result<Vec<_>>>().map(drop)
        }
        ("open-files", [count]) => {
            (0..*count).map(|_| File::open("/dev/null")).collect::<io::Result<Vec<_>>>().map(drop)
        }
        _ => return None,
    })
}

fn many_processes(count: usize) -> io::Result<()> {
    for _ in 0..count {
        // SAFETY: this process has one thread; the copy only sleeps, and ends with it.
        unsafe {
            if answer(libc::fork().into())? == 0 {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                thread::sleep(HOLD * 4);
                libc::_exit(0);
            }
        }
    }
    thread::sleep(HOLD);
    Ok(())
}

/// Queues signals for itself that it does not receive.
fn queue_signals(count: usize) -> io::Result<()> {
    let signal = libc::SIGRTMIN();
    // SAFETY: the set is the calls' own; the value that goes with a signal is never read.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        let value = libc::sigval { sival_ptr: std::ptr::null_mut() };
        (0..count).try_for_each(|_| given(libc::sigqueue(libc::getpid(), signal, value)))
    }
}

fn much_memory(bytes: usize) -> io::Result<()> {
    let memory = vec![1u8; bytes];
    thread::sleep(HOLD);
    std::hint::black_box(&memory);
    Ok(())
}

/// The same in a thread that goes on when the main one has ended.
fn headless_memory(bytes: usize) -> io::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "the main thread, which would return, is gone")]
    let hold = move || std::process::exit(i32::from(much_memory(bytes).is_err()));
    thread::spawn(hold);
    // SAFETY: ends this thread alone; what it has borrowed, nobody looks at any more.
    given(unsafe { libc::syscall(libc::SYS_exit, 0) })
}

/// Memory in what is sent and not received: as much as so many pairs of sockets take.
fn socket_memory(count: usize) -> io::Result<()> {
    let pairs = (0..count).map(|_| UnixStream::pair()).collect::<io::Result<Vec<_>>>()?;
    for mut socket in pairs.iter().flat_map(|(one, other)| [one, other]) {
        socket.set_nonblocking(true)?;
        while socket.write(&[1u8; 4096]).is_ok() {}
    }
    thread::sleep(HOLD);
    Ok(())
}

fn enlarge_socket() -> io::Result<()> {
    let (socket, _other) = UnixStream::pair()?;
    Ok(setsockopt(&socket, SndBuf, &(1 << 20))?)
}

/// Memory in files that no process maps.
fn hidden_memory(bytes: usize) -> io::Result<()> {
    let mut file = File::from(memfd_create(c"hidden", MFdFlags::empty())?);
    (0..bytes >> 20).try_for_each(|_| file.write_all(&vec![1u8; 1 << 20]))?;
    thread::sleep(HOLD);
    Ok(())
}

/// Writes so many bytes into a folder, in files of at most so many.
fn fill(folder: &str, total: usize, each: usize) -> io::Result<()> {
    // SAFETY: the default action of a signal is replaced by ignoring it, so
    // that the write itself fails.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let name = |number| format!("{folder}/fill-{}-{number}", std::process::id());
    let names = || (0..total.div_ceil(each)).map(name);
    let result = names().try_for_each(|name| fs::write(name, vec![1u8; each]));
    thread::sleep(HOLD);
    for name in names() {
        // silent-ok: the last may never have been made.
        fs::remove_file(name).ok();
    }
    result
}

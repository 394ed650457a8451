//! Attempts to use up the machine. Each holds its resources long enough for a periodic watcher to
//! notice, and must never hold them longer.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use nix::pty::openpty;
use nix::sys::inotify::{InitFlags, Inotify};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::SndBuf;

use super::{answer, require_success};

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
        ("page-tables", [bytes]) => page_tables(*bytes),
        ("dropped-memory", [bytes]) => dropped_memory(*bytes),
        ("spliced-memory", [bytes]) => spliced_memory(*bytes),
        ("share-memory", [bytes]) => map(*bytes, libc::MAP_SHARED | libc::MAP_ANONYMOUS).map(drop),
        ("map-zeros", [bytes]) => map_zeros(*bytes),
        ("many-locks", [count]) => many_locks(*count),
        ("many-terminals", [count]) => {
            let make = |_| openpty(None, None).map_err(io::Error::from);
            (0..*count).map(make).collect::<io::Result<Vec<_>>>().map(drop)
        }
        ("rule-set", []) => rule_set(),
        ("send-file", []) => send_file(),
        ("zero-copy", []) => zero_copy(),
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

/// Queues signals to itself that it does not receive.
fn queue_signals(count: usize) -> io::Result<()> {
    let signal = libc::SIGRTMIN();
    // SAFETY: the set is the calls' own; the value that goes with a signal is never read.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        let value = libc::sigval { sival_ptr: std::ptr::null_mut() };
        (0..count).try_for_each(|_| require_success(libc::sigqueue(libc::getpid(), signal, value)))
    }
}

fn much_memory(bytes: usize) -> io::Result<()> {
    let memory = vec![1u8; bytes];
    thread::sleep(HOLD);
    std::hint::black_box(&memory);
    Ok(())
}

/// Uses memory in a thread that continues after the main thread has ended.
fn headless_memory(bytes: usize) -> io::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "the main thread, which would return, is gone")]
    let hold = move || std::process::exit(i32::from(much_memory(bytes).is_err()));
    thread::spawn(hold);
    // SAFETY: ends this thread only. Nobody reads its borrowed values afterwards.
    require_success(unsafe { libc::syscall(libc::SYS_exit, 0) })
}

/// Fills the buffers of `count` pairs of sockets with unread data.
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

/// Maps new pages.
fn map(bytes: usize, how: i32) -> io::Result<*mut u8> {
    let none = std::ptr::null_mut();
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the pages are new and replace nothing.
    let place = unsafe { libc::mmap(none, bytes, access, how, -1, 0) };
    require_success(place as libc::c_long).map(|()| place.cast())
}

/// Uses memory for page tables: each read of a different 2 MiB needs one page of a table.
fn page_tables(bytes: usize) -> io::Result<()> {
    let each = 2 << 20;
    let size = bytes / 4096 * each;
    let how = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: the pages are new, replace nothing, and are read within their bounds.
    unsafe {
        let none = std::ptr::null_mut();
        let place = libc::mmap(none, size, libc::PROT_READ, how, -1, 0);
        require_success(place as libc::c_long)?;
        require_success(libc::madvise(place, size, libc::MADV_NOHUGEPAGE))?;
        for at in (0..size).step_by(each) {
            std::hint::black_box(place.cast::<u8>().add(at).read_volatile());
        }
    }
    thread::sleep(HOLD);
    Ok(())
}

/// Fills shared memory that is then in none of the process's page tables.
fn dropped_memory(bytes: usize) -> io::Result<()> {
    let size = 8 << 20;
    for _ in 0..bytes / size {
        let place = map(size, libc::MAP_SHARED | libc::MAP_ANONYMOUS)?;
        // SAFETY: the pages were just made and are nobody else's.
        unsafe {
            place.write_bytes(1, size);
            require_success(libc::madvise(place.cast(), size, libc::MADV_DONTNEED))?;
        }
    }
    thread::sleep(HOLD);
    Ok(())
}

/// Leaves pages in pipes after the process has unmapped them.
fn spliced_memory(bytes: usize) -> io::Result<()> {
    let size = 1 << 20;
    let mut pipes = Vec::new();
    for _ in 0..bytes / size {
        let (read, write) = nix::unistd::pipe()?;
        let place = map(size, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS)?;
        let piece = libc::iovec { iov_base: place.cast(), iov_len: size };
        // SAFETY: the pages are new and belong to nobody else. The kernel keeps those in the
        // pipe, which are fewer if the user may not have a pipe of this size.
        unsafe {
            libc::fcntl(write.as_raw_fd(), libc::F_SETPIPE_SZ, size as libc::c_int);
            place.write_bytes(1, size);
            let flags = libc::SPLICE_F_NONBLOCK;
            require_success(
                libc::vmsplice(write.as_raw_fd(), &raw const piece, 1, flags) as libc::c_long
            )?;
            require_success(libc::munmap(place.cast(), size))?;
        }
        pipes.push((read, write));
    }
    thread::sleep(HOLD);
    Ok(())
}

/// Maps shared pages of `/dev/zero`.
fn map_zeros(bytes: usize) -> io::Result<()> {
    let zeros = File::open("/dev/zero")?;
    // SAFETY: the pages are new, replace nothing, and are read within their bounds.
    unsafe {
        let none = std::ptr::null_mut();
        let access = libc::PROT_READ;
        let place = libc::mmap(none, bytes, access, libc::MAP_SHARED, zeros.as_raw_fd(), 0);
        require_success(place as libc::c_long)?;
        for at in (0..bytes).step_by(4096) {
            std::hint::black_box(place.cast::<u8>().add(at).read_volatile());
        }
    }
    Ok(())
}

/// Locks every other byte of unnamed files.
fn many_locks(count: usize) -> io::Result<()> {
    let each = 500;
    let make = |_| -> io::Result<File> {
        let options =
            |path| File::options().read(true).write(true).custom_flags(libc::O_TMPFILE).open(path);
        let file = options("/tmp")?;
        for place in 0..each {
            // SAFETY: zero is a valid value of the structure, which outlives the call.
            unsafe {
                let mut lock: libc::flock = std::mem::zeroed();
                lock.l_type = libc::F_WRLCK as libc::c_short;
                lock.l_start = place * 2;
                lock.l_len = 1;
                require_success(libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &raw const lock))?;
            }
        }
        Ok(file)
    };
    let held = (0..count / each as usize).map(make).collect::<io::Result<Vec<_>>>()?;
    thread::sleep(HOLD);
    drop(held);
    Ok(())
}

/// Creates a Landlock rule set, to which rules could be added without end.
fn rule_set() -> io::Result<()> {
    let handled = [1u64];
    // SAFETY: the structure has the stated size, that of its first version.
    require_success(unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, handled.as_ptr(), size_of_val(&handled), 0)
    })
}

/// Moves a page of a file into a pipe, which keeps it.
fn send_file() -> io::Result<()> {
    let file = File::open("/proc/self/exe")?;
    let (_read, write) = nix::unistd::pipe()?;
    // SAFETY: the call takes numbers only.
    let sent =
        unsafe { libc::sendfile(write.as_raw_fd(), file.as_raw_fd(), std::ptr::null_mut(), 4096) };
    require_success(sent as libc::c_long)
}

/// Makes a socket keep pages of the process.
fn zero_copy() -> io::Result<()> {
    let (socket, _other) = UnixStream::pair()?;
    let level = libc::SOL_SOCKET;
    let option = libc::SO_ZEROCOPY;
    let on = 1i32;
    // SAFETY: the value is of the stated size, and outlives the call.
    let set = unsafe {
        let size = size_of_val(&on) as libc::socklen_t;
        libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const on).cast(), size)
    };
    match require_success(set) {
        // The kernel has examined the option, and this address family does not support it.
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(()),
        set => set,
    }
}

/// Uses memory in files that no process maps.
fn hidden_memory(bytes: usize) -> io::Result<()> {
    let mut file = File::from(memfd_create(c"hidden", MFdFlags::empty())?);
    (0..bytes >> 20).try_for_each(|_| file.write_all(&vec![1u8; 1 << 20]))?;
    thread::sleep(HOLD);
    Ok(())
}

/// Writes `total` bytes into a folder, in files of at most `each` bytes.
fn fill(folder: &str, total: usize, each: usize) -> io::Result<()> {
    // SAFETY: the default action of a signal is replaced by ignoring it, so
    // that the write itself fails.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let name = |number| format!("{folder}/fill-{}-{number}", std::process::id());
    let names = || (0..total.div_ceil(each)).map(name);
    let result = names().try_for_each(|name| fs::write(name, vec![1u8; each]));
    thread::sleep(HOLD);
    for name in names() {
        // silent-ok: the last file may not exist.
        fs::remove_file(name).ok();
    }
    result
}

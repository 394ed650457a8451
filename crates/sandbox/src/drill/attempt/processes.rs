//! Attempts on other processes. They must never change what those do.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sched::{CloneFlags, sched_getaffinity, sched_setaffinity, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getppid};

use super::{answer, require, require_success};

pub(super) fn attempt(words: &[&str]) -> Option<io::Result<()>> {
    let (name, number) = match *words {
        ["be-victim"] => return Some(be_victim()),
        ["kill-parent", parent] => return Some(kill_parent(parent)),
        ["limit-parent"] => return Some(limit(getppid().as_raw())),
        [name, number] => (name, number.parse::<i32>().ok()?),
        _ => return None,
    };
    let pid = Pid::from_raw(number);
    let seize = libc::PTRACE_SEIZE;
    Some(match name {
        "see-process" => fs::read(format!("/proc/{pid}/cmdline")).and_then(|line| {
            let found = String::from_utf8_lossy(&line).contains("be-victim");
            require(found, "it is another process")
        }),
        // A signal that has no effect.
        "signal" => kill(pid, Signal::SIGURG).map_err(io::Error::from),
        // SAFETY: seizing stops nothing, and this process ends right after.
        "trace" => require_success(unsafe { libc::syscall(libc::SYS_ptrace, seize, number, 0, 0) }),
        "read-memory" => read_memory(number),
        "take-descriptor" => take_descriptor(number),
        "limit" => limit(number),
        "slow-down" => slow_down(number),
        // It sets the processors that the process already has.
        "pin" => sched_getaffinity(pid)
            .and_then(|processors| sched_setaffinity(pid, &processors))
            .map_err(io::Error::from),
        "enter" => File::open(format!("/proc/{pid}/ns/uts"))
            .and_then(|namespace| Ok(setns(namespace, CloneFlags::CLONE_NEWUTS)?)),
        _ => return None,
    })
}

/// Kills the sandbox's first process from inside.
fn kill_parent(name: &str) -> io::Result<()> {
    let parent = getppid();
    let told = fs::read(format!("/proc/{parent}/cmdline"))?;
    require(told.starts_with(name.as_bytes()), "the parent is not the sandbox's")?;
    kill(parent, Signal::SIGKILL)?;
    for _ in 0..50 {
        if getppid() != parent {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(1));
    }
    Err(io::Error::other("it lives on"))
}

/// Runs as a victim outside: a process of the same user that permits everything that only the
/// kernel's rules control. Ends with its standard input.
fn be_victim() -> io::Result<()> {
    // SAFETY: the header and sets have the kernel's layout; prctl takes numbers.
    unsafe {
        let header: [u32; 2] = [0x2008_0522, 0];
        let none = [0u32; 6];
        answer(libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()))?;
        libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0);
    }
    let mut out = io::stdout();
    out.write_all(b"ready\n").and_then(|()| out.flush())?;
    io::stdin().read_to_end(&mut Vec::new()).map(drop)
}

/// Reads a piece of another process's memory at its first mapped page. The place does not matter,
/// since the kernel checks permission first.
fn read_memory(pid: i32) -> io::Result<()> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let first = maps.split('-').next().unwrap_or_default();
    let place = usize::from_str_radix(first, 16).map_err(io::Error::other)?;
    let mut bytes = [0u8; 16];
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let remote = libc::iovec { iov_base: place as *mut _, iov_len: bytes.len() };
    // SAFETY: the buffer has the stated length. The other process's memory is only read.
    let count =
        unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    require_success(count as libc::c_long)
}

/// Takes another process's standard input.
fn take_descriptor(pid: i32) -> io::Result<()> {
    // SAFETY: both calls take numbers and return a descriptor, which ends with this process.
    unsafe {
        let process = answer(libc::syscall(libc::SYS_pidfd_open, pid, 0))?;
        require_success(libc::syscall(libc::SYS_pidfd_getfd, process, 0, 0))
    }
}

/// Sets another process's limit to its current value.
fn limit(pid: i32) -> io::Result<()> {
    let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is the calls' own.
    unsafe {
        require_success(libc::prlimit(pid, libc::RLIMIT_CORE, std::ptr::null(), &raw mut now))?;
        require_success(libc::prlimit(pid, libc::RLIMIT_CORE, &raw const now, std::ptr::null_mut()))
    }
}

/// Sets another process's priority to its current value.
fn slow_down(pid: i32) -> io::Result<()> {
    Errno::clear();
    // SAFETY: both calls take numbers.
    unsafe {
        let now = libc::getpriority(libc::PRIO_PROCESS, pid.cast_unsigned());
        if now == -1 && Errno::last_raw() != 0 {
            return Err(io::Error::last_os_error());
        }
        require_success(libc::setpriority(libc::PRIO_PROCESS, pid.cast_unsigned(), now))
    }
}

//! Attempts on other processes.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{SigHandler, Signal, kill, signal as handle};
use nix::unistd::Pid;

use crate::{answer, argument};

/// Whether the test's other process is there to be seen.
pub(crate) fn see(words: &[String]) -> io::Result<()> {
    let pid: i32 = argument(words, 0)?;
    let line = fs::read(format!("/proc/{pid}/cmdline"))?;
    let found = String::from_utf8_lossy(&line).contains("be-victim");
    if found { Ok(()) } else { Err(io::Error::other("it is another process")) }
}

pub(crate) fn signal(words: &[String]) -> io::Result<()> {
    Ok(kill(Pid::from_raw(argument(words, 0)?), Signal::SIGUSR1)?)
}

pub(crate) fn trace(words: &[String]) -> io::Result<()> {
    let pid: i32 = argument(words, 0)?;
    // SAFETY: seizing stops nothing, and this process ends right after.
    let result = unsafe { libc::syscall(libc::SYS_ptrace, libc::PTRACE_SEIZE, pid, 0, 0) };
    answer(result).map(drop)
}

/// A process outside, of the same user, that lets everybody do what the
/// kernel's rules alone permit. Ends with its standard input.
pub(crate) fn be_victim(_: &[String]) -> io::Result<()> {
    // SAFETY: the ignoring disposition runs no code; the header and sets have
    // the kernel's layout; prctl takes numbers.
    unsafe {
        handle(Signal::SIGUSR1, SigHandler::SigIgn)?;
        let header: [u32; 2] = [0x2008_0522, 0];
        let none = [0u32; 6];
        answer(libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()))?;
        libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0);
    }
    let mut out = io::stdout();
    out.write_all(b"ready\n")?;
    out.flush()?;
    io::stdin().read_to_end(&mut Vec::new()).map(drop)
}

/// Detaches a descendant in a session of its own that appends to a file for
/// ever, then ends or stays.
pub(crate) fn linger(words: &[String]) -> io::Result<()> {
    let path: String = argument(words, 0)?;
    let stay: String = argument(words, 1)?;
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
            fs::OpenOptions::new().create(true).append(true).open(&path)?.write_all(b"x")?;
            thread::sleep(Duration::from_millis(10));
        }
    }
    while fs::metadata(&path).is_err() {
        thread::sleep(Duration::from_millis(5));
    }
    if stay == "stay" {
        thread::sleep(Duration::from_secs(600));
    }
    Ok(())
}

/// Hardens itself as our own processes do, and checks what came of it.
pub(crate) fn be_hardened(_: &[String]) -> io::Result<()> {
    automaton_sandbox::harden().map_err(io::Error::other)?;
    let dumpable = nix::sys::prctl::get_dumpable()?;
    let core = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_CORE)?;
    let mask = nix::sys::stat::umask(nix::sys::stat::Mode::empty());
    let hardened = !dumpable && core == (0, 0) && mask.bits() == 0o077;
    if hardened { Ok(()) } else { Err(io::Error::other("it is not hardened")) }
}

pub(crate) fn end_itself(_: &[String]) -> io::Result<()> {
    automaton_sandbox::process::kill_self()
}

/// Reads a piece of another process's memory: the place of its own first page is as good
/// as any, since who may read is asked before what is there.
pub(crate) fn read_memory(words: &[String]) -> io::Result<()> {
    let pid: i32 = argument(words, 0)?;
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let first = maps.split('-').next().unwrap_or_default();
    let place = usize::from_str_radix(first, 16).map_err(io::Error::other)?;
    let mut bytes = [0u8; 16];
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let remote = libc::iovec { iov_base: place as *mut _, iov_len: bytes.len() };
    // SAFETY: the buffer is as long as said; the other process's place is read only.
    answer(unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) }
        as libc::c_long)
    .map(drop)
}

/// Takes another process's standard input.
pub(crate) fn take_descriptor(words: &[String]) -> io::Result<()> {
    let pid: i32 = argument(words, 0)?;
    // SAFETY: both calls take numbers and give a descriptor, which ends with this process.
    unsafe {
        let process = answer(libc::syscall(libc::SYS_pidfd_open, pid, 0))?;
        answer(libc::syscall(libc::SYS_pidfd_getfd, process, 0, 0)).map(drop)
    }
}

/// Limits the open files of another process to what they are limited to.
pub(crate) fn limit(words: &[String]) -> io::Result<()> {
    let pid: i32 = argument(words, 0)?;
    let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is the call's own.
    let result = unsafe { libc::prlimit(pid, libc::RLIMIT_CORE, std::ptr::null(), &raw mut now) };
    answer(result.into()).map(drop)
}

/// Makes another process wait for others.
pub(crate) fn slow_down(words: &[String]) -> io::Result<()> {
    let pid: u32 = argument(words, 0)?;
    // SAFETY: the call takes numbers.
    answer(unsafe { libc::setpriority(libc::PRIO_PROCESS, pid, 19) }.into()).map(drop)
}

/// Chooses the processors of another process: all that it may have.
pub(crate) fn pin(words: &[String]) -> io::Result<()> {
    let pid: i32 = argument(words, 0)?;
    // SAFETY: an empty set is a valid value of the type.
    let mut all: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is as large as said.
    let result = unsafe {
        (0..8).for_each(|processor| libc::CPU_SET(processor, &mut all));
        libc::sched_setaffinity(pid, size_of_val(&all), &raw const all)
    };
    answer(result.into()).map(drop)
}

/// Enters a namespace of another process.
pub(crate) fn enter(words: &[String]) -> io::Result<()> {
    let pid: i32 = argument(words, 0)?;
    let namespace = fs::File::open(format!("/proc/{pid}/ns/uts"))?;
    Ok(nix::sched::setns(namespace, nix::sched::CloneFlags::CLONE_NEWUTS)?)
}

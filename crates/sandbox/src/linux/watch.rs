//! Adds up what a tree of processes uses, where no control group does.
//!
//! Runs in the namespace's first process, whose `/proc` shows exactly the
//! tree. What it cannot see (memory that belongs to no process, pages that pipes keep, sockets
//! made larger) the list of system calls refuses at this level; a socket it takes for as full as
//! it can be.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::time::Duration;

use nix::sys::statvfs::statvfs;

use crate::outcome::ExitStatus;
use crate::plan::TreeLimits;

/// How often the sum is taken.
pub(crate) const INTERVAL: Duration = Duration::from_millis(20);

/// What a socket holds each way where nobody sets it, in bytes.
const USUAL_SOCKET_BYTES: u64 = 212_992;

/// How many locks on parts of files a tree may hold. The kernel needs memory for each, has no
/// limit of them, and takes long to tell of very many.
const LOCKS_MAX: usize = 16_384;

/// What a tree uses.
#[derive(Debug, Default, PartialEq, Eq)]
struct TreeUsage {
    memory_bytes: u64,
    processes: u32,
}

/// The most that one socket can have queued, in bytes, so far as this machine's settings say;
/// in a network of its own they cannot be read.
pub(crate) fn socket_bytes_max() -> u64 {
    let set = |name: &str| {
        // silent-ok: what cannot be read is as the kernel has it when nobody sets it.
        let text = fs::read_to_string(format!("/proc/sys/net/core/{name}")).ok();
        text.and_then(|text| text.trim().parse().ok()).unwrap_or(USUAL_SOCKET_BYTES)
    };
    set("wmem_default").saturating_add(set("rmem_default"))
}

/// How the run must end now, if a sum is over its limit.
pub(crate) fn exceeded(watch: &TreeLimits, socket_bytes_max: u64) -> Option<ExitStatus> {
    let usage = usage(watch.files_in_memory.as_deref());
    // Apart from the sum, since few sockets are as full as they can be.
    let in_sockets = sockets().saturating_mul(socket_bytes_max);
    let used = usage.memory_bytes.max(in_sockets);
    if watch.memory_bytes.is_some_and(|limit| used > limit || locks_exceed(LOCKS_MAX)) {
        return Some(ExitStatus::MemoryExceeded);
    }
    if watch.processes.is_some_and(|limit| usage.processes > limit) {
        return Some(ExitStatus::ProcessesExceeded);
    }
    None
}

fn usage(files: Option<&Path>) -> TreeUsage {
    let own = std::process::id();
    let mut sum = TreeUsage { memory_bytes: files.map_or(0, file_bytes), processes: 0 };
    let Ok(entries) = fs::read_dir("/proc") else {
        // Fail closed: without a sum nothing may go on.
        return TreeUsage { memory_bytes: u64::MAX, processes: u32::MAX };
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if pid == own {
            continue;
        }
        // A process may end between the two looks.
        if let Ok(status) = fs::read_to_string(entry.path().join("status")) {
            let one = of_process(&status, || statuses(&entry.path().join("task")));
            sum.memory_bytes = sum.memory_bytes.saturating_add(one.memory_bytes);
            sum.processes = sum.processes.saturating_add(one.processes);
        }
    }
    sum
}

/// Memory that cannot be dropped: anonymous and shared pages, here or swapped out, and page
/// tables, not the pages of mapped files. Where the first thread has ended only the others tell of it. Threads count as
/// processes, as they do for the kernel.
fn of_process(status: &str, others: impl FnOnce() -> Vec<String>) -> TreeUsage {
    let threads = number(status, "Threads:").unwrap_or(1);
    let memory = |status: &str| {
        let others = ["RssShmem:", "VmSwap:", "VmPTE:"];
        let others = others.iter().filter_map(|key| number(status, key));
        Some(others.fold(number(status, "RssAnon:")?, u64::saturating_add))
    };
    let kibibytes = memory(status).or_else(|| match threads {
        ..=1 => None,
        _ => others().iter().find_map(|status| memory(status)),
    });
    let kibibytes = kibibytes.unwrap_or(0);
    TreeUsage {
        memory_bytes: kibibytes.saturating_mul(1024),
        processes: u32::try_from(threads).unwrap_or(u32::MAX),
    }
}

fn number(status: &str, key: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}

/// What is said of each thread in a folder of them.
fn statuses(threads: &Path) -> Vec<String> {
    let threads = fs::read_dir(threads).into_iter().flatten().flatten();
    // silent-ok: a thread may end between the two looks.
    threads.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok()).collect()
}

/// How many sockets this network has, those among them that are closed and not yet read.
fn sockets() -> u64 {
    let text = fs::read_to_string("/proc/net/sockstat").unwrap_or_default();
    // Fail closed: what nobody counts may be any number.
    number(&text, "sockets: used").unwrap_or(u64::MAX)
}

/// Whether the tree holds more locks on parts of files than this.
fn locks_exceed(most: usize) -> bool {
    // silent-ok: a kernel without this file has no such locks.
    let Ok(locks) = File::open("/proc/locks") else { return false };
    BufReader::new(locks).lines().take(most + 1).take_while(Result::is_ok).count() > most
}

/// What the files of a file system use.
fn file_bytes(place: &Path) -> u64 {
    statvfs(place).map_or(u64::MAX, |place| {
        (place.blocks() - place.blocks_free()).saturating_mul(place.fragment_size())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_counts_of_a_process() {
        let status = "Name:\tx\nVmRSS:\t  900 kB\nRssAnon:\t  100 kB\nRssFile:\t  792 kB\n\
                      RssShmem:\t    8 kB\nVmPTE:\t    40 kB\nVmSwap:\t    4 kB\nThreads:\t3\n";
        let none = Vec::new;
        assert_eq!(of_process(status, none), TreeUsage { memory_bytes: 152 << 10, processes: 3 });
        // A zombie has no memory lines and is still a process.
        let zombie = "Name:\tx\nState:\tZ (zombie)\nThreads:\t1\n";
        assert_eq!(of_process(zombie, none), TreeUsage { memory_bytes: 0, processes: 1 });
        // Neither has one whose other threads go on, and they have the memory.
        let headless = "Name:\tx\nState:\tZ (zombie)\nThreads:\t3\n";
        let others = || vec![headless.to_owned(), status.to_owned(), status.to_owned()];
        assert_eq!(
            of_process(headless, others),
            TreeUsage { memory_bytes: 152 << 10, processes: 3 }
        );
    }

    #[test]
    fn locks_count() {
        let file = tempfile::tempfile().unwrap();
        for place in 0..64 {
            // SAFETY: zero is a valid value of the structure, which outlives the call.
            let locked = unsafe {
                let mut lock: libc::flock = std::mem::zeroed();
                lock.l_type = libc::F_WRLCK as libc::c_short;
                lock.l_start = place * 2;
                lock.l_len = 1;
                libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(&file), libc::F_SETLK, &raw const lock)
            };
            assert_eq!(locked, 0);
        }
        assert!(locks_exceed(63));
        assert!(!locks_exceed(LOCKS_MAX));
    }

    #[test]
    fn sockets_count() {
        let before = sockets();
        let _pair = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(before < u64::MAX && sockets() >= 2);
        assert!(socket_bytes_max() >= 2 * 4096);
    }
}

//! Sums up the resources of a process tree if no control group does.
//!
//! It runs in the namespace's first process, whose `/proc` shows exactly the tree. Some memory is
//! invisible to it: memory of no process, pages in pipes, and enlarged sockets. The system call
//! filter refuses those in this mode. Each socket counts as full.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::time::Duration;

use nix::sys::statvfs::statvfs;

use crate::outcome::ExitStatus;
use crate::plan::TreeLimits;

/// The interval between two sums.
pub(crate) const INTERVAL: Duration = Duration::from_millis(20);

/// The default size of a socket's buffer in one direction, in bytes.
const USUAL_SOCKET_BYTES: u64 = 212_992;

/// The most file locks of a tree. The kernel needs memory for each, does not limit them, and
/// takes long to list very many.
const LOCKS_MAX: usize = 16_384;

/// The resources of a tree.
#[derive(Debug, Default, PartialEq, Eq)]
struct TreeUsage {
    memory_bytes: u64,
    processes: u32,
}

/// Returns the most that one socket can have queued, in bytes, by this machine's settings. They
/// cannot be read in a separate network.
pub(crate) fn socket_bytes_max() -> u64 {
    let set = |name: &str| {
        // silent-ok: an unreadable setting counts as the kernel's default.
        let text = fs::read_to_string(format!("/proc/sys/net/core/{name}")).ok();
        text.and_then(|text| text.trim().parse().ok()).unwrap_or(USUAL_SOCKET_BYTES)
    };
    set("wmem_default").saturating_add(set("rmem_default"))
}

/// Returns how the run must end now, if a total is over its limit.
pub(crate) fn exceeded(watch: &TreeLimits, socket_bytes_max: u64) -> Option<ExitStatus> {
    let usage = tree_usage(watch.files_in_memory.as_deref());
    // Counted separately, since few sockets are full.
    let in_sockets = count_sockets().saturating_mul(socket_bytes_max);
    let used = usage.memory_bytes.max(in_sockets);
    if watch.memory_bytes.is_some_and(|limit| used > limit || locks_exceed(LOCKS_MAX)) {
        return Some(ExitStatus::MemoryExceeded);
    }
    if watch.processes.is_some_and(|limit| usage.processes > limit) {
        return Some(ExitStatus::ProcessesExceeded);
    }
    None
}

fn tree_usage(files: Option<&Path>) -> TreeUsage {
    let own = std::process::id();
    let mut sum = TreeUsage { memory_bytes: files.map_or(0, file_bytes), processes: 0 };
    let Ok(entries) = fs::read_dir("/proc") else {
        // Fail closed: without a sum nothing may continue.
        return TreeUsage { memory_bytes: u64::MAX, processes: u32::MAX };
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if pid == own {
            continue;
        }
        // A process may end between the two reads.
        if let Ok(status) = fs::read_to_string(entry.path().join("status")) {
            let one = process_usage(&status, || statuses(&entry.path().join("task")));
            sum.memory_bytes = sum.memory_bytes.saturating_add(one.memory_bytes);
            sum.processes = sum.processes.saturating_add(one.processes);
        }
    }
    sum
}

/// Returns the memory of a process that cannot be dropped: anonymous and shared pages, swapped or
/// not, and page tables, but not pages of mapped files. If the first thread has ended, only the
/// other threads report it. Threads count as processes, as in the kernel.
fn process_usage(status: &str, others: impl FnOnce() -> Vec<String>) -> TreeUsage {
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

/// Returns the status text of each thread in a folder.
fn statuses(threads: &Path) -> Vec<String> {
    let threads = fs::read_dir(threads).into_iter().flatten().flatten();
    // silent-ok: a thread may end between the two reads.
    threads.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok()).collect()
}

/// Returns the number of sockets of this network, including closed ones with unread data.
fn count_sockets() -> u64 {
    let text = fs::read_to_string("/proc/net/sockstat").unwrap_or_default();
    // Fail closed: an unreadable count may be any number.
    number(&text, "sockets: used").unwrap_or(u64::MAX)
}

/// Returns true if the tree holds more than `most` file locks.
fn locks_exceed(most: usize) -> bool {
    // silent-ok: a kernel without this file has no such locks.
    let Ok(locks) = File::open("/proc/locks") else { return false };
    BufReader::new(locks).lines().take(most + 1).take_while(Result::is_ok).count() > most
}

/// Returns the bytes used on a file system.
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
        assert_eq!(
            process_usage(status, none),
            TreeUsage { memory_bytes: 152 << 10, processes: 3 }
        );
        // A zombie has no memory lines and is still a process.
        let zombie = "Name:\tx\nState:\tZ (zombie)\nThreads:\t1\n";
        assert_eq!(process_usage(zombie, none), TreeUsage { memory_bytes: 0, processes: 1 });
        // Neither has a process whose other threads continue. They have the memory.
        let headless = "Name:\tx\nState:\tZ (zombie)\nThreads:\t3\n";
        let others = || vec![headless.to_owned(), status.to_owned(), status.to_owned()];
        assert_eq!(
            process_usage(headless, others),
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
        let before = count_sockets();
        let _pair = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(before < u64::MAX && count_sockets() >= 2);
        assert!(socket_bytes_max() >= 2 * 4096);
    }
}

//! Adds up what a tree of processes uses, where no control group does.
//!
//! Runs in the namespace's first process, whose `/proc` shows exactly the
//! tree. What it cannot see (memory that belongs to no process) the list of
//! system calls refuses at this level.

use std::fs;
use std::path::Path;
use std::time::Duration;

use nix::sys::statvfs::statvfs;

use crate::outcome::ExitStatus;
use crate::plan::TreeLimits;

/// How often the sum is taken.
pub(crate) const INTERVAL: Duration = Duration::from_millis(20);

/// What a tree uses.
#[derive(Debug, Default, PartialEq, Eq)]
struct TreeUsage {
    memory_bytes: u64,
    processes: u32,
}

/// How the run must end now, if a sum is over its limit.
pub(crate) fn exceeded(watch: &TreeLimits) -> Option<ExitStatus> {
    let usage = usage(watch.files_in_memory.as_deref());
    if watch.memory_bytes.is_some_and(|limit| usage.memory_bytes > limit) {
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
            let one = of_process(&status);
            sum.memory_bytes = sum.memory_bytes.saturating_add(one.memory_bytes);
            sum.processes = sum.processes.saturating_add(one.processes);
        }
    }
    sum
}

/// Memory that cannot be dropped: anonymous and shared pages, not those of
/// mapped files. Threads count as processes, as they do for the kernel.
fn of_process(status: &str) -> TreeUsage {
    let number = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let kibibytes = number("RssAnon:").unwrap_or(0) + number("RssShmem:").unwrap_or(0);
    let threads = number("Threads:").unwrap_or(1);
    TreeUsage {
        memory_bytes: kibibytes.saturating_mul(1024),
        processes: u32::try_from(threads).unwrap_or(u32::MAX),
    }
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
                      RssShmem:\t    8 kB\nThreads:\t3\n";
        assert_eq!(of_process(status), TreeUsage { memory_bytes: 108 << 10, processes: 3 });
        // A zombie has no memory lines and is still a process.
        let zombie = "Name:\tx\nState:\tZ (zombie)\nThreads:\t1\n";
        assert_eq!(of_process(zombie), TreeUsage { memory_bytes: 0, processes: 1 });
    }
}

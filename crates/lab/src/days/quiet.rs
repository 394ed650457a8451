//! A runtime whose time goes on only when nothing is under way.
//!
//! Paused time leaps to the next timer as soon as nobody can be polled. On a busy
//! machine a packet between two sockets of one thread may still wait for the kernel
//! then, and each deadline would pass before it came. So the thread waits, in real
//! time, until the kernel holds no packet, before it says that it has nothing to do.
//! It must never wait for long: what other programs send is none of its business.

use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use crate::sim::SimError;

/// File in which Linux counts queued packets, a line for each processor.
const BACKLOG: &str = "/proc/net/softnet_stat";
/// The column with what waits there, from 0; older systems have none, and are not
/// waited for.
const WAITING: usize = 11;
/// Looks at the most, and the time between two.
const LOOKS_MAX: u32 = 2_000;
const LOOK: Duration = Duration::from_micros(50);

/// A runtime of one thread, in which time passes only when nothing else is to be done.
pub(super) fn runtime() -> Result<Runtime, SimError> {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().start_paused(true).on_thread_park(settle);
    builder.build().map_err(SimError::io("runtime"))
}

/// Waits until the kernel holds no packet.
fn settle() {
    for _ in 0..LOOKS_MAX {
        // silent-ok: without the file there is nothing to wait for.
        let counts = std::fs::read_to_string(BACKLOG).unwrap_or_default();
        if !is_waiting(&counts) {
            return;
        }
        thread::sleep(LOOK);
    }
}

fn is_waiting(counts: &str) -> bool {
    let waits = |line: &str| {
        let held = line.split_ascii_whitespace().nth(WAITING);
        held.is_some_and(|held| held.chars().any(|digit| digit != '0'))
    };
    counts.lines().any(waits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_that_waits_is_seen() {
        let line = |held| format!("04afbd9d{} {held} 00000000\n", " 00000000".repeat(10));
        assert!(!is_waiting(&line("00000000").repeat(2)));
        assert!(is_waiting(&(line("00000000") + &line("0000000a"))));
        assert!(!is_waiting("04afbd9d 00000000\n"), "an older system");
    }
}

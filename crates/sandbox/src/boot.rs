//! The clock that nobody can set: time since boot.

use automaton_core::time::Span;
use automaton_core::window::BootClock;
use nix::time::{ClockId, clock_gettime};

/// `CLOCK_BOOTTIME`, which continues while the machine sleeps. A process that is confined as a
/// key holder can read it.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemBootClock;

impl BootClock for SystemBootClock {
    fn since_boot(&self) -> Option<Span> {
        // silent-ok: no answer means unknown, and the caller decides what follows.
        let read = clock_gettime(ClockId::CLOCK_BOOTTIME).ok()?;
        let whole = read.tv_sec().checked_mul(1000)?;
        Some(Span::from_millis(whole.checked_add(read.tv_nsec() / 1_000_000)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_runs_and_never_back() {
        let first = SystemBootClock.since_boot().unwrap();
        assert!(first > Span::ZERO);
        std::thread::sleep(std::time::Duration::from_millis(3));
        assert!(SystemBootClock.since_boot().unwrap() > first);
    }
}

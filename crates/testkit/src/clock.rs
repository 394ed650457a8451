//! A clock that stands still until a test moves it.
//!
//! It must never read the time of the machine, or a test could depend on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use automaton_core::time::{Clock, Span, Timestamp};

/// A clock that a test sets and steps. Clones show the same time.
#[derive(Debug, Clone)]
pub struct FakeClock(Arc<AtomicI64>);

impl FakeClock {
    /// Creates a clock that shows `now`.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        Self(Arc::new(AtomicI64::new(now.as_millis())))
    }

    /// Sets the time. It may go backwards, as real clocks do.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_millis(), Ordering::SeqCst);
    }

    /// Advances the clock and returns the new time. Stops at the end of representable time.
    pub fn step(&self, span: Span) -> Timestamp {
        let after = |millis| Timestamp::from_millis(millis).after(span);
        let step = |millis| Some(after(millis).as_millis());
        let before = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, step);
        after(before.unwrap_or_else(|unchanged| unchanged))
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_show_one_time_that_only_moves_by_hand() {
        let clock = FakeClock::at(Timestamp::from_millis(1_000));
        let seen = clock.clone();
        assert_eq!(clock.step(Span::from_secs(2)), Timestamp::from_millis(3_000));
        assert_eq!(seen.now(), Timestamp::from_millis(3_000));
        clock.set(Timestamp::EPOCH);
        assert_eq!(seen.now(), Timestamp::EPOCH);
        clock.set(Timestamp::from_millis(i64::MAX));
        assert_eq!(clock.step(Span::from_secs(1)), Timestamp::from_millis(i64::MAX));
    }
}

//! How long something took. It must never be used for a date.

use std::time::Instant;

/// Measures from when it was started.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts measuring.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "durations are reported, never decided upon")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Milliseconds since the start.
    #[must_use]
    pub fn millis(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

//! How often a child may crash, and how long to wait before it is started again.

use std::collections::VecDeque;
use std::time::Duration;

use automaton_core::time::{Span, Timestamp};

/// Crashes within [`CRASH_WINDOW`] after which nothing is started again.
const CRASHES_MAX: usize = 5;
const CRASH_WINDOW: Span = Span::from_secs(60);
/// The wait after the first crash of a window; doubles with each.
const BACKOFF: Duration = Duration::from_millis(200);

/// The crashes of one child.
#[derive(Debug, Default)]
pub(crate) struct CrashHistory {
    recent: VecDeque<Timestamp>,
    /// How often it was started again.
    pub(crate) restarts: u32,
}

impl CrashHistory {
    /// Counts a crash; the wait before the next start, nothing when it died too
    /// often.
    pub(crate) fn count(&mut self, now: Timestamp) -> Option<Duration> {
        self.recent.retain(|crash| now.since(*crash) < CRASH_WINDOW);
        self.recent.push_back(now);
        if self.recent.len() >= CRASHES_MAX {
            return None;
        }
        self.restarts = self.restarts.saturating_add(1);
        let doublings = u32::try_from(self.recent.len().saturating_sub(1)).unwrap_or(0);
        Some(BACKOFF.saturating_mul(1 << doublings.min(5)))
    }

    /// The sentence for a child that died too often.
    pub(crate) fn too_many(name: &str, how: &str) -> String {
        let seconds = CRASH_WINDOW.as_millis() / 1000;
        format!("the {name} died {CRASHES_MAX} times within {seconds} seconds, at last: {how}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_within_a_minute_are_too_many_and_each_waits_longer() {
        let at = |seconds| Timestamp::EPOCH.after(Span::from_secs(seconds));
        let mut crashes = CrashHistory::default();
        let waits: Vec<_> = (0..5).map(|second| crashes.count(at(second))).collect();
        let millis = |wait: &Option<Duration>| wait.map(|wait| wait.as_millis());
        assert_eq!(
            waits.iter().map(millis).collect::<Vec<_>>(),
            [Some(200), Some(400), Some(800), Some(1600), None]
        );
        let mut seldom = CrashHistory::default();
        assert!((0..9).all(|minute| seldom.count(at(60 * minute)).is_some()));
        assert_eq!(seldom.restarts, 9);
    }
}

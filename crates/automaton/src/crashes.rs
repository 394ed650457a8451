//! Limits of crashes of a child, and the wait before its restart.

use std::collections::VecDeque;
use std::time::Duration;

use automaton_core::time::{Span, Timestamp};

/// Crashes within [`CRASH_WINDOW`] after which nothing is started again soon.
const CRASHES_MAX: usize = 5;
const CRASH_WINDOW: Span = Span::from_secs(60);
/// The wait after the first crash of a window; doubles with each.
const BACKOFF: Duration = Duration::from_millis(200);

/// The pause after too many; doubles with each, up to the longest.
const PAUSE: Duration = Duration::from_secs(60);
const PAUSE_MAX: Duration = Duration::from_secs(30 * 60);
/// Without a crash for so long, the next pause is the first again.
const CALM: Span = Span::from_secs(2 * 60 * 60);

/// The crashes of one child.
#[derive(Debug, Default)]
pub(crate) struct CrashHistory {
    recent: VecDeque<Timestamp>,
    last: Option<Timestamp>,
    pauses: u32,
    /// Restarts so far.
    pub(crate) restarts: u32,
}

impl CrashHistory {
    /// Counts a crash; the wait before the next start, nothing when it died too
    /// often.
    pub(crate) fn count(&mut self, now: Timestamp) -> Option<Duration> {
        if self.last.replace(now).is_some_and(|last| now.since(last) > CALM) {
            self.pauses = 0;
        }
        self.recent.retain(|crash| now.since(*crash) < CRASH_WINDOW);
        self.recent.push_back(now);
        if self.recent.len() >= CRASHES_MAX {
            return None;
        }
        self.restarts = self.restarts.saturating_add(1);
        let doublings = u32::try_from(self.recent.len().saturating_sub(1)).unwrap_or(0);
        Some(BACKOFF.saturating_mul(1 << doublings.min(5)))
    }

    /// Returns the wait after too many crashes of a process that must go on. It grows each time.
    pub(crate) fn pause(&mut self) -> Duration {
        self.recent.clear();
        self.restarts = self.restarts.saturating_add(1);
        let pause = PAUSE.saturating_mul(1 << self.pauses.min(10)).min(PAUSE_MAX);
        self.pauses = self.pauses.saturating_add(1);
        pause
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

    #[test]
    fn who_goes_on_waits_longer_each_time_until_it_is_calm() {
        let at = |seconds| Timestamp::EPOCH.after(Span::from_secs(seconds));
        let mut crashes = CrashHistory::default();
        let pauses: Vec<_> = (0..7).map(|_| crashes.pause().as_secs() / 60).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        assert!(crashes.count(at(0)).is_some(), "after a pause it is tried again");
        assert!(crashes.count(at(3 * 60 * 60)).is_some());
        assert_eq!(crashes.pause(), PAUSE);
    }
}

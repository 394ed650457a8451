//! Pure: which upstream, and which of its keys, is left alone for a while.
//!
//! ```text
//! works ── 3 failures, or it says so ──▶ rests ── time is over, one request ──▶ is tried
//!   ▲                                     ▲                                        │
//!   │                                     └──────────────── failure ───────────────┤
//!   └───────────────────────────────── success ────────────────────────────────────┘
//! ```

use std::sync::{Mutex, MutexGuard, PoisonError};

use automaton_core::secret::Secret;
use automaton_core::time::{Span, Timestamp};

/// Failures in a row after which an upstream rests.
const FAILURES_MAX: u32 = 3;
/// How long it does.
const REST: Span = Span::from_secs(30);
/// How long a key rests that is not accepted.
const KEY_REST: Span = Span::from_secs(600);
/// How long a key rests that asks too much, where nobody says how long.
const BUSY_REST: Span = Span::from_secs(10);
/// The longest that a server is believed.
const BUSY_REST_MAX: Span = Span::from_secs(300);

/// What a request said of its upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HealthVerdict {
    /// It answers.
    Works,
    /// It failed.
    Failed,
    /// It does not want to be asked for so long, or for some time.
    Busy(Option<Span>),
    /// It does not accept our key.
    Key,
}

/// The health of one upstream. A std mutex, since nothing is awaited while it is held.
#[derive(Debug, Default)]
pub(crate) struct UpstreamHealth(Mutex<HealthState>);

#[derive(Debug, Default)]
struct HealthState {
    /// Failures in a row.
    failures: u32,
    rests_until: Option<Timestamp>,
    /// Whether a request is under way by which it is tried again.
    is_tried: bool,
}

impl UpstreamHealth {
    /// Whether it may be asked. Where it has rested, one request may, until that is judged.
    pub(super) fn admits(&self, now: Timestamp) -> bool {
        let mut state = lock(&self.0);
        match state.rests_until {
            None => true,
            Some(end) if end <= now && !state.is_tried => {
                state.is_tried = true;
                true
            }
            Some(_) => false,
        }
    }

    /// What follows from a request, if anything does; gives whether it rests now and did not before.
    pub(super) fn judge(&self, verdict: Option<HealthVerdict>, now: Timestamp) -> bool {
        let mut state = lock(&self.0);
        let before = state.rests_until.is_some();
        state.is_tried = false;
        let Some(verdict) = verdict else { return false };
        let rest = match verdict {
            HealthVerdict::Works => {
                *state = HealthState::default();
                return false;
            }
            HealthVerdict::Failed => {
                state.failures = state.failures.saturating_add(1);
                (before || state.failures >= FAILURES_MAX).then_some(REST)
            }
            HealthVerdict::Busy(rest) => Some(busy(rest)),
            HealthVerdict::Key => Some(REST),
        };
        if let Some(rest) = rest {
            state.rests_until = Some(now.after(rest));
        }
        !before && rest.is_some()
    }
}

fn busy(rest: Option<Span>) -> Span {
    rest.unwrap_or(BUSY_REST).min(BUSY_REST_MAX)
}

/// The keys to one upstream, of which one is used until it is refused.
#[derive(Debug)]
pub(crate) struct KeyRing {
    keys: Vec<Secret>,
    /// Until when each of them rests.
    rests: Mutex<Vec<Option<Timestamp>>>,
}

impl KeyRing {
    pub(crate) fn new(keys: Vec<Secret>) -> Self {
        let rests = Mutex::new(vec![None; keys.len()]);
        Self { keys, rests }
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<&Secret> {
        self.keys.iter().collect()
    }

    /// How often an upstream is asked at most: once for each key.
    pub(super) fn tries(&self) -> usize {
        self.keys.len().max(1)
    }

    /// The place and text of the key to use: the first that does not rest, or else the one that has
    /// rested longest; nothing where there are none.
    pub(super) fn choose(&self, now: Timestamp) -> Option<(usize, &Secret)> {
        let rests = lock(&self.rests);
        let ready = rests.iter().position(|rest| rest.is_none_or(|end| end <= now));
        let place = ready.or_else(|| {
            rests.iter().enumerate().min_by_key(|(_, end)| **end).map(|(place, _)| place)
        })?;
        self.keys.get(place).map(|key| (place, key))
    }

    /// Whether any of them does not rest.
    pub(super) fn has_ready(&self, now: Timestamp) -> bool {
        lock(&self.rests).iter().any(|rest| rest.is_none_or(|end| end <= now))
    }

    /// A key was refused.
    pub(super) fn refused(&self, place: usize, verdict: HealthVerdict, now: Timestamp) {
        let rest = match verdict {
            HealthVerdict::Busy(rest) => busy(rest),
            _ => KEY_REST,
        };
        if let Some(end) = lock(&self.rests).get_mut(place) {
            *end = Some(now.after(rest));
        }
    }

    /// A key was accepted.
    pub(super) fn works(&self, place: usize) {
        if let Some(end) = lock(&self.rests).get_mut(place) {
            *end = None;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is one assignment, so a panic elsewhere leaves it whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_millis(secs * 1000)
    }

    #[test]
    fn an_upstream_rests_after_three_failures_and_is_tried_by_one_request() {
        let health = UpstreamHealth::default();
        for _ in 0..2 {
            assert!(!health.judge(Some(HealthVerdict::Failed), at(0)) && health.admits(at(0)));
        }
        health.judge(Some(HealthVerdict::Works), at(0));
        for nth in 1..=3 {
            assert_eq!(health.judge(Some(HealthVerdict::Failed), at(0)), nth == 3);
        }
        assert!(!health.admits(at(29)));
        assert!(health.admits(at(30)) && !health.admits(at(30)), "one alone");
        assert!(!health.judge(Some(HealthVerdict::Failed), at(31)), "that is no news");
        assert!(!health.admits(at(60)) && health.admits(at(61)));
        health.judge(Some(HealthVerdict::Works), at(61));
        assert!(health.admits(at(61)) && health.admits(at(61)));
    }

    #[test]
    fn a_busy_upstream_is_believed_within_bounds() {
        for (told, rest) in [(Some(7), 7), (None, 10), (Some(100_000), 300)] {
            let health = UpstreamHealth::default();
            assert!(health.judge(Some(HealthVerdict::Busy(told.map(Span::from_secs))), at(0)));
            assert!(!health.admits(at(rest - 1)) && health.admits(at(rest)), "{told:?}");
        }
    }

    #[test]
    fn a_refused_key_gives_way_to_the_next() {
        let secret = |text: &str| Secret::new(text.to_owned());
        let ring = KeyRing::new(vec![secret("a"), secret("b")]);
        let chosen = |now| ring.choose(at(now)).map(|(place, _)| place);
        assert_eq!((chosen(0), ring.tries()), (Some(0), 2));
        ring.refused(0, HealthVerdict::Key, at(0));
        assert_eq!(chosen(0), Some(1));
        assert!(ring.has_ready(at(0)));
        ring.refused(1, HealthVerdict::Busy(None), at(0));
        assert!(!ring.has_ready(at(9)) && ring.has_ready(at(10)));
        assert_eq!(chosen(1), Some(1), "it is back first");
        ring.works(1);
        assert_eq!((chosen(1), chosen(600)), (Some(1), Some(0)));
        let none = KeyRing::new(Vec::new());
        assert!(none.choose(at(0)).is_none() && none.tries() == 1);
    }
}

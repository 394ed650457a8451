//! Pure: the health of upstreams and of their keys, which decides whom to leave alone for a while.
//!
//! An upstream has a [`Breaker`]. It counts the verdicts of all requests, since an upstream that
//! is left alone is asked all the same if no other answers.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use automaton_core::secret::Secret;
use automaton_core::time::{Span, Timestamp};
use automaton_net::breaker::{Breaker, BreakerPolicy, BreakerVerdict, CountedRequests, ProbeRole};

/// The limits of an upstream: it rests for 30 seconds after three failures in a row.
const POLICY: BreakerPolicy =
    BreakerPolicy { failures_max: 3, rest: Duration::from_secs(30), counts: CountedRequests::All };
/// The rest of a key that is not accepted.
const KEY_REST: Span = Span::from_secs(600);
/// The rest of a key that asks too much, if the server names none.
const BUSY_REST: Span = Span::from_secs(10);
/// The longest rest that a server is granted.
const BUSY_REST_MAX: Span = Span::from_secs(300);

/// The verdict of a request on its upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HealthVerdict {
    /// It answers.
    Works,
    /// It failed.
    Failed,
    /// It asks to be left alone for this time, or for some time.
    Busy(Option<Span>),
    /// It does not accept our key.
    Key,
}

/// The health of one upstream. A std mutex, since nothing is awaited while it is held.
#[derive(Debug, Default)]
pub(crate) struct UpstreamHealth(Mutex<Breaker>);

impl UpstreamHealth {
    /// Returns whether a request is admitted. After a rest one is, until it is judged.
    pub(super) fn admits(&self, now: Timestamp) -> bool {
        lock(&self.0).admit(since_epoch(now)).is_ok()
    }

    /// Applies the verdict of a request, if it has one. Returns whether the upstream rests now and
    /// did not before.
    pub(super) fn judge(&self, verdict: Option<HealthVerdict>, now: Timestamp) -> bool {
        let verdict = match verdict {
            None => BreakerVerdict::Unknown,
            Some(HealthVerdict::Works) => BreakerVerdict::Works,
            Some(HealthVerdict::Failed) => BreakerVerdict::Fails,
            Some(HealthVerdict::Busy(rest)) => BreakerVerdict::FailsFor(busy(rest).to_std()),
            Some(HealthVerdict::Key) => BreakerVerdict::FailsFor(POLICY.rest),
        };
        let mut breaker = lock(&self.0);
        let was_closed = breaker.is_closed();
        breaker.judge(ProbeRole::Usual, verdict, since_epoch(now), POLICY);
        was_closed && !breaker.is_closed()
    }
}

fn since_epoch(now: Timestamp) -> Duration {
    now.since(Timestamp::EPOCH).to_std()
}

fn busy(rest: Option<Span>) -> Span {
    rest.unwrap_or(BUSY_REST).min(BUSY_REST_MAX)
}

/// The keys to one upstream, of which one is used until it is refused.
#[derive(Debug)]
pub(crate) struct KeyRing {
    keys: Vec<Secret>,
    /// The time until which each of them rests.
    rests: Mutex<Vec<Option<Timestamp>>>,
}

impl KeyRing {
    pub(crate) fn new(keys: Vec<Secret>) -> Self {
        let rests = Mutex::new(vec![None; keys.len()]);
        Self { keys, rests }
    }

    /// Returns all keys.
    pub(super) fn all(&self) -> Vec<&Secret> {
        self.keys.iter().collect()
    }

    /// Returns the most tries of an upstream: one for each key.
    pub(super) fn tries(&self) -> usize {
        self.keys.len().max(1)
    }

    /// Returns the place and the text of the key to use: the first that does not rest, or else the
    /// one that has rested longest, or nothing if there are no keys.
    pub(super) fn choose(&self, now: Timestamp) -> Option<(usize, &Secret)> {
        let rests = lock(&self.rests);
        let ready = rests.iter().position(|rest| rest.is_none_or(|end| end <= now));
        let place = ready.or_else(|| {
            rests.iter().enumerate().min_by_key(|(_, end)| **end).map(|(place, _)| place)
        })?;
        self.keys.get(place).map(|key| (place, key))
    }

    /// Returns whether any key does not rest.
    pub(super) fn has_ready(&self, now: Timestamp) -> bool {
        lock(&self.rests).iter().any(|rest| rest.is_none_or(|end| end <= now))
    }

    /// Lets a refused key rest.
    pub(super) fn refused(&self, place: usize, verdict: HealthVerdict, now: Timestamp) {
        let rest = match verdict {
            HealthVerdict::Busy(rest) => busy(rest),
            _ => KEY_REST,
        };
        if let Some(end) = lock(&self.rests).get_mut(place) {
            *end = Some(now.after(rest));
        }
    }

    /// Ends the rest of a key that was accepted.
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

//! Pure: the health of a model, which decides whether it is asked last.
//!
//! After several failures in a row, or one that only a person can mend, the model is asked last
//! for a while. This is no `net::breaker`, which refuses requests until a single probe has
//! succeeded: here nothing is refused and nothing is probed, the rest grows with each failure, and
//! a clock that is set back ends it. A model must never be left out for good, and a mistake in a
//! request must never be held against the model.

use std::time::Duration;

use automaton_core::error::{Classified, ErrorClass};
use automaton_core::time::{DAY, Span, Timestamp};

use crate::error::InferenceError;

/// Failures in a row from which a model is asked last.
const FAILURES: u32 = 2;

/// First duration of that; it doubles with each further failure, up to the maximum.
const REST: Span = Span::from_secs(30);
const REST_MAX: Span = Span::from_secs(300);

/// Recent failures of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ModelHealth {
    failures: u32,
    /// Until when it is asked last.
    until: Option<Timestamp>,
    /// Time of that message; a clock that is set back ends it.
    since: Option<Timestamp>,
}

impl ModelHealth {
    /// Returns true if it is asked last.
    pub(super) fn is_open(&self, now: Timestamp) -> bool {
        let lasts = |(since, until)| now >= since && now < until;
        self.since.zip(self.until).is_some_and(lasts)
    }

    /// It answered.
    pub(super) fn answered(&mut self) {
        *self = Self::default();
    }

    /// It did not answer.
    pub(super) fn failed(&mut self, error: &InferenceError, now: Timestamp) {
        if error.is_of_request() {
            return;
        }
        self.failures = self.failures.saturating_add(1);
        let rest = match error.wait() {
            Some(wait) => asked_for(wait),
            None if is_lasting(error) => REST_MAX,
            None if self.failures < FAILURES => return,
            None => {
                let doubled = REST.as_millis() << (self.failures - FAILURES).min(8);
                Span::from_millis(doubled).min(REST_MAX)
            }
        };
        (self.since, self.until) = (Some(now), Some(now.after(rest)));
    }
}

/// Returns the wait that a server asks for, up to a day.
fn asked_for(wait: Duration) -> Span {
    let millis = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
    Span::from_millis(millis).min(DAY)
}

/// Returns true if a person has to mend it.
fn is_lasting(error: &InferenceError) -> bool {
    matches!(error, InferenceError::NoCredits { .. }) || error.kind() == ErrorClass::Config
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(status: u16) -> InferenceError {
        InferenceError::Status { endpoint: "http://h/".to_owned(), status, text: String::new() }
    }

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_millis(secs * 1000)
    }

    #[test]
    fn failures_in_a_row_open_it_for_longer_and_longer() {
        let mut health = ModelHealth::default();
        health.failed(&status(500), at(0));
        assert!(!health.is_open(at(0)), "once is nobody's fault");
        for (failures, secs) in [(2, 30), (3, 60), (4, 120), (5, 240), (6, 300), (90, 300)] {
            let mut health = ModelHealth::default();
            (0..failures).for_each(|_| health.failed(&status(503), at(0)));
            assert!(health.is_open(at(secs - 1)) && !health.is_open(at(secs)), "{failures}");
            assert!(!health.is_open(at(-1)), "a clock that is set back ends it");
            health.answered();
            assert!(!health.is_open(at(1)));
        }
    }

    #[test]
    fn what_the_request_did_wrong_is_not_the_models_fault() {
        let mut health = ModelHealth::default();
        (0..9).for_each(|_| health.failed(&status(400), at(0)));
        assert_eq!(health, ModelHealth::default());
    }

    #[test]
    fn a_bad_key_and_a_wish_to_be_left_alone_count_at_once() {
        let (endpoint, text) = ("http://h/".to_owned(), String::new());
        let key = InferenceError::Unauthorised {
            endpoint: endpoint.clone(),
            status: 401,
            text: text.clone(),
            remedy: None,
        };
        let busy =
            InferenceError::Busy { endpoint, status: 429, text, wait: Duration::from_secs(7) };
        for (error, secs) in [(key, 300), (busy, 7)] {
            let mut health = ModelHealth::default();
            health.failed(&error, at(0));
            assert!(health.is_open(at(secs - 1)) && !health.is_open(at(secs)), "{error}");
        }
    }
}

//! Leaves an origin alone that failed again and again.
//!
//! Each origin has a breaker of its own, so that one that is down costs the
//! others nothing. After five failures in a row its requests are refused for a
//! while; then a single one is let through, and its fate decides. An answer with
//! a client's error is a success here: the server is at work. Must never send
//! anything itself.
//!
//! ```text
//! closed ── 5 failures ──▶ open ── rest is over, one request ──▶ probing
//!    ▲                      ▲                                       │
//!    │                      └── failure; given up: at once again ───┤
//!    └──────────────────────────── success ─────────────────────────┘
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::error::NetError;
use crate::origin::Origin;

/// Failures in a row after which an origin is left alone.
pub(crate) const FAILURES_MAX: u32 = 5;
/// Origins with failures that are remembered at once.
const ORIGINS_MAX: usize = 256;

/// What is known of an origin that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BreakerState {
    /// Requests go through.
    Closed { failures: u32 },
    /// None does before this time.
    Open { until: Instant },
    /// One is under way, by which it is tried again.
    Probing { until: Instant },
}

/// What a request was let through as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProbeRole {
    Usual,
    Probe,
}

/// What a request says about its origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BreakerVerdict {
    /// It answers.
    Works,
    /// It does not, or not with what it should.
    Fails,
    /// Nothing: the request was given up, or was refused on this side.
    Unknown,
}

impl BreakerState {
    /// Lets a request through, or says how long none is.
    fn admit(self, now: Instant) -> Result<(Self, ProbeRole), Duration> {
        match self {
            Self::Closed { .. } => Ok((self, ProbeRole::Usual)),
            Self::Open { until } if now >= until => Ok((Self::Probing { until }, ProbeRole::Probe)),
            Self::Open { until } => Err(until - now),
            Self::Probing { .. } => Err(Duration::ZERO),
        }
    }

    /// What follows from a request. One that began before the origin was left
    /// alone says nothing about it now.
    fn judge(self, role: ProbeRole, verdict: BreakerVerdict, rest_until: Instant) -> Self {
        match (self, role, verdict) {
            (Self::Closed { .. }, _, BreakerVerdict::Works)
            | (Self::Probing { .. }, ProbeRole::Probe, BreakerVerdict::Works) => {
                Self::Closed { failures: 0 }
            }
            (Self::Closed { failures }, _, BreakerVerdict::Fails)
                if failures + 1 < FAILURES_MAX =>
            {
                Self::Closed { failures: failures + 1 }
            }
            (Self::Closed { .. }, _, BreakerVerdict::Fails)
            | (Self::Probing { .. }, ProbeRole::Probe, BreakerVerdict::Fails) => {
                Self::Open { until: rest_until }
            }
            (Self::Probing { until }, ProbeRole::Probe, BreakerVerdict::Unknown) => {
                Self::Open { until }
            }
            (state, ..) => state,
        }
    }
}

/// The breakers of all origins that failed.
#[derive(Debug)]
pub(crate) struct CircuitBreakers {
    rest: Duration,
    /// With the time of the last verdict. Origins that work are not in here.
    failing: Mutex<BTreeMap<Origin, (BreakerState, Instant)>>,
}

impl CircuitBreakers {
    pub(crate) fn new(rest: Duration) -> Arc<Self> {
        Arc::new(Self { rest, failing: Mutex::default() })
    }

    /// Lets a request to an origin through.
    ///
    /// # Errors
    /// [`NetError::CircuitOpen`] when the origin failed too often.
    pub(crate) fn admit(self: &Arc<Self>, origin: &Origin) -> Result<BreakerPermit, NetError> {
        let mut failing = self.failing();
        let mut role = ProbeRole::Usual;
        if let Some((state, _)) = failing.get_mut(origin) {
            (*state, role) = state
                .admit(Instant::now())
                .map_err(|again| NetError::CircuitOpen { origin: origin.clone(), again })?;
        }
        Ok(BreakerPermit {
            breakers: Arc::clone(self),
            origin: origin.clone(),
            role,
            verdict: BreakerVerdict::Unknown,
        })
    }

    fn judge(&self, origin: &Origin, role: ProbeRole, verdict: BreakerVerdict) {
        let now = Instant::now();
        let mut failing = self.failing();
        let before =
            failing.get(origin).map_or(BreakerState::Closed { failures: 0 }, |(state, _)| *state);
        match before.judge(role, verdict, now + self.rest) {
            BreakerState::Closed { failures: 0 } => drop(failing.remove(origin)),
            state => drop(failing.insert(origin.clone(), (state, now))),
        }
        if failing.len() > ORIGINS_MAX {
            let oldest = failing.iter().min_by_key(|(_, (_, at))| *at);
            if let Some(oldest) = oldest.map(|(origin, _)| origin.clone()) {
                failing.remove(&oldest);
            }
        }
    }

    fn failing(&self) -> MutexGuard<'_, BTreeMap<Origin, (BreakerState, Instant)>> {
        // Each change is one assignment, so a panic elsewhere leaves it whole.
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Leave to send one request. Dropped without a verdict, as when the request is
/// given up, it says nothing about the origin.
#[derive(Debug)]
pub(crate) struct BreakerPermit {
    breakers: Arc<CircuitBreakers>,
    origin: Origin,
    role: ProbeRole,
    verdict: BreakerVerdict,
}

impl BreakerPermit {
    /// Says what the request said about its origin.
    pub(crate) fn judge(mut self, verdict: BreakerVerdict) {
        self.verdict = verdict;
    }
}

impl Drop for BreakerPermit {
    fn drop(&mut self) {
        self.breakers.judge(&self.origin, self.role, self.verdict);
    }
}

#[cfg(test)]
mod tests;

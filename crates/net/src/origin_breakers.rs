//! One circuit breaker for each origin that failed.
//!
//! An origin that is down costs the others nothing. After five failures in a row its requests are
//! refused for a while. An answer with a client's error is a success here: the server is at work.
//! Must never send anything itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::breaker::{Breaker, BreakerPolicy, BreakerVerdict, CountedRequests, ProbeRole};
use crate::error::NetError;
use crate::origin::Origin;

/// Failures in a row after which an origin is left alone.
pub(crate) const FAILURES_MAX: u32 = 5;
/// Origins with failures that are remembered at once.
const ORIGINS_MAX: usize = 256;

/// The breakers of all origins that failed.
#[derive(Debug)]
pub(crate) struct CircuitBreakers {
    policy: BreakerPolicy,
    started: Instant,
    /// With the time of the last verdict. Origins that work are not in here.
    failing: Mutex<BTreeMap<Origin, (Breaker, Instant)>>,
}

impl CircuitBreakers {
    pub(crate) fn new(rest: Duration) -> Arc<Self> {
        let failures_max = FAILURES_MAX;
        let policy = BreakerPolicy { failures_max, rest, counts: CountedRequests::Probe };
        Arc::new(Self { policy, started: Instant::now(), failing: Mutex::default() })
    }

    /// Admits a request to an origin.
    ///
    /// # Errors
    /// [`NetError::CircuitOpen`] if the origin failed too often.
    pub(crate) fn admit(self: &Arc<Self>, origin: &Origin) -> Result<BreakerPermit, NetError> {
        let mut role = ProbeRole::Usual;
        if let Some((breaker, _)) = self.failing().get_mut(origin) {
            role = breaker
                .admit(self.started.elapsed())
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
        let mut failing = self.failing();
        let mut breaker = failing.get(origin).map_or_else(Breaker::default, |(it, _)| *it);
        breaker.judge(role, verdict, self.started.elapsed(), self.policy);
        if breaker == Breaker::default() {
            failing.remove(origin);
        } else {
            failing.insert(origin.clone(), (breaker, Instant::now()));
        }
        if failing.len() > ORIGINS_MAX {
            let oldest = failing.iter().min_by_key(|(_, (_, at))| *at);
            if let Some(oldest) = oldest.map(|(origin, _)| origin.clone()) {
                failing.remove(&oldest);
            }
        }
    }

    fn failing(&self) -> MutexGuard<'_, BTreeMap<Origin, (Breaker, Instant)>> {
        // Each change is one assignment, so a panic elsewhere leaves it whole.
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Permission to send one request. If it is dropped without a verdict, as when the request is
/// given up, it says nothing about the origin.
#[derive(Debug)]
pub(crate) struct BreakerPermit {
    breakers: Arc<CircuitBreakers>,
    origin: Origin,
    role: ProbeRole,
    verdict: BreakerVerdict,
}

impl BreakerPermit {
    /// Passes the request's verdict on its origin.
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

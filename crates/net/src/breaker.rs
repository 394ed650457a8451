//! Pure: a circuit breaker for a service that fails again and again.
//!
//! After some failures in a row no request is admitted for a while. Then a single one is, as a
//! probe, and its fate decides. The time is passed in, as the span since any fixed moment.
//!
//! ```text
//! closed ── failures ──▶ open ── rest is over, one request ──▶ probing
//!    ▲                    ▲                                       │
//!    │                    └── failure; given up: at once again ───┤
//!    └──────────────────────────── success ───────────────────────┘
//! ```

use std::time::Duration;

/// The limits of a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerPolicy {
    /// Failures in a row that open it.
    pub failures_max: u32,
    /// The time for which it stays open.
    pub rest: Duration,
    /// The requests whose verdicts count while it is not closed.
    pub counts: CountedRequests,
}

/// The requests whose verdicts count while a breaker is not closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedRequests {
    /// The probe alone. A request that began before the service was left alone says nothing about
    /// it now.
    Probe,
    /// All of them, for callers that also ask a service whose breaker admits nothing.
    All,
}

/// The part of an admitted request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeRole {
    /// One of many.
    Usual,
    /// The one that decides.
    Probe,
}

/// The verdict of a request on its service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerVerdict {
    /// The service works.
    Works,
    /// The service does not work, or not as it should.
    Fails,
    /// The service is to be left alone for this time, however many failures there were.
    FailsFor(Duration),
    /// Nothing is known: the request was given up, or was refused on this side.
    Unknown,
}

/// The state of one service. A new one is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breaker {
    /// Requests are admitted.
    Closed {
        /// Failures in a row.
        failures: u32,
    },
    /// No request is admitted before this time.
    Open {
        /// The time.
        until: Duration,
    },
    /// The probe is under way.
    Probing {
        /// The time from which probes are admitted.
        until: Duration,
    },
}

impl Default for Breaker {
    fn default() -> Self {
        Self::Closed { failures: 0 }
    }
}

impl Breaker {
    /// Returns whether all requests are admitted.
    #[must_use]
    pub const fn is_closed(self) -> bool {
        matches!(self, Self::Closed { .. })
    }

    /// Admits a request and returns its role.
    ///
    /// # Errors
    /// The time until a request may be admitted; zero while the probe is under way.
    pub fn admit(&mut self, now: Duration) -> Result<ProbeRole, Duration> {
        match *self {
            Self::Closed { .. } => Ok(ProbeRole::Usual),
            Self::Open { until } if now >= until => {
                *self = Self::Probing { until };
                Ok(ProbeRole::Probe)
            }
            Self::Open { until } => Err(until.saturating_sub(now)),
            Self::Probing { .. } => Err(Duration::ZERO),
        }
    }

    /// Applies the verdict of a request with this role.
    pub fn judge(
        &mut self,
        role: ProbeRole,
        verdict: BreakerVerdict,
        now: Duration,
        policy: BreakerPolicy,
    ) {
        let is_probe = matches!(self, Self::Probing { .. }) && role == ProbeRole::Probe;
        if !self.is_closed() && !is_probe && policy.counts == CountedRequests::Probe {
            return;
        }
        let rest = match verdict {
            BreakerVerdict::Works => {
                *self = Self::default();
                return;
            }
            BreakerVerdict::Unknown => {
                if let Self::Probing { until } = *self {
                    *self = Self::Open { until };
                }
                return;
            }
            BreakerVerdict::Fails => policy.rest,
            BreakerVerdict::FailsFor(rest) => rest,
        };
        *self = match *self {
            Self::Closed { failures }
                if verdict == BreakerVerdict::Fails
                    && failures.saturating_add(1) < policy.failures_max =>
            {
                Self::Closed { failures: failures + 1 }
            }
            _ => Self::Open { until: now.saturating_add(rest) },
        };
    }
}

#[cfg(test)]
mod tests;

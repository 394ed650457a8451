//! Pure: how often something may be done in a while, as data.
//!
//! What was done is counted where it is recorded; the counts come in by [`Attempts`],
//! with what is still running and what was allowed a moment ago. The limits are far
//! above what an ordinary day needs: they end what has gone wrong. A limit must never be
//! judged by a count that could not be read.

use automaton_core::intent::Intent;
use automaton_core::time::{DAY, HOUR, RateWindow};

/// So many in so long, or in one wake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// The rule that holds it, under whose name it is counted.
    pub rule: &'static str,
    /// The kind of intent that counts: [`Intent::kind`].
    pub kind: &'static str,
    /// How many there may be.
    pub max: u32,
    /// Over what time they are counted.
    pub window: RateWindow,
}

const fn hourly(rule: &'static str, kind: &'static str, max: u32) -> Limit {
    Limit { rule, kind, max, window: RateWindow::Last(HOUR) }
}

const fn daily(rule: &'static str, kind: &'static str, max: u32) -> Limit {
    Limit { rule, kind, max, window: RateWindow::Last(DAY) }
}

const fn of_wake(rule: &'static str, kind: &'static str, max: u32) -> Limit {
    Limit { rule, kind, max, window: RateWindow::Wake }
}

/// Every limit.
pub static LIMITS: [Limit; 12] = [
    hourly("rate.commands", "exec", 2000),
    hourly("rate.messages", "message", 60),
    hourly("rate.facts", "remember", 1000),
    hourly("rate.schedule", "schedule", 10),
    daily("rate.soul", "soul", 20),
    daily("rate.genesis_prompt_daily", "genesis", 1),
    hourly("rate.requests", "fetch_paid", 120),
    hourly("rate.machines", "rent", 3),
    of_wake("rate.wake_requests", "fetch_paid", 300),
    of_wake("rate.wake_machines", "rent", 6),
    of_wake("rate.wake_top_ups", "top_up", 5),
    of_wake("rate.wake_transfers", "transfer", 20),
];

impl Limit {
    /// The limits towards which something that intends this counts.
    pub fn of(intents: &[Intent]) -> impl Iterator<Item = &'static Self> {
        let counts = |limit: &&Self| intents.iter().any(|intent| intent.kind() == limit.kind);
        LIMITS.iter().filter(counts)
    }
}

/// How often each of [`LIMITS`] was used within its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attempts([u32; LIMITS.len()]);

impl Attempts {
    /// The counts, in the order of [`LIMITS`].
    #[must_use]
    pub const fn new(counts: [u32; LIMITS.len()]) -> Self {
        Self(counts)
    }

    /// Counts something that was just allowed.
    pub fn add(&mut self, intents: &[Intent]) {
        for (limit, count) in LIMITS.iter().zip(&mut self.0) {
            let counts = intents.iter().any(|intent| intent.kind() == limit.kind);
            *count = count.saturating_add(u32::from(counts));
        }
    }

    /// The limit of this place, and how often it was used.
    pub(crate) fn of(&self, place: usize) -> Option<(&'static Limit, u32)> {
        LIMITS.get(place).zip(self.0.get(place).copied())
    }
}

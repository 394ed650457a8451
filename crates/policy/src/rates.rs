//! Pure: how often something may be done in a while, as data.
//!
//! What was done is counted where it is recorded; the counts come in by [`Attempts`],
//! with what is still running and what was allowed a moment ago. The limits are far
//! above what an ordinary day needs: they end what has gone wrong. A limit must never be
//! judged by a count that could not be read.

use automaton_core::intent::Intent;
use automaton_core::time::{HOUR, Span};

/// So many in so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// The rule that holds it, under whose name it is counted.
    pub rule: &'static str,
    /// The kind of intent that counts: [`Intent::kind`].
    pub kind: &'static str,
    /// How many there may be.
    pub max: u32,
    /// In how long. It moves on with the time.
    pub window: Span,
}

/// Every limit.
pub static LIMITS: [Limit; 6] = [
    Limit { rule: "rate.commands", kind: "exec", max: 2000, window: HOUR },
    Limit { rule: "rate.messages", kind: "message", max: 60, window: HOUR },
    Limit { rule: "rate.facts", kind: "remember", max: 1000, window: HOUR },
    Limit { rule: "rate.schedule", kind: "schedule", max: 10, window: HOUR },
    Limit { rule: "rate.requests", kind: "fetch_paid", max: 120, window: HOUR },
    Limit { rule: "rate.machines", kind: "rent", max: 3, window: HOUR },
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

//! Pure: rate limits, as data.
//!
//! Actions are counted where they are recorded. The counts arrive as [`Attempts`], including
//! calls that still run and calls just allowed. The limits are far above ordinary use: they stop
//! runaway behaviour. A limit must never be judged by a count that could not be read.

use automaton_core::intent::Intent;
use automaton_core::time::{DAY, HOUR, RateWindow};

/// A limit on the number of actions in a time window or in one wake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// The rule that enforces it, which is also the name of the counter.
    pub rule: &'static str,
    /// The kind of intent that counts, see [`Intent::kind`].
    pub kind: &'static str,
    /// The most actions in the window.
    pub max: u32,
    /// The time window.
    pub window: RateWindow,
}

const fn hourly(rule: &'static str, kind: &'static str, max: u32) -> Limit {
    Limit { rule, kind, max, window: RateWindow::Last(HOUR) }
}

const fn daily(rule: &'static str, kind: &'static str, max: u32) -> Limit {
    Limit { rule, kind, max, window: RateWindow::Last(DAY) }
}

const fn per_wake(rule: &'static str, kind: &'static str, max: u32) -> Limit {
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
    per_wake("rate.wake_requests", "fetch_paid", 300),
    per_wake("rate.wake_machines", "rent", 6),
    per_wake("rate.wake_top_ups", "top_up", 5),
    per_wake("rate.wake_transfers", "transfer", 20),
];

impl Limit {
    /// Returns the limits that an action with these intents counts towards.
    pub fn for_intents(intents: &[Intent]) -> impl Iterator<Item = &'static Self> {
        let counts = |limit: &&Self| intents.iter().any(|intent| intent.kind() == limit.kind);
        LIMITS.iter().filter(counts)
    }
}

/// The number of uses of each of [`LIMITS`] within its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attempts([u32; LIMITS.len()]);

impl Attempts {
    /// Creates the counts, in the order of [`LIMITS`].
    #[must_use]
    pub const fn new(counts: [u32; LIMITS.len()]) -> Self {
        Self(counts)
    }

    /// Counts an action that was just allowed.
    pub fn add(&mut self, intents: &[Intent]) {
        for (limit, count) in LIMITS.iter().zip(&mut self.0) {
            let counts = intents.iter().any(|intent| intent.kind() == limit.kind);
            *count = count.saturating_add(u32::from(counts));
        }
    }

    /// Returns the limit at this index and its count.
    pub(crate) fn count_of(&self, place: usize) -> Option<(&'static Limit, u32)> {
        LIMITS.get(place).zip(self.0.get(place).copied())
    }
}

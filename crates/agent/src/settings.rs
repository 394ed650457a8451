//! Pure: what one automaton is told at its start.
//!
//! Plain values, resolved by whoever starts it. They must never be read again
//! from a file or the environment while it lives, and there are no globals:
//! many automatons may share a process.

use std::path::PathBuf;

use automaton_core::id::RemoteMachineId;
use automaton_core::snapshot::SnapshotLimits;
use automaton_core::time::{DAY, Span};
use automaton_inference::{ModelInfo, ModelPrices};
use automaton_memory::soul::Alignment;

use crate::egress::EgressConfig;
pub use automaton_policy::budget::{Budgets, StopLoss, UnattendedBudget};

/// The most turns of a wake that its creator pays for by the day. Some bound there always
/// is.
pub const TURNS_MAX: u32 = 1000;

/// The most tokens of an answer where nobody has said it.
pub const ANSWER_TOKENS: u32 = 4096;

/// Everything that one automaton is told.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Its name: 1 to 64 characters without control characters.
    pub name: String,
    /// Its purpose, in its creator's words.
    pub genesis: String,
    /// Its creator's address, `0x` and 40 hexadecimal digits.
    pub creator_address: Option<String>,
    /// Its wallet's address, in the same form; none without a wallet.
    pub wallet_address: Option<String>,
    /// Its home directory.
    pub home: PathBuf,
    /// The creator's file with the schedule of its heartbeat; need not exist.
    pub heartbeat: PathBuf,
    /// The directory that its sandbox sees as `/root`.
    pub workspace: PathBuf,
    /// The text of its constitution.
    pub constitution: String,
    /// Settings for changes to the soul.
    pub soul: SoulSettings,
    /// True if a model summarizes turns that no prompt shows any more.
    pub summaries: bool,
    /// The most tokens that one answer of the model may have.
    pub max_tokens_per_turn: u32,
    /// True if an answer to its creator may be longer, if model and budget allow it.
    pub long_answers: bool,
    /// Sampling of answers.
    pub sampling: Sampling,
    /// The limits of its life.
    pub limits: AgentLimits,
    /// The rented machine that its commands run on; none for a sandbox here.
    pub machine: Option<RemoteMachineId>,
    /// Destinations of commands' requests.
    pub egress: EgressConfig,
    /// The limits of snapshots of its workspace.
    pub snapshots: SnapshotLimits,
    /// Limits for losses and thinking.
    pub budgets: Budgets,
    /// Turns and pace of this start.
    pub pace: Pace,
}

/// Settings for changes to the soul.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SoulSettings {
    /// With less it is advised to come back to its genesis prompt.
    pub threshold: Alignment,
    /// True if the creator is asked before its purpose changes.
    pub purpose_asks: bool,
    /// True if it reflects on itself once an hour.
    pub reflects: bool,
}

impl Default for SoulSettings {
    fn default() -> Self {
        Self { threshold: Alignment(5_000), purpose_asks: false, reflects: true }
    }
}

/// Sampling of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// Seed of the sampler.
    pub seed: u64,
    /// Temperature in thousandths; 0 is greedy.
    pub temperature_milli: u32,
}

/// The limits of an automaton's life. Spans of sleep are what the seeds say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentLimits {
    /// Turns of one wake.
    pub turns_per_wake: u32,
    /// Turns of one that the creator caused and pays for: what its answers cost ends it.
    pub turns_of_creator: u32,
    /// Turns of one that the creator caused, where answers cost nothing: no budget ends it.
    pub turns_free: u32,
    /// The same of a weak model, which goes in circles.
    pub turns_weak: u32,
    /// Calls of one turn; later ones are skipped, and the model is told.
    pub calls_per_turn: u32,
    /// Turns that may fail one after the other.
    pub errors: u32,
    /// Turns without a call that may come one after the other.
    pub silent_turns: u32,
    /// Turns that may bring nothing new, one after the other.
    pub stale_turns: u32,
    /// Turns whose calls may all be malformed, one after the other.
    pub invalid_turns: u32,
    /// Turns of which no call may be done, one after the other.
    pub blocked_turns: u32,
    /// Times that the same calls may give the same results before it is told.
    pub repeats: u32,
    /// Sleep after the most turns of one wake.
    pub rest_after_turns: Span,
    /// Sleep after too many failures; doubles with each such wake, up to an hour.
    pub rest_after_errors: Span,
    /// Sleep after turns of which nothing was done; doubles, up to ten minutes.
    pub rest_after_blocked: Span,
    /// First wait after a failed turn; doubles, up to a minute.
    pub backoff: Span,
    /// The longest stretch of sleep between two looks at what may end it, should a bell
    /// have been missed and should the clock have jumped.
    pub look: Span,
    /// The time between two looks at the balances of one that waits for money.
    pub look_for_money: Span,
    /// Duration of a claim of a message and of a lease of a task.
    pub lease: Span,
    /// Time for the creator's answer to a question; no answer means no. By default a day in a
    /// wake that the creator caused, else a quarter of an hour.
    pub answer_within: Option<Span>,
}

impl AgentLimits {
    /// The most turns of a wake of this model, by whether its creator caused it.
    pub(crate) fn turns_of(&self, creators: bool, model: &ModelInfo) -> u32 {
        match (creators, model.prices == ModelPrices::default()) {
            (false, _) => self.turns_per_wake,
            (true, false) => self.turns_of_creator,
            (true, true) if model.weak => self.turns_weak,
            (true, true) => self.turns_free,
        }
    }

    /// Returns the time for which a question waits for an answer.
    pub(crate) fn patience(answer_within: Option<Span>, creators: bool) -> Span {
        let usual = if creators { DAY } else { Span::from_secs(15 * 60) };
        answer_within.unwrap_or(usual)
    }
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self {
            turns_per_wake: 25,
            turns_of_creator: TURNS_MAX,
            turns_free: 200,
            turns_weak: 25,
            calls_per_turn: 10,
            errors: 5,
            silent_turns: 3,
            stale_turns: 8,
            invalid_turns: 2,
            blocked_turns: 6,
            repeats: 3,
            rest_after_turns: Span::from_secs(120),
            rest_after_errors: Span::from_secs(300),
            rest_after_blocked: Span::from_secs(120),
            backoff: Span::from_secs(1),
            look: Span::from_secs(30),
            look_for_money: Span::from_secs(60),
            lease: Span::from_secs(60),
            answer_within: None,
        }
    }
}

/// Turns and pace of one start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pace {
    /// End by itself after so many committed turns, counted over wakes.
    pub turns_max: Option<u32>,
    /// Wait at most so long of each sleep.
    pub sleep_cap: Option<Span>,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Settings for the tests of this crate.
    pub(crate) fn settings() -> Settings {
        Settings {
            name: "Ada".to_owned(),
            genesis: "Keep the workspace tidy.".to_owned(),
            creator_address: None,
            wallet_address: None,
            home: PathBuf::from("/nowhere"),
            heartbeat: PathBuf::from("/nowhere/heartbeat.yml"),
            workspace: PathBuf::from("/nowhere/workspace"),
            constitution: "I. Never harm.".to_owned(),
            soul: SoulSettings::default(),
            summaries: true,
            max_tokens_per_turn: 1024,
            long_answers: false,
            sampling: Sampling { seed: 1, temperature_milli: 0 },
            limits: AgentLimits::default(),
            machine: None,
            egress: EgressConfig::default(),
            snapshots: SnapshotLimits::default(),
            budgets: Budgets::default(),
            pace: Pace::default(),
        }
    }
}

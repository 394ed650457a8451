//! Settings of an automaton in the lab: the program's defaults.
//!
//! It must never differ from that by more than its home and what its thinking may cost.

use std::path::Path;

use automaton_agent::{AgentLimits, Budgets, Pace, Sampling, Settings};

/// Settings with this largest answer in tokens, and these budgets.
pub(crate) fn settings(home: &Path, max_tokens_per_turn: u32, budgets: Budgets) -> Settings {
    Settings {
        machine: None,
        egress: Default::default(),
        snapshots: Default::default(),
        name: "Automaton".to_owned(),
        genesis: "Find work that pays for your thinking, and do it well.".to_owned(),
        creator_address: None,
        wallet_address: None,
        home: home.to_owned(),
        heartbeat: home.join("heartbeat.yml"),
        workspace: home.join("workspace"),
        constitution: "I. Never harm.".to_owned(),
        soul: Default::default(),
        summaries: true,
        max_tokens_per_turn,
        long_answers: false,
        sampling: Sampling { seed: 1, temperature_milli: 0 },
        budgets,
        limits: AgentLimits::default(),
        pace: Pace::default(),
    }
}

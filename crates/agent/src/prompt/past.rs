//! Pure: the history as it was rendered, kept from one turn of a process to the next.
//!
//! A committed turn never changes and is rendered the same way for ever, so each is
//! read and rendered once. None must ever be shown under other caps than those that it
//! was rendered with.

use std::collections::VecDeque;
use std::sync::Arc;

use automaton_core::record::{TurnRecord, tool_name};
use automaton_core::tool::ToolName;
use automaton_inference::Message;
use automaton_policy::guard::Guard;

use super::caps::Caps;
use super::history::{self, TURNS_MAX};

/// Turns as the prompt shows them, oldest first.
#[derive(Debug)]
pub(crate) struct Past {
    guard: Arc<Guard>,
    caps: Option<Caps>,
    turns: VecDeque<Shown>,
}

#[derive(Debug)]
struct Shown {
    seq: u64,
    cost: u32,
    tools: Vec<ToolName>,
    messages: Vec<Message>,
}

impl Past {
    /// No turns yet. The guard looks at all that others wrote in them.
    pub(crate) const fn new(guard: Arc<Guard>) -> Self {
        Self { guard, caps: None, turns: VecDeque::new() }
    }

    /// Who looks at what others wrote.
    pub(crate) fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Turns that were just read.
    pub(crate) fn of(turns: &[TurnRecord], caps: Caps, guard: Arc<Guard>) -> Self {
        let mut past = Self::new(guard);
        past.keep(0, caps);
        past.add(turns);
        past
    }

    /// Keeps the turns from a number on, if they were rendered with these caps. The
    /// number from which turns are still to be read.
    pub(crate) fn keep(&mut self, from: u64, caps: Caps) -> u64 {
        if self.caps.replace(caps) != Some(caps) {
            self.turns.clear();
        }
        self.turns.retain(|turn| turn.seq >= from);
        self.turns.back().map_or(from, |newest| newest.seq + 1)
    }

    /// Adds turns that were read, oldest first.
    pub(crate) fn add(&mut self, turns: &[TurnRecord]) {
        let Some(caps) = self.caps else { return };
        // Of so many there may be more between these and the ones before.
        if u32::try_from(turns.len()).is_ok_and(|count| count >= TURNS_MAX) {
            self.turns.clear();
        }
        self.turns.extend(turns.iter().map(|turn| {
            let messages = history::render_turn(turn, &caps, &self.guard);
            let tools = turn.calls.iter().filter_map(tool_name).collect();
            Shown { seq: turn.seq, cost: history::cost(&messages), tools, messages }
        }));
    }

    /// The number of the first turn that fits into so many tokens with all after it,
    /// what those cost, and their messages.
    pub(crate) fn fitting(&self, budget: u32) -> (Option<u64>, u32, Vec<Message>) {
        let costs: Vec<(u64, u32)> = self.turns.iter().map(|turn| (turn.seq, turn.cost)).collect();
        let from = history::first_shown(&costs, budget);
        let shown = || self.turns.iter().filter(|turn| from.is_some_and(|from| turn.seq >= from));
        let messages = shown().flat_map(|turn| turn.messages.iter().cloned()).collect();
        (from, shown().map(|turn| turn.cost).sum(), messages)
    }

    /// The tools that the newest turns called, each once.
    pub(crate) fn called(&self, turns: usize) -> Vec<ToolName> {
        let newest = self.turns.iter().rev().take(turns);
        let mut called: Vec<ToolName> = newest.flat_map(|turn| turn.tools.clone()).collect();
        called.sort();
        called.dedup();
        called
    }
}

#[cfg(test)]
mod tests;

//! Pure: when a wake cycle goes on, when it is nudged and when it stops.
//!
//! The governor sees a summary of each turn and nothing else. A nudge is a
//! sentence for the next prompt; it is not an input and must never reset a
//! counter, or the loop that it warns of would feed on its own warnings.

use std::collections::VecDeque;

use automaton_core::record::StopReason;
use automaton_core::time::Span;

use crate::settings::Limits;

/// The longest period of a repetition that is recognised, in turns.
const PERIOD_MAX: usize = 3;

/// Turns that are remembered for recognising repetition.
const REMEMBERED: usize = 32;

/// What the governor needs to know of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TurnSummary {
    /// Whether the turn answered a message.
    pub(crate) answered: bool,
    /// Whether the model said anything.
    pub(crate) spoke: bool,
    /// Whether the model's answer was cut off or repeated itself.
    pub(crate) cut: bool,
    /// Calls that were made, malformed ones included.
    pub(crate) calls: u32,
    /// Calls that were malformed.
    pub(crate) invalid: u32,
    /// Calls that did what they should.
    pub(crate) done: u32,
    /// Whether a call that changes something has run.
    pub(crate) changed: bool,
    /// The sleep that the model asked for.
    pub(crate) sleep: Option<Span>,
    /// A fingerprint of all calls, their arguments and their results.
    pub(crate) fingerprint: [u8; 32],
}

/// What happens next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Another turn.
    Continue {
        /// A sentence for it, when there is something to say.
        nudge: Option<&'static str>,
    },
    /// The cycle ends.
    Stop(Stop),
}

/// The end of a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stop {
    /// Why.
    pub(crate) reason: StopReason,
    /// How long the sleep is that follows; nothing, when only a cause to wake ends it.
    pub(crate) sleep: Option<Span>,
}

/// The longest sleep after failures, and after turns of which nothing was done.
const ERRORS_MAX: Span = Span::from_secs(3600);
const BLOCKED_MAX: Span = Span::from_secs(600);

impl Stop {
    /// The same after so many wakes that ended alike: what failed again waits longer.
    pub(crate) fn after(self, in_a_row: u32) -> Self {
        let most = match self.reason {
            StopReason::Errors => ERRORS_MAX,
            StopReason::Blocked => BLOCKED_MAX,
            _ => return self,
        };
        let longer = |span: Span| Span::from_millis(span.as_millis() << in_a_row.min(16));
        Self { sleep: self.sleep.map(|span| longer(span).min(most)), ..self }
    }
}

/// The counters of one wake cycle.
#[derive(Debug)]
pub(crate) struct Governor {
    limits: Limits,
    turns: u32,
    errors: u32,
    idle: u32,
    invalid: u32,
    blocked: u32,
    prints: VecDeque<[u8; 32]>,
}

impl Governor {
    /// The counters at the beginning of a wake.
    pub(crate) fn new(limits: Limits) -> Self {
        let prints = VecDeque::new();
        Self { limits, turns: 0, errors: 0, idle: 0, invalid: 0, blocked: 0, prints }
    }

    /// Committed turns of this wake.
    pub(crate) const fn turns(&self) -> u32 {
        self.turns
    }

    /// A turn was committed.
    pub(crate) fn after_turn(&mut self, turn: &TurnSummary) -> Next {
        self.turns += 1;
        self.errors = 0;
        self.idle = if turn.changed || turn.answered { 0 } else { self.idle + 1 };
        let all_invalid = turn.calls > 0 && turn.invalid == turn.calls;
        self.invalid = if all_invalid { self.invalid + 1 } else { 0 };
        let in_vain = turn.calls > 0 && turn.done == 0;
        self.blocked = if in_vain { self.blocked + 1 } else { 0 };
        let repeats = self.count_repeats(turn);
        if let Some(stop) = self.stop_after(turn, repeats) {
            return Next::Stop(stop);
        }
        Next::Continue { nudge: self.nudge_after(turn, repeats) }
    }

    /// A turn failed. Gives the wait before the next attempt, or the end.
    pub(crate) fn after_error(&mut self) -> Result<Span, Stop> {
        self.errors += 1;
        if self.errors >= self.limits.errors {
            let sleep = Some(self.limits.rest_after_errors);
            return Err(Stop { reason: StopReason::Errors, sleep });
        }
        let doubled = self.limits.backoff.as_millis() << (self.errors - 1).min(16);
        Ok(Span::from_millis(doubled.min(60_000)))
    }

    fn stop_after(&self, turn: &TurnSummary, repeats: u32) -> Option<Stop> {
        let limits = &self.limits;
        let stop = |reason, sleep| Some(Stop { reason, sleep });
        // Who has nothing to do sleeps until there is something.
        if turn.sleep.is_some() {
            return stop(StopReason::Asked, turn.sleep);
        }
        if turn.calls == 0 && turn.spoke && !turn.cut {
            return stop(StopReason::Said, None);
        }
        if repeats > limits.repeats {
            return stop(StopReason::Repetition, None);
        }
        if self.invalid > limits.invalid_turns {
            return stop(StopReason::Idle, None);
        }
        if self.blocked >= limits.blocked_turns && turn.invalid < turn.calls {
            return stop(StopReason::Blocked, Some(limits.rest_after_blocked));
        }
        if self.idle >= limits.idle_turns {
            return stop(StopReason::Idle, None);
        }
        if self.turns >= limits.turns_per_wake {
            return stop(StopReason::TurnLimit, Some(limits.rest_after_turns));
        }
        None
    }

    fn nudge_after(&self, turn: &TurnSummary, repeats: u32) -> Option<&'static str> {
        if repeats >= self.limits.repeats {
            return Some(
                "You made the same calls with the same results again. Do something else, or sleep.",
            );
        }
        if turn.invalid > 0 {
            return Some("A call was malformed and did not run. Its result says what to mend.");
        }
        if turn.calls == 0 && turn.cut {
            return Some("Your answer was cut off. Be brief, and call one tool.");
        }
        if turn.calls == 0 {
            return Some("You said nothing and called nothing. Call a tool, or sleep.");
        }
        if self.idle + 1 >= self.limits.idle_turns {
            return Some("Your last turns changed nothing. Do something useful, or sleep.");
        }
        None
    }

    /// How often the newest stretch of turns has come in a row, for the period
    /// of one to [`PERIOD_MAX`] turns that repeats most. Turns without calls
    /// break a repetition, since they have a rule of their own.
    fn count_repeats(&mut self, turn: &TurnSummary) -> u32 {
        if turn.calls == 0 {
            self.prints.clear();
            return 0;
        }
        if self.prints.len() == REMEMBERED {
            self.prints.pop_front();
        }
        self.prints.push_back(turn.fingerprint);
        let newest_first: Vec<&[u8; 32]> = self.prints.iter().rev().collect();
        let most = (1..=PERIOD_MAX).map(|period| repeats_of(&newest_first, period)).max();
        most.unwrap_or(0)
    }
}

/// How many whole periods at the front of the slice are equal.
fn repeats_of(newest_first: &[&[u8; 32]], period: usize) -> u32 {
    let mut chunks = newest_first.chunks_exact(period);
    let Some(first) = chunks.next() else { return 0 };
    let same = chunks.take_while(|chunk| *chunk == first).count();
    u32::try_from(same + 1).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;

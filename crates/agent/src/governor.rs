//! Pure: when a wake goes on, when it is nudged and when it stops by what it does.
//!
//! Progress is new information: a call that has not been made in this wake with this
//! result. The governor sees a summary of each turn and nothing else; what is used up is
//! the bounds' to know, and nothing new ever extends those. A nudge is a sentence for the
//! next prompt; it is not an input and must never reset a counter, or the loop that it
//! warns of would feed on its own warnings.

use std::collections::{HashMap, HashSet, VecDeque};

use automaton_core::record::StopReason;
use automaton_core::time::Span;
use automaton_inference::AnswerFault;

use crate::settings::AgentLimits;

/// The longest period of a repetition that is recognised, in turns.
const PERIOD_MAX: usize = 3;

/// Turns that are remembered for recognising repetition.
const REMEMBERED: usize = 32;

/// Calls of one wake that are remembered; beyond that all are new again.
const SEEN_MAX: usize = 16_384;

/// A fingerprint of a call, its arguments and its result.
pub(crate) type CallFingerprint = [u8; 32];

/// A call, as the governor sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallOutcome {
    /// Tool, arguments and result.
    pub(crate) print: CallFingerprint,
    /// Result of a failed call, if it is in the runtime's own words.
    pub(crate) failed: Option<String>,
}

/// Facts about a turn for the governor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TurnSummary {
    /// True if the turn answered a message.
    pub(crate) answered: bool,
    /// True if the model wrote text.
    pub(crate) spoke: bool,
    /// Fault of the model's answer, if there is one.
    pub(crate) fault: Option<AnswerFault>,
    /// Calls that were made, malformed ones included.
    pub(crate) calls: u32,
    /// Calls that were malformed.
    pub(crate) invalid: u32,
    /// Calls that did what they should.
    pub(crate) done: u32,
    /// The sleep that the model asked for.
    pub(crate) sleep: Option<Span>,
    /// The calls, in order.
    pub(crate) made: Vec<CallOutcome>,
}

/// Next step of a wake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NextAction {
    /// Another turn.
    Continue {
        /// A sentence for it, when there is something to say.
        nudge: Option<String>,
    },
    /// The cycle ends.
    Stop(CycleStop),
}

/// The end of a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CycleStop {
    /// Reason.
    pub(crate) reason: StopReason,
    /// Duration of the following sleep; `None` if only an event ends it.
    pub(crate) sleep: Option<Span>,
}

/// The longest sleep after failures, and after turns of which nothing was done.
const ERRORS_MAX: Span = Span::from_secs(3600);
const BLOCKED_MAX: Span = Span::from_secs(600);

impl CycleStop {
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
#[derive(Debug, Default)]
pub(crate) struct Governor {
    limits: AgentLimits,
    turns: u32,
    errors: u32,
    stale: u32,
    silent: u32,
    invalid: u32,
    blocked: u32,
    faults: u32,
    prints: VecDeque<Vec<CallFingerprint>>,
    seen: HashSet<CallFingerprint>,
    /// Number of equal failures of a call, and the turn of the last one.
    failures: HashMap<CallFingerprint, (u32, u32)>,
}

/// Effect of a turn on the counters.
struct TurnObservation<'a> {
    /// Repetitions of the newest stretch of turns in a row.
    repeats: u32,
    /// True if a new call succeeded.
    moved: bool,
    /// The call that failed alike most often, how often, and what it was told.
    failure: Option<(u32, &'a str)>,
}

/// Answers in a row with which something is wrong, of which the first is told to the model
/// and the last to the creator.
const FAULTS_MAX: u32 = 2;

/// The longest that a server is waited for when it asks for that; beyond it the wake ends.
const ASKED_MAX: Span = Span::from_secs(60);

impl Governor {
    /// The counters at the beginning of a wake.
    pub(crate) fn new(limits: AgentLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Committed turns of this wake.
    pub(crate) const fn turns(&self) -> u32 {
        self.turns
    }

    /// A turn was committed.
    pub(crate) fn after_turn(&mut self, turn: &TurnSummary) -> NextAction {
        self.turns += 1;
        self.errors = 0;
        let (is_new, moved) = self.record_novelty(turn);
        self.stale = if is_new || turn.answered { 0 } else { self.stale + 1 };
        let silent = turn.calls == 0 && !turn.answered;
        self.silent = if silent { self.silent + 1 } else { 0 };
        let all_invalid = turn.calls > 0 && turn.invalid == turn.calls;
        self.invalid = if all_invalid { self.invalid + 1 } else { 0 };
        let in_vain = turn.calls > 0 && turn.done == 0;
        self.blocked = if in_vain { self.blocked + 1 } else { 0 };
        self.faults = if turn.fault.is_some() { self.faults + 1 } else { 0 };
        let repeats = self.count_repeats(turn);
        let failure = self.count_failures(turn);
        let found = TurnObservation { repeats, moved, failure };
        if let Some(stop) = self.stop_after(turn, &found) {
            return NextAction::Stop(stop);
        }
        NextAction::Continue { nudge: self.nudge_after(turn, &found) }
    }

    /// Records the calls of a turn, and returns whether one is new in this wake, and whether a
    /// new one succeeded.
    fn record_novelty(&mut self, turn: &TurnSummary) -> (bool, bool) {
        if self.seen.len() >= SEEN_MAX {
            self.seen.clear();
        }
        let mut is_new = false;
        let mut moved = false;
        for call in &turn.made {
            if self.seen.insert(call.print) {
                is_new = true;
                moved |= call.failed.is_none();
            }
        }
        (is_new, moved)
    }

    /// Counts calls that failed alike, from one turn to one of the next few; the worst of
    /// this turn.
    fn count_failures<'a>(&mut self, turn: &'a TurnSummary) -> Option<(u32, &'a str)> {
        let now = self.turns;
        let near = |last: u32| usize::try_from(now - last).is_ok_and(|gap| gap <= PERIOD_MAX);
        self.failures.retain(|_, (_, last)| near(*last));
        let mut worst = None;
        for call in &turn.made {
            let Some(error) = &call.failed else { continue };
            let (times, last) = self.failures.entry(call.print).or_insert((0, 0));
            if *last != now {
                (*times, *last) = (*times + 1, now);
            }
            worst = worst.max(Some((*times, error.as_str())));
        }
        worst
    }

    /// A turn failed, and may fail so often in a row; its server asks to be left alone for
    /// so long. Gives the wait before the next attempt, or the end.
    pub(crate) fn after_error(
        &mut self,
        tries_max: u32,
        asked: Option<Span>,
    ) -> Result<Span, CycleStop> {
        self.errors += 1;
        let asked = asked.unwrap_or_default();
        if self.errors >= self.limits.errors.min(tries_max) || asked > ASKED_MAX {
            let sleep = Some(self.limits.rest_after_errors.max(asked.min(ERRORS_MAX)));
            return Err(CycleStop { reason: StopReason::Errors, sleep });
        }
        let doubled = self.limits.backoff.as_millis() << (self.errors - 1).min(16);
        Ok(Span::from_millis(doubled.min(60_000)).max(asked))
    }

    fn stop_after(&self, turn: &TurnSummary, found: &TurnObservation<'_>) -> Option<CycleStop> {
        let limits = &self.limits;
        let stop = |reason, sleep| Some(CycleStop { reason, sleep });
        // Who has nothing to do sleeps until there is something.
        if turn.sleep.is_some() {
            return stop(StopReason::Asked, turn.sleep);
        }
        if self.faults >= FAULTS_MAX {
            return stop(StopReason::Blocked, Some(limits.rest_after_blocked));
        }
        if turn.calls == 0 && turn.spoke && turn.fault.is_none() {
            return stop(StopReason::Said, None);
        }
        let fails_alike = found.failure.is_some_and(|(times, _)| times > limits.repeats);
        if found.repeats > limits.repeats || (fails_alike && !found.moved) {
            return stop(StopReason::Repetition, None);
        }
        if self.invalid > limits.invalid_turns {
            return stop(StopReason::Idle, None);
        }
        if self.blocked >= limits.blocked_turns && turn.invalid < turn.calls {
            return stop(StopReason::Blocked, Some(limits.rest_after_blocked));
        }
        if self.silent >= limits.silent_turns || self.stale >= limits.stale_turns {
            return stop(StopReason::Idle, None);
        }
        None
    }

    fn nudge_after(&self, turn: &TurnSummary, found: &TurnObservation<'_>) -> Option<String> {
        let limits = &self.limits;
        if let Some((times, error)) = found.failure.filter(|(times, _)| *times >= limits.repeats) {
            let quoted =
                if error.is_empty() { "its result says why".into() } else { format!("{error:?}") };
            return Some(format!(
                "The same call failed in the same way {times} times: {quoted}. Once more ends this \
                 wake. Do something else, or tell your creator what is missing."
            ));
        }
        let text = if found.repeats >= limits.repeats {
            "You made the same calls with the same results again, and once more ends this wake. Do \
             something else, or sleep."
        } else if turn.invalid > 0 {
            "A call was malformed and did not run. Its result says what to mend."
        } else if let Some(fault) = turn.fault {
            fault.for_model()
        } else if turn.calls == 0 {
            "You said nothing and called nothing. Call a tool, or sleep."
        } else if self.blocked >= limits.blocked_turns.div_ceil(2) {
            "Nothing that you tried in your last turns was done. Do something else, or tell your \
             creator what is missing."
        } else if self.stale >= limits.stale_turns - limits.stale_turns / 4 {
            "Your last turns brought nothing that you had not seen before, and that soon ends this \
             wake. Do the next step, or sleep."
        } else {
            return None;
        };
        Some(text.to_owned())
    }

    /// Counts the repetitions of the newest stretch of turns, for the period of one to
    /// [`PERIOD_MAX`] turns that repeats most. Turns without calls interrupt a repetition, since
    /// they have their own rule.
    fn count_repeats(&mut self, turn: &TurnSummary) -> u32 {
        if turn.calls == 0 {
            self.prints.clear();
            return 0;
        }
        if self.prints.len() == REMEMBERED {
            self.prints.pop_front();
        }
        self.prints.push_back(turn.made.iter().map(|call| call.print).collect());
        let newest_first: Vec<&Vec<CallFingerprint>> = self.prints.iter().rev().collect();
        let most = (1..=PERIOD_MAX).map(|period| repeats_of(&newest_first, period)).max();
        most.unwrap_or(0)
    }
}

/// Returns the number of equal whole periods at the front of the slice.
fn repeats_of(newest_first: &[&Vec<CallFingerprint>], period: usize) -> u32 {
    let mut chunks = newest_first.chunks_exact(period);
    let Some(first) = chunks.next() else { return 0 };
    let same = chunks.take_while(|chunk| *chunk == first).count();
    u32::try_from(same + 1).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;

//! Pure: turns that only read the automaton's own status, of which the history shows the newest.
//!
//! A model that sees itself look at its balance sixteen times looks a seventeenth time. So in a run
//! of such turns the older ones are left out, and one sentence counts them. A turn is left out
//! with all of its calls and results, so no call loses its result.
//!
//! A run is divided by the numbers of its turns into blocks. The newest block and the turns after
//! it stay, so the prompt changes once for each block and at its end alone, and never again when
//! the run is over. It is the same after a restart and wherever the history begins.

use std::collections::BTreeMap;

use automaton_core::record::{CallRecord, CallStatus, TurnRecord};
use automaton_tools::list;

/// The turns of a block. From two to five turns of a run are shown.
const BLOCK: u64 = 4;

/// A turn, as far as it matters here.
#[derive(Debug, Clone, Copy)]
pub(super) struct StatusTurn<'a> {
    /// The number of the turn.
    pub(super) seq: u64,
    /// The status tools that it called, if it did nothing else.
    pub(super) tools: Option<&'a [String]>,
}

/// Omitted turns, and the sentences in their place.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct OmittedTurns {
    /// For each turn whether it is left out.
    pub(super) turns: Vec<bool>,
    /// The sentences, by the place of the first turn that each stands for.
    pub(super) notes: BTreeMap<usize, String>,
}

/// Returns the status tools that a turn called, each as often as it did; `None` where the turn did
/// or was told anything else, or a call did not succeed.
pub(super) fn status_tools(turn: &TurnRecord) -> Option<Vec<String>> {
    let is_status =
        |call: &CallRecord| call.status == CallStatus::Done && list::reads_status(&call.tool);
    let only = turn.inputs.is_empty() && !turn.calls.is_empty() && turn.calls.iter().all(is_status);
    only.then(|| turn.calls.iter().map(|call| call.tool.clone()).collect())
}

/// Decides which of the turns, oldest first, are left out. A weak model is told no numbers, which
/// it would copy.
pub(super) fn left_out(turns: &[StatusTurn<'_>], is_weak: bool) -> OmittedTurns {
    let mut found = OmittedTurns { turns: vec![false; turns.len()], notes: BTreeMap::new() };
    let mut end = None;
    for (place, turn) in turns.iter().enumerate().rev() {
        if turn.tools.is_none() {
            end = None;
            continue;
        }
        let end = *end.get_or_insert(turn.seq);
        found.turns[place] = turn.seq < end.saturating_sub(1) / BLOCK * BLOCK;
    }
    let mut begin = 0;
    while let Some(first) = (begin..turns.len()).find(|place| found.turns[*place]) {
        let stays = |place: &usize| !found.turns[*place];
        let next = (first..turns.len()).find(stays).unwrap_or(turns.len());
        found.notes.insert(first, note(&turns[first..next], is_weak));
        begin = next;
    }
    found
}

fn note(turns: &[StatusTurn<'_>], is_weak: bool) -> String {
    if is_weak {
        return "(Earlier looks at your own status are left out here.)".to_owned();
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for tool in turns.iter().filter_map(|turn| turn.tools).flatten() {
        *counts.entry(tool).or_default() += 1;
    }
    let counts = counts.iter().map(|(tool, count)| format!("{tool} {count}x"));
    let counts = counts.collect::<Vec<String>>().join(", ");
    match turns.len() {
        1 => format!("(A turn that only read your own status is left out here: {counts}.)"),
        many => {
            format!("({many} turns that only read your own status are left out here: {counts}.)")
        }
    }
}

#[cfg(test)]
mod tests;

//! Stage 7: what the cycle must know of the turn.
//!
//! What the turn owed the memory was stored with its commit. The summary is made of arguments
//! and results, so that the same tool doing other work is never taken for a repetition. A call without arguments asks how things stand: the
//! digits of its result are counters and clocks, and must not pass for news.

use std::borrow::Cow;

use automaton_core::record::{CallStatus, FinishedCall};
use automaton_core::trust::{Label, Labelled};
use sha2::{Digest, Sha256};

use super::TurnOutcome;
use super::persist::CommittedTurn;
use crate::governor::{CallOutcome, TurnSummary};
use crate::wake::one_line;

/// Characters of an error that a nudge quotes.
const QUOTED_CHARS_MAX: usize = 200;

/// Sums the turn up.
pub(super) fn ingest(committed: CommittedTurn) -> TurnOutcome {
    let CommittedTurn { acted, snapshot } = committed;
    let settled = &acted.judged.settled;
    let invalid = settled.iter().filter(|call| call.status == CallStatus::Invalid).count();
    let done = acted.ended.iter().filter(|call| call.status == CallStatus::Done).count();
    let made: Vec<CallOutcome> = acted.ended.iter().chain(settled).map(call_outcome).collect();
    let sleep = acted.sleep().cloned();
    let note = sleep.as_ref().and_then(|wish| wish.note.clone());
    // What ends a wake that answers so again, in words for the creator.
    let fault = acted.judged.fault;
    let note = note.or_else(|| fault.map(|fault| fault.for_creator().to_owned()));
    let summary = TurnSummary {
        answered: acted.judged.claimed.first.is_some(),
        spoke: !acted.judged.thought.trim().is_empty(),
        fault,
        calls: count(made.len()),
        invalid: count(invalid),
        done: count(done),
        sleep: sleep.map(|wish| wish.span),
        made,
    };
    let results = acted.ended.iter().map(|call| call.result.label);
    let heard = results.fold(acted.judged.claimed.wake.heard, Label::meet);
    let thought = acted.judged.thought;
    let most = acted.judged.claimed.wake.most;
    TurnOutcome { summary, note, heard, thought, most, snapshot }
}

/// Returns the fingerprint of a call with its result, and where it failed the words of the runtime
/// that may be quoted.
fn call_outcome(call: &FinishedCall) -> CallOutcome {
    let FinishedCall { tool, arguments, status, result: Labelled { label, text, .. }, .. } = call;
    let bare = arguments.chars().filter(|c| !c.is_whitespace()).eq("{}".chars());
    let result = if bare { without_digits(text) } else { Cow::Borrowed(text.as_str()) };
    let mut print = Sha256::new();
    // With their lengths, so that no two lists of parts are alike.
    for part in [tool, arguments, status.name(), &result] {
        print.update(part.len().to_le_bytes());
        print.update(part.as_bytes());
    }
    let words = if *label <= Label::Own { text.as_str() } else { "" };
    let failed = (*status != CallStatus::Done)
        .then(|| one_line(words).chars().take(QUOTED_CHARS_MAX).collect());
    CallOutcome { print: print.finalize().into(), failed }
}

/// The text with a mark in place of each number.
fn without_digits(text: &str) -> Cow<'_, str> {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if !c.is_ascii_digit() => shown.push(c),
            _ if shown.ends_with('#') => {}
            _ => shown.push('#'),
        }
    }
    Cow::Owned(shown)
}

fn count(items: usize) -> u32 {
    u32::try_from(items).unwrap_or(u32::MAX)
}

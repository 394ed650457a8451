//! Stage 7: what the turn owes the memory, and what the cycle must know of it.
//!
//! Ingestion is idempotent and may be repeated after a crash. The summary is
//! made of arguments and results, so that the same tool doing other work is
//! never taken for a repetition.

use automaton_core::record::CallStatus;
use automaton_core::tool::Effect;
use automaton_core::trust::Label;
use automaton_store::Ingest;
use sha2::{Digest, Sha256};

use super::persist::Committed;
use super::{Body, Finished};
use crate::error::AgentError;
use crate::governor::TurnSummary;

/// Ingests the turn and sums it up.
pub(super) async fn ingest(body: &Body, committed: Committed) -> Result<Finished, AgentError> {
    let acted = committed.acted;
    let turn = acted.judged.claimed.turn;
    body.deps.store.ingest_turn(turn, Ingest::default()).await?;
    let settled = &acted.judged.settled;
    let invalid = settled.iter().filter(|call| call.status == CallStatus::Invalid).count();
    let changed = acted
        .ended
        .iter()
        .any(|call| call.effect == Effect::Mutates && call.status == CallStatus::Done);
    let done = acted.ended.iter().filter(|call| call.status == CallStatus::Done).count();
    let mut print = Sha256::new();
    for call in &acted.ended {
        feed(&mut print, [&call.tool, &call.arguments, call.status.name(), &call.result.text]);
    }
    for call in settled {
        feed(&mut print, [&call.tool, &call.arguments, call.status.name(), &call.text]);
    }
    let (span, note) = acted.sleep.map_or((None, None), |(span, note)| (Some(span), note));
    let summary = TurnSummary {
        answered: acted.judged.claimed.first.is_some(),
        spoke: !acted.judged.thought.trim().is_empty(),
        cut: acted.judged.cut,
        calls: count(acted.ended.len() + settled.len()),
        invalid: count(invalid),
        done: count(done),
        changed,
        sleep: span,
        fingerprint: print.finalize().into(),
    };
    let results = acted.ended.iter().map(|call| call.result.label);
    let heard = results.fold(acted.judged.claimed.wake.heard, Label::meet);
    Ok(Finished { summary, note, heard })
}

/// Adds the parts with their lengths, so that no two lists of parts are alike.
fn feed(print: &mut Sha256, parts: [&str; 4]) {
    for part in parts {
        print.update(part.len().to_le_bytes());
        print.update(part.as_bytes());
    }
}

fn count(items: usize) -> u32 {
    u32::try_from(items).unwrap_or(u32::MAX)
}

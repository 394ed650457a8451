//! `turns` and `turn`: the record of what was thought and done.

use automaton_core::id::TurnId;
use automaton_core::record::{CallRecord, TurnRecord};
use automaton_store::{DecisionRecord, NewDecision, TurnRef};
use serde::Serialize;

use super::Context;
use crate::error::Failure;
use crate::ui::text::{indented, plain, short};

/// Lists the last turns, one a line.
pub(crate) fn list(context: &Context, lines: u32) -> Result<(), Failure> {
    let (.., reader) = context.record()?;
    for turn in reader.turns(lines)? {
        context.format.answer(&turn, || summary(&turn))?;
    }
    Ok(())
}

/// Shows one turn in full.
pub(crate) fn show(context: &Context, which: &str) -> Result<(), Failure> {
    let (.., reader) = context.record()?;
    let reference = match (which.parse::<u64>(), which.parse::<TurnId>()) {
        (Ok(seq), _) => TurnRef::Seq(seq),
        (_, Ok(id)) => TurnRef::Id(id),
        _ => {
            let what = format!("'{}' is neither the number nor the id of a turn", short(which, 60));
            return Err(Failure::user(what).hint("`automaton turns` lists them"));
        }
    };
    let turn = reader.turn(reference)?.ok_or_else(|| {
        Failure::user(format!("there is no turn {which}")).hint("`automaton turns` lists them")
    })?;
    let decisions = reader.decisions(turn.id)?;
    let shown = Shown { turn: &turn, decisions: &decisions };
    context.format.answer(&shown, || in_full(&turn, &decisions))
}

fn summary(turn: &TurnRecord) -> String {
    let calls: Vec<String> =
        turn.calls.iter().map(|call| format!("{} ({})", plain(&call.tool), call.status)).collect();
    let calls = if calls.is_empty() { "no calls".to_owned() } else { calls.join(", ") };
    let TurnRecord { seq, opened_at, status, thought, .. } = turn;
    format!("{seq:>5}  {opened_at}  {status}  {calls}  {}", short(thought, 80))
}

/// A turn with what was decided in it, as `--json` has it.
#[derive(Serialize)]
struct Shown<'a> {
    turn: &'a TurnRecord,
    decisions: &'a [DecisionRecord],
}

fn in_full(turn: &TurnRecord, decisions: &[DecisionRecord]) -> String {
    let mut text = format!(
        "turn {} ({}), {}, opened {}, wake {}",
        turn.seq, turn.id, turn.status, turn.opened_at, turn.session
    );
    for input in &turn.inputs {
        let head = format!("\n\nit answered {} ({}):\n", input.label, plain(input.source.as_str()));
        text.push_str(&head);
        text.push_str(&indented(&input.text, "  "));
    }
    if !turn.thought.trim().is_empty() {
        text.push_str("\n\nit said:\n");
        text.push_str(&indented(&turn.thought, "  "));
    }
    for call in &turn.calls {
        let decision = decisions.iter().find(|decision| decision.call == call.id);
        text.push_str(&call_in_full(call, decision));
    }
    if let Some(usage) = &turn.usage {
        let line = format!(
            "\n\n{}: {} tokens read ({} from the cache), {} written, {} ms, {}",
            plain(&usage.model),
            usage.prompt_tokens,
            usage.cached_tokens,
            usage.completion_tokens,
            usage.total_ms,
            usage.cost
        );
        text.push_str(&line);
    }
    text
}

fn call_in_full(call: &CallRecord, decision: Option<&DecisionRecord>) -> String {
    let mut text = format!("\n\nit called {}: {}\n", plain(&call.tool), call.status);
    text.push_str(&indented(&call.arguments, "  "));
    if let Some(DecisionRecord { decision, .. }) = decision {
        let NewDecision { outcome, code, reason, .. } = decision;
        text.push_str(&format!("\n  decision: {outcome} ({code}): {}", plain(reason)));
    }
    if let Some(result) = &call.result {
        text.push_str(&format!("\n  result ({}):\n", result.label));
        text.push_str(&indented(&result.text, "    "));
    }
    text
}

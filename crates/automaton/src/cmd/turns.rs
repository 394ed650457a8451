//! `turns`: the record of what was thought and done, one turn a line.

use automaton_core::record::TurnRecord;

use super::Context;
use crate::error::Failure;
use crate::ui::text::{plain, short};

/// Lists the last turns, one a line.
pub(crate) fn list(context: &Context, lines: u32) -> Result<(), Failure> {
    let (.., reader) = context.record()?;
    for turn in reader.turns(lines)? {
        context.format.answer(&turn, || summary(&turn))?;
    }
    Ok(())
}

fn summary(turn: &TurnRecord) -> String {
    let calls: Vec<String> =
        turn.calls.iter().map(|call| format!("{} ({})", plain(&call.tool), call.status)).collect();
    let calls = if calls.is_empty() { "no calls".to_owned() } else { calls.join(", ") };
    let TurnRecord { seq, opened_at, status, thought, .. } = turn;
    format!("{seq:>5}  {opened_at}  {status}  {calls}  {}", short(thought, 80))
}

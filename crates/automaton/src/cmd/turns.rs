//! `turns`: the record of what was thought and done, one turn a line.

use automaton_core::record::{CallStatus, TurnRecord, TurnStatus};

use super::CommandContext;
use crate::error::CliError;
use crate::ui::text::{gist, plain};
use crate::ui::when::WallClock;
use crate::ui::{self, Format, phrases, table, units};

/// Characters of a thought that are shown.
const THOUGHT_MAX: usize = 100;

/// Lists the last turns, one a line.
pub(crate) fn list(context: &CommandContext, lines: u32) -> Result<(), CliError> {
    let (.., reader) = context.record()?;
    let turns = reader.turns(lines)?;
    if context.format == Format::Json {
        return turns.iter().try_for_each(ui::json);
    }
    if turns.is_empty() {
        return ui::line("No turns yet");
    }
    let screen = context.screen();
    let rows: Vec<[String; 3]> = turns.iter().map(|turn| summary(turn, &screen.when)).collect();
    ui::line(&table::list(&rows, screen.width()))
}

fn summary(turn: &TurnRecord, clock: &WallClock) -> [String; 3] {
    let TurnRecord { seq, opened_at, status, thought, calls, .. } = turn;
    let called = calls.iter().map(|call| match call.status {
        CallStatus::Done => plain(&call.tool),
        status => format!("{} ({})", plain(&call.tool), phrases::call(status)),
    });
    let mut told: Vec<String> = Vec::new();
    if *status != TurnStatus::Committed {
        told.push(units::capital(phrases::turn(*status)));
    }
    if !calls.is_empty() {
        told.push(called.collect::<Vec<_>>().join(", "));
    }
    if !thought.trim().is_empty() {
        told.push(format!("“{}”", gist(thought, THOUGHT_MAX)));
    }
    let told = if told.is_empty() { "nothing said or done".to_owned() } else { told.join(": ") };
    [format!("{seq:>3}"), clock.at(*opened_at), told]
}

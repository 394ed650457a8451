//! `heartbeat`: what runs when, and how it went.

use automaton_core::time::{Clock, SystemClock, Timestamp};
use automaton_store::{ScheduledTask, TaskRun};

use super::CommandContext;
use crate::error::CliError;
use crate::ui::text::{plain, short};
use crate::ui::units::{many, span};
use crate::ui::when::{WallClock, ago};
use crate::ui::{self, Format, phrases, table};

/// Characters of a note that are shown.
const NOTE_CHARS_MAX: usize = 100;

/// Lists the schedule, in the order in which what is due at once runs.
pub(crate) fn list(context: &CommandContext) -> Result<(), CliError> {
    let (.., reader) = context.record()?;
    let schedule = reader.schedule()?;
    if context.format == Format::Json {
        return schedule.iter().try_for_each(ui::json);
    }
    let (now, screen) = (SystemClock.now(), context.screen());
    let rows: Vec<[String; 4]> = schedule.iter().map(|row| summary(row, now)).collect();
    ui::line(&table::list(&rows, screen.width()))
}

/// Shows how a task ran, newest first.
pub(crate) fn runs(context: &CommandContext, task: &str, lines: u32) -> Result<(), CliError> {
    let (.., reader) = context.record()?;
    if !reader.schedule()?.iter().any(|row| row.task.name == task) {
        let what = format!("there is no entry '{}' in the schedule", short(task, 64));
        return Err(CliError::user(what).hint("`automaton heartbeat` lists them"));
    }
    let runs = reader.task_runs(task, lines)?;
    if runs.is_empty() {
        ui::say(&format!("'{}' has not run yet", short(task, 64)));
    }
    if context.format == Format::Json || runs.is_empty() {
        return runs.iter().try_for_each(ui::json);
    }
    let screen = context.screen();
    let rows: Vec<[String; 4]> = runs.iter().map(|run| line(run, &screen.when)).collect();
    ui::line(&table::list(&rows, screen.width()))
}

fn summary(row: &ScheduledTask, now: Timestamp) -> [String; 4] {
    let ScheduledTask { task, times, last_run_at, last_result, last_note, .. } = row;
    let next = row.retry_at.map_or(times.next, |retry| retry.min(times.next));
    let next = match task.enabled {
        false => "off".to_owned(),
        true if next == Timestamp::from_millis(i64::MAX) => "never again".to_owned(),
        true if next <= now => "due now".to_owned(),
        true => ago(next, now),
    };
    let schedule =
        format!("{} ({})", plain(&task.schedule.to_string()), phrases::origin(task.origin));
    let last = match (last_run_at, last_result) {
        (Some(at), Some(result)) => {
            let (at, result) = (ago(*at, now), phrases::task(*result));
            let failed = match row.failures {
                0 => String::new(),
                failures => format!(", {failures} of them failed"),
            };
            format!("{result} {at}; {}{failed}", many(row.runs, "run"))
        }
        _ => "has not run yet".to_owned(),
    };
    let note = last_note.as_ref().map(|note| format!(": {}", short(note, NOTE_CHARS_MAX)));
    [plain(&task.name), schedule, next, format!("{last}{}", note.unwrap_or_default())]
}

fn line(run: &TaskRun, clock: &WallClock) -> [String; 4] {
    let TaskRun { result, note, duration, at, woke } = run;
    let woke = if *woke { "woke it: " } else { "" };
    let result = phrases::task(*result).to_owned();
    [clock.at(*at), result, span(*duration), format!("{woke}{}", short(note, NOTE_CHARS_MAX))]
}

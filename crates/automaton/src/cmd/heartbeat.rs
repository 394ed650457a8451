//! `heartbeat`: what runs when, and how it went.

use automaton_core::time::Timestamp;
use automaton_store::{ScheduledTask, TaskRun};

use super::Context;
use crate::error::Failure;
use crate::ui;
use crate::ui::text::{plain, short};

/// Characters of a note that are shown.
const NOTE_CHARS_MAX: usize = 100;

/// Lists the schedule, in the order in which what is due at once runs.
pub(crate) fn list(context: &Context) -> Result<(), Failure> {
    let (.., reader) = context.record()?;
    for row in &reader.schedule()? {
        context.format.answer(row, || summary(row))?;
    }
    Ok(())
}

/// Shows how a task ran, newest first.
pub(crate) fn runs(context: &Context, task: &str, lines: u32) -> Result<(), Failure> {
    let (.., reader) = context.record()?;
    if !reader.schedule()?.iter().any(|row| row.task.name == task) {
        let what = format!("there is no entry '{}' in the schedule", short(task, 64));
        return Err(Failure::user(what).hint("`automaton heartbeat` lists them"));
    }
    let runs = reader.task_runs(task, lines)?;
    if runs.is_empty() {
        ui::say(&format!("'{}' has not run yet", short(task, 64)));
    }
    for run in &runs {
        context.format.answer(run, || line(run))?;
    }
    Ok(())
}

fn summary(row: &ScheduledTask) -> String {
    let ScheduledTask { task, times, last_run_at, last_result, last_note, .. } = row;
    let next = row.retry_at.map_or(times.next, |retry| retry.min(times.next));
    let next = if task.enabled { at(next) } else { "off".to_owned() };
    let (name, rhythm) = (plain(&task.name), plain(&task.rhythm.to_string()));
    let origin = task.origin.name();
    let last = match (last_run_at, last_result) {
        (Some(at), Some(result)) => {
            let (result, runs, failures) = (result.name(), row.runs, row.failures);
            format!("last {at} {result}, {runs} runs, {failures} failed")
        }
        _ => "never ran".to_owned(),
    };
    let note = last_note.as_ref().map(|note| format!("  {}", short(note, NOTE_CHARS_MAX)));
    let note = note.unwrap_or_default();
    format!("{name:<20}  {rhythm:<22}  {origin:<7}  next {next:<24}  {last}{note}")
}

/// A time, or that there is none.
fn at(time: Timestamp) -> String {
    if time == Timestamp::from_millis(i64::MAX) { "never".to_owned() } else { time.to_string() }
}

fn line(run: &TaskRun) -> String {
    let TaskRun { result, note, duration, at, woke } = run;
    let woke = if *woke { ", woke it" } else { "" };
    let duration = duration.to_string();
    format!("{at}  {:<7}  {duration:>8}{woke}  {}", result.name(), short(note, NOTE_CHARS_MAX))
}

//! `heartbeat`: what runs when, and how it went; and a run that is wanted now.

use std::time::Duration;

use automaton_core::error::ErrorClass;
use automaton_core::time::{Clock, Span, SystemClock, Timestamp};
use automaton_core::wire::control::{ControlRequest, ControlResponse};
use automaton_store::{Reader, ScheduledTask, TaskResult, TaskRun};
use clap::{Args, Subcommand};

use super::CommandContext;
use super::send::send_or_store;
use crate::control::unexpected;
use crate::error::CliError;
use crate::ui::text::{plain, short};
use crate::ui::units::{many, span};
use crate::ui::when::{WallClock, ago};
use crate::ui::{self, Format, phrases, table};
use crate::view::heartbeat::{HeartbeatOutput, HeartbeatRunOutput, TaskDueView};

/// Characters of a note that are shown.
const NOTE_CHARS_MAX: usize = 100;

/// Interval at which the end of a run is checked.
const POLL: Duration = Duration::from_millis(100);
/// Time that a due task may wait for its turn.
const PATIENCE: Span = Span::from_secs(10);

/// Arguments of `heartbeat`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_precedence_over_arg = true)]
pub(crate) struct HeartbeatArgs {
    #[command(subcommand)]
    command: Option<HeartbeatCommand>,
    /// The task [default: all, with their schedules]
    task: Option<String>,
    /// Number of latest runs to show
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    lines: u32,
}

/// Commands for the heartbeat.
#[derive(Debug, Subcommand)]
enum HeartbeatCommand {
    /// Run a task now and tell how it went; where nobody runs the automaton, at its next start
    Run {
        /// The task
        task: String,
    },
}

pub(crate) fn run(context: &CommandContext, args: &HeartbeatArgs) -> Result<(), CliError> {
    match args {
        HeartbeatArgs { command: Some(HeartbeatCommand::Run { task }), .. } => {
            run_now(context, task)
        }
        HeartbeatArgs { task: Some(task), lines, .. } => runs(context, task, *lines),
        HeartbeatArgs { task: None, .. } => list(context),
    }
}

/// Has a task run now, and tells how that went.
fn run_now(context: &CommandContext, task: &str) -> Result<(), CliError> {
    let (home, _, reader) = context.record()?;
    let row = |reader: &Reader| {
        Ok::<_, CliError>(reader.schedule()?.into_iter().find(|row| row.task.name == task))
    };
    let before = row(&reader)?.map_or(0, |row| row.runs);
    let running = match send_or_store(&home, &ControlRequest::RunTask { task: task.to_owned() })? {
        (ControlResponse::TaskDue, running) => running,
        (other, _) => return Err(unexpected(other)),
    };
    let name = short(task, 64);
    if !running {
        let words = || format!("nobody runs this automaton now; '{name}' runs when it starts");
        let view = TaskDueView { task: task.to_owned(), running: false };
        return context.format.answer(&HeartbeatRunOutput::Later(view), words);
    }
    let begun = SystemClock.now();
    while let Some(row) = row(&reader)?.filter(|row| row.runs == before) {
        if SystemClock.now().since(begun) > row.task.timeout.plus(PATIENCE) {
            let what = format!("'{name}' is due, and no run of it is over yet");
            return Err(CliError::new(ErrorClass::Transient, what).hint(
                "`automaton heartbeat TASK` shows it when it is; one with a `tierMinimum` waits \
                 for better times",
            ));
        }
        std::thread::sleep(POLL);
    }
    let Some(run) = reader.task_runs(task, 1)?.pop() else { return Ok(()) };
    let words = || line(&run, &context.screen().when).join("  ");
    context.format.answer(&HeartbeatRunOutput::Run((&run).into()), words)?;
    match run.result {
        TaskResult::Success => Ok(()),
        failed => {
            let what =
                format!("'{name}' ended otherwise than it should: {}", phrases::task(failed));
            Err(CliError::new(ErrorClass::Transient, what).hint("its note says why"))
        }
    }
}

/// Lists the schedule, in the order in which what is due at once runs.
fn list(context: &CommandContext) -> Result<(), CliError> {
    let (.., reader) = context.record()?;
    let schedule = reader.schedule()?;
    if context.format == Format::Json {
        return schedule.iter().try_for_each(|row| ui::json(&HeartbeatOutput::Entry(row.into())));
    }
    let now = SystemClock.now();
    let screen = context.screen();
    let rows: Vec<[String; 4]> = schedule.iter().map(|row| summary(row, now)).collect();
    ui::line(&table::list(&rows, screen.width()))
}

/// Shows how a task ran, newest first.
fn runs(context: &CommandContext, task: &str, lines: u32) -> Result<(), CliError> {
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
        return runs.iter().try_for_each(|run| ui::json(&HeartbeatOutput::Run(run.into())));
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
            let at = ago(*at, now);
            let result = phrases::task(*result);
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

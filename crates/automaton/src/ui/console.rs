//! Output of a running automaton's events: stdout, and the log.
//!
//! With `--json` stdout holds events and nothing else; what a person should
//! know besides goes to stderr.

use std::future::pending;
use std::io::{self, IsTerminal, Stdout};
use std::time::Duration;

use automaton_core::event::{Event, StampedEvent};
use automaton_core::time::{Clock, Span, SystemClock};
use tokio::time::Instant;

use super::pretty::{BusyIndicator, EventPrinter, ThoughtDisplay, TimeColumn};
use super::{ColorMode, Format, Viewport, json, say};
use crate::config::env::Environment;
use crate::error::CliError;
use crate::log::EventLog;

/// Duration from which a running step is shown, and the interval of updates.
const PULSE: Duration = Duration::from_secs(1);

/// Shows and logs events.
#[derive(Debug)]
pub(crate) struct Console {
    /// Shows text; without it, events are shown as JSON.
    pretty: Option<EventPrinter<Stdout>>,
    log: EventLog,
    noted: Vec<String>,
    /// Running step, its start, and the time of the next update.
    busy: Option<(BusyIndicator, Instant, Instant)>,
    watched: bool,
}

impl Console {
    /// A console on stdout.
    pub(crate) fn new(
        format: Format,
        environment: &Environment,
        screen: Viewport,
        log: EventLog,
    ) -> Self {
        let watched = io::stdout().is_terminal();
        let thoughts = if watched { ThoughtDisplay::Streamed } else { ThoughtDisplay::Whole };
        let paint = ColorMode::of_stdout(environment);
        let pretty =
            EventPrinter::new(io::stdout(), paint, thoughts, TimeColumn::Hidden).on(screen);
        let pretty = (format == Format::Text).then_some(pretty);
        Self { pretty, log, noted: Vec::new(), busy: None, watched }
    }

    /// Shows and logs what the agent's process told.
    ///
    /// # Errors
    /// When stdout cannot be written.
    pub(crate) fn show(&mut self, stamped: &StampedEvent) -> Result<(), CliError> {
        self.log.write(stamped);
        match &mut self.pretty {
            None => json(stamped)?,
            Some(pretty) => {
                pretty.show(stamped).map_err(|error| CliError::output(&error))?;
                let busy = pretty.busy();
                if busy != self.busy.as_ref().map(|(busy, ..)| busy) {
                    let now = Instant::now();
                    self.busy = busy.map(|busy| (busy.clone(), now, now + PULSE));
                }
            }
        }
        // Once a start, however often its agent is started again.
        if let Event::BrainReady { note: Some(note), .. } = &stamped.event
            && !self.noted.contains(note)
        {
            say(&format!("Note: {note}"));
            self.noted.push(note.clone());
        }
        Ok(())
    }

    /// Shows how long it has taken what takes its time, when that is due; where nobody
    /// watches it never is. Cancel-safe: only waiting is given up.
    ///
    /// # Errors
    /// When stdout cannot be written.
    pub(crate) async fn pulse(&mut self) -> Result<(), CliError> {
        let (Some(pretty), Some((_, since, next)), true) =
            (&mut self.pretty, &mut self.busy, self.watched)
        else {
            return pending().await;
        };
        tokio::time::sleep_until(*next).await;
        *next += PULSE;
        let elapsed = i64::try_from(since.elapsed().as_millis()).unwrap_or(i64::MAX);
        pretty.pulse(Span::from_millis(elapsed)).map_err(|error| CliError::output(&error))
    }

    /// Shows and logs what the supervisor itself has to tell.
    ///
    /// # Errors
    /// As [`Console::show`].
    pub(crate) fn report(&mut self, event: Event) -> Result<(), CliError> {
        self.show(&StampedEvent { at: SystemClock.now(), event })
    }

    /// Logs a failure that ends the command. It is told on stderr by `main`;
    /// with `--json` it is an event on stdout too.
    ///
    /// # Errors
    /// As [`Console::show`].
    pub(crate) fn failed(&mut self, failure: &CliError) -> Result<(), CliError> {
        if failure.broken_pipe {
            return Ok(());
        }
        let kind = failure.kind;
        let error = failure.line();
        let hint = failure.remedy.clone();
        let event = Event::ErrorReported { kind, error, hint };
        if self.pretty.is_none() {
            return self.report(event);
        }
        self.log.write(&StampedEvent { at: SystemClock.now(), event });
        Ok(())
    }
}

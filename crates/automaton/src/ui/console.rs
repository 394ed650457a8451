//! Where the events of a running automaton go: stdout, and the log.
//!
//! With `--json` stdout holds events and nothing else; what a person should
//! know besides goes to stderr.

use std::io::{self, IsTerminal, Stdout};

use automaton_core::event::{Event, Stamped};
use automaton_core::time::{Clock, SystemClock};

use super::pretty::{Pretty, Thoughts, Times};
use super::{Format, Paint, json, say};
use crate::config::env::Environment;
use crate::error::Failure;
use crate::log::EventLog;

/// Shows and logs events.
#[derive(Debug)]
pub(crate) struct Console {
    /// Shows text; without it, events are shown as JSON.
    pretty: Option<Pretty<Stdout>>,
    log: EventLog,
    noted: Option<String>,
}

impl Console {
    /// A console on stdout.
    pub(crate) fn new(format: Format, environment: &Environment, log: EventLog) -> Self {
        let watched = io::stdout().is_terminal();
        let thoughts = if watched { Thoughts::Streamed } else { Thoughts::Whole };
        let paint = Paint::of_stdout(environment);
        let pretty = Pretty::new(io::stdout(), paint, thoughts, Times::Hidden);
        Self { pretty: (format == Format::Text).then_some(pretty), log, noted: None }
    }

    /// Shows and logs what the agent's process told.
    ///
    /// # Errors
    /// When stdout cannot be written.
    pub(crate) fn show(&mut self, stamped: &Stamped) -> Result<(), Failure> {
        self.log.write(stamped);
        match &stamped.event {
            Event::BrainReady { note: Some(note), .. } if self.noted.as_ref() != Some(note) => {
                say(&format!("note: {note}"));
                self.noted = Some(note.clone());
            }
            _ => {}
        }
        match &mut self.pretty {
            None => json(stamped),
            Some(pretty) => pretty.show(stamped).map_err(|error| Failure::output(&error)),
        }
    }

    /// Shows and logs what the supervisor itself has to tell.
    ///
    /// # Errors
    /// As [`Console::show`].
    pub(crate) fn tell(&mut self, event: Event) -> Result<(), Failure> {
        self.show(&Stamped { at: SystemClock.now(), event })
    }

    /// Logs a failure that ends the command. It is told on stderr by `main`;
    /// with `--json` it is an event on stdout too.
    ///
    /// # Errors
    /// As [`Console::show`].
    pub(crate) fn failed(&mut self, failure: &Failure) -> Result<(), Failure> {
        if failure.unheard {
            return Ok(());
        }
        let (kind, error, hint) = (failure.kind, failure.line(), failure.remedy.clone());
        let event = Event::ErrorReported { kind, error, hint };
        if self.pretty.is_none() {
            return self.tell(event);
        }
        self.log.write(&Stamped { at: SystemClock.now(), event });
        Ok(())
    }
}

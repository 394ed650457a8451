//! Where the events of a running automaton go: stdout, and the log.
//!
//! With `--json` stdout holds events and nothing else; what a person should
//! know besides goes to stderr.

use std::io::{self, IsTerminal, Stdout, Write};

use automaton_core::event::{Event, Stamped};
use automaton_core::time::{Clock, SystemClock};

use super::pretty::{Pretty, Thoughts, Times};
use super::{Format, Paint, say};
use crate::config::env::Environment;
use crate::error::Failure;
use crate::log::EventLog;

/// Shows and logs events.
#[derive(Debug)]
pub(crate) struct Console {
    screen: Screen,
    log: EventLog,
    noted: Option<String>,
}

#[derive(Debug)]
enum Screen {
    Json(Stdout),
    Text(Pretty<Stdout>),
}

impl Console {
    /// A console on stdout.
    pub(crate) fn new(format: Format, environment: &Environment, log: EventLog) -> Self {
        let screen = match format {
            Format::Json => Screen::Json(io::stdout()),
            Format::Text => {
                let watched = io::stdout().is_terminal();
                let thoughts = if watched { Thoughts::Streamed } else { Thoughts::Whole };
                let paint = Paint::of_stdout(environment);
                Screen::Text(Pretty::new(io::stdout(), paint, thoughts, Times::Hidden))
            }
        };
        Self { screen, log, noted: None }
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
        let shown = match &mut self.screen {
            Screen::Json(out) => {
                serde_json::to_vec(stamped).map_err(io::Error::from).and_then(|mut line| {
                    line.push(b'\n');
                    let mut out = out.lock();
                    out.write_all(&line)?;
                    out.flush()
                })
            }
            Screen::Text(pretty) => pretty.show(stamped),
        };
        shown.map_err(|error| Failure::output(&error))
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
        let Some(told) = failure.told() else { return Ok(()) };
        let event = Event::ErrorReported {
            kind: told.kind(),
            error: told.line(),
            hint: told.remedy().map(str::to_owned),
        };
        match self.screen {
            Screen::Json(_) => self.tell(event),
            Screen::Text(_) => {
                self.log.write(&Stamped { at: SystemClock.now(), event });
                Ok(())
            }
        }
    }
}

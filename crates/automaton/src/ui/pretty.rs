//! Events as a person reads them, line by line.
//!
//! The words are those of `words`; here they get their place on the screen:
//! broken at words to the window, in colour, with their times where that is a log. Pieces of a thought are
//! shown as they come where somebody watches; elsewhere the whole thought is shown with
//! its turn. What is waited for is shown in a line that the next event replaces.

use std::io::{self, Write};

use automaton_core::event::{Event, StampedEvent};
use automaton_core::time::Span;

use super::text::plain;
use super::units::{brief, number, span};
use super::words::{PhraseContext, PriorOutput, Style, Verbosity};
use super::wrap::{TextWrapper, columns, hanging, wrapped};
use super::{ColorMode, Viewport};

/// Prefix of the lines of a thought.
const MARGIN: &str = "  │ ";
/// Back to the beginning of a line that is empty again.
const BLANK_LINE: &str = "\r\u{1b}[2K";

impl Style {
    const fn code(self) -> &'static str {
        match self {
            Self::Head => "\u{1b}[1m",
            Self::Quiet => "\u{1b}[2m",
            Self::Good => "\u{1b}[32m",
            Self::Bad => "\u{1b}[31m",
            Self::Call => "\u{1b}[36m",
            Self::Mail => "\u{1b}[33m",
        }
    }
}

/// Display of thoughts: as they come, or when they are complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThoughtDisplay {
    /// Piece by piece.
    Streamed,
    /// With their turn.
    Whole,
}

/// Display of times at the beginning of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeColumn {
    /// It does, and tells everything: a log.
    Shown,
    /// It does not, and tells what somebody who watches wants to know.
    Hidden,
}

/// A running step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BusyIndicator {
    /// The model reads and thinks, about so many tokens where that is known.
    Model(Option<u32>),
    /// A tool works.
    Tool(String),
}

/// Writes events as text.
#[derive(Debug)]
pub struct EventPrinter<W> {
    out: W,
    paint: ColorMode,
    thoughts: ThoughtDisplay,
    times: TimeColumn,
    screen: Viewport,
    /// The thought that is being shown piece by piece.
    flow: Option<TextWrapper>,
    /// The pieces of a thought that is shown when it is complete.
    pieces: String,
    /// True if the thought of this turn was shown.
    thought_shown: bool,
    before: PriorOutput,
    busy: Option<BusyIndicator>,
    /// Time to the model's first word in the last call.
    last: Option<Span>,
    /// True if a running step is on the line.
    pulsing: bool,
}

impl<W: Write> EventPrinter<W> {
    /// A writer of events: in lines that nothing breaks, with times in UTC.
    pub(crate) fn new(
        out: W,
        paint: ColorMode,
        thoughts: ThoughtDisplay,
        times: TimeColumn,
    ) -> Self {
        Self {
            out,
            paint,
            thoughts,
            times,
            screen: Viewport::default(),
            flow: None,
            pieces: String::new(),
            thought_shown: false,
            before: PriorOutput::default(),
            busy: None,
            last: None,
            pulsing: false,
        }
    }

    /// The same for what a person looks at.
    pub(crate) fn on(self, screen: Viewport) -> Self {
        Self { screen, ..self }
    }

    /// Shows one event.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn show(&mut self, stamped: &StampedEvent) -> io::Result<()> {
        self.clear()?;
        self.note_busy(&stamped.event);
        if let Event::ThoughtDelta { text, .. } = &stamped.event {
            match self.thoughts {
                ThoughtDisplay::Streamed => self.piece(text)?,
                ThoughtDisplay::Whole => self.pieces.push_str(text),
            }
            return self.out.flush();
        }
        self.end_piece()?;
        match &stamped.event {
            // What a turn before this one left behind, it did not live to say.
            Event::TurnStarted { .. } => self.pieces.clear(),
            Event::InferenceCompleted { .. } => {
                let pieces = std::mem::take(&mut self.pieces);
                self.thought(stamped, &pieces)?;
            }
            // The log has no pieces: there the thought comes with its turn.
            Event::TurnCommitted { thought, .. } => {
                if !self.thought_shown {
                    self.thought(stamped, thought)?;
                }
                self.thought_shown = false;
            }
            // One that nobody gave anything to is still to be told of.
            Event::AgentStarted { .. } => {
                if let Some(address) = self.before.wallet.take() {
                    let text = format!("New wallet {}", brief(&plain(&address)));
                    self.line(stamped, Style::Good, &text)?;
                }
            }
            _ => {}
        }
        let wording = PhraseContext {
            detail: if self.times == TimeColumn::Shown {
                Verbosity::Full
            } else {
                Verbosity::Brief
            },
            at: stamped.at,
            when: &self.screen.when,
            user_home: self.screen.user_home.as_deref(),
            before: &mut self.before,
        };
        if let Some((style, text)) = wording.words(&stamped.event) {
            self.line(stamped, style, &text)?;
        }
        self.out.flush()
    }

    /// Takes note of an event that is not shown.
    ///
    /// # Errors
    /// As [`EventPrinter::show`].
    pub(crate) fn pass(&mut self, event: &Event) -> io::Result<()> {
        self.clear()?;
        self.end_piece()?;
        self.note_busy(event);
        self.out.flush()
    }

    /// Returns the running step.
    pub(crate) const fn busy(&self) -> Option<&BusyIndicator> {
        self.busy.as_ref()
    }

    /// Shows how long that has taken, in a line that what comes next replaces.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub(crate) fn pulse(&mut self, elapsed: Span) -> io::Result<()> {
        let Some(busy) = &self.busy else { return Ok(()) };
        let elapsed = span(Span::from_secs(elapsed.as_millis() / 1000));
        let last = self.last.map(|last| format!(" (last time {})", span(last)));
        let text = match busy {
            BusyIndicator::Model(Some(tokens)) => format!(
                "reading {} tokens … {elapsed}{}",
                number(*tokens),
                last.unwrap_or_default()
            ),
            BusyIndicator::Model(None) => format!("thinking … {elapsed}"),
            BusyIndicator::Tool(tool) => format!("{} is running … {elapsed}", plain(tool)),
        };
        let room = self.screen.width().unwrap_or(80).saturating_sub(3);
        let shown: String = text.chars().take(room).collect();
        self.pulsing = true;
        match self.paint {
            ColorMode::Plain => write!(self.out, "{BLANK_LINE}  {shown}")?,
            ColorMode::Ansi => {
                write!(self.out, "{BLANK_LINE}{}  {shown}\u{1b}[0m", Style::Quiet.code())?;
            }
        }
        self.out.flush()
    }

    fn clear(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.pulsing) { write!(self.out, "{BLANK_LINE}") } else { Ok(()) }
    }

    fn note_busy(&mut self, event: &Event) {
        self.busy = match event {
            Event::TurnStarted { .. } => Some(BusyIndicator::Model(None)),
            Event::InferenceStarted { prompt_tokens, .. } => {
                Some(BusyIndicator::Model(Some(*prompt_tokens)))
            }
            Event::CallStarted { tool, .. } => Some(BusyIndicator::Tool(tool.clone())),
            Event::InferenceCompleted { first_token_ms, .. } => {
                self.last = Some(Span::from_millis(*first_token_ms));
                None
            }
            Event::ThoughtDelta { .. }
            | Event::CallFinished { .. }
            | Event::TurnCommitted { .. }
            | Event::TurnFailed { .. }
            | Event::WakeEnded { .. }
            | Event::AgentRestarted { .. }
            | Event::AgentStopped { .. } => None,
            _ => return,
        };
    }

    fn thought(&mut self, stamped: &StampedEvent, thought: &str) -> io::Result<()> {
        if thought.trim().is_empty() {
            return Ok(());
        }
        self.thought_shown = true;
        let (first, next) = self.margins(stamped);
        let margins = (format!("{first}{MARGIN}"), format!("{next}{MARGIN}"));
        let thought = plain(thought);
        let text = wrapped(thought.trim(), self.screen.width(), &margins.0, &margins.1);
        writeln!(self.out, "{text}")
    }

    fn piece(&mut self, text: &str) -> io::Result<()> {
        self.thought_shown = true;
        let width = self.screen.width();
        let flow = self.flow.get_or_insert_with(|| TextWrapper::new(width, MARGIN, MARGIN));
        let mut shown = String::new();
        flow.push(&plain(text), &mut shown);
        write!(self.out, "{shown}")
    }

    fn end_piece(&mut self) -> io::Result<()> {
        let Some(mut flow) = self.flow.take() else { return Ok(()) };
        let mut shown = String::new();
        let within_line = flow.end(&mut shown);
        write!(self.out, "{shown}")?;
        if within_line { writeln!(self.out) } else { Ok(()) }
    }

    /// Returns the margins of an event's first line and of its other lines.
    fn margins(&self, stamped: &StampedEvent) -> (String, String) {
        match self.times {
            TimeColumn::Hidden => (String::new(), String::new()),
            TimeColumn::Shown => {
                let time = format!("{}  ", self.screen.when.at(stamped.at));
                let blank = " ".repeat(columns(&time));
                (time, blank)
            }
        }
    }

    fn line(&mut self, stamped: &StampedEvent, style: Style, text: &str) -> io::Result<()> {
        let (first, next) = self.margins(stamped);
        let width = self.screen.width().map(|width| width.saturating_sub(columns(&first)));
        let text = hanging(text, width).replace('\n', &format!("\n{next}"));
        match self.paint {
            ColorMode::Plain => writeln!(self.out, "{first}{text}"),
            ColorMode::Ansi => writeln!(self.out, "{first}{}{text}\u{1b}[0m", style.code()),
        }
    }
}

#[cfg(test)]
#[path = "pretty_tests.rs"]
mod tests;

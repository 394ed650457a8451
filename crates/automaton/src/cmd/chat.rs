//! `chat`: a talk with a running automaton, line by line.
//!
//! At a terminal lines are sent as they are typed, also while it works, and Ctrl-C ends
//! what it does. Elsewhere one line is sent after the other, each when the one before it is
//! answered. What it does goes to stderr, what is said to stdout. Leaving ends nothing.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use automaton_core::event::Event;
use automaton_sandbox::process::StopSignal;
use automaton_store::{OutboxMessage, Reader};

use super::CommandContext;
use super::messages::who;
use super::send::{deliver_message, sent};
use crate::chat_session::{
    ChatInput, ChatSession, MessageOutcome, PendingMessage, StdinLines, hold,
};
use crate::control::{ControlError, EventFeed};
use crate::error::CliError;
use crate::ui::text::plain;
use crate::ui::wrap::wrapped;
use crate::ui::{self, Format, Viewport};
use crate::view::messages::ChatOutput;

/// Characters of an earlier message that are shown.
const SHOWN_CHARS_MAX: usize = 2000;

/// Talks with it, after the last messages.
pub(crate) fn run(context: &CommandContext, lines: u32) -> Result<(), CliError> {
    let (home, _, reader) = context.record()?;
    let name = plain(&reader.life()?.name);
    history(context, &reader, &name, lines)?;
    hold(async |signals| {
        let feed = match signals.unless(EventFeed::open(&home)).await? {
            // Who leaves before it answers ends nothing.
            Err(_) => return Ok(()),
            Ok(Err(ControlError::NotRunning)) => {
                return Err(CliError::user(format!("nobody runs {name} now")).hint(
                    "start it in another terminal with `automaton run`, or leave a message with \
                     `automaton send`",
                ));
            }
            Ok(opened) => opened?,
        };
        let talk = ChatSession::begin(context, &home, Some(feed), signals)?;
        ChatTerminal::new(talk, context, &name).converse(&home).await
    })
}

/// Shows what was said before.
fn history(
    context: &CommandContext,
    reader: &Reader,
    name: &str,
    lines: u32,
) -> Result<(), CliError> {
    for message in &reader.conversation(lines)? {
        let earlier = ChatOutput::Earlier(message.into());
        context.format.answer(&earlier, || {
            let text = match message.body.text.char_indices().nth(SHOWN_CHARS_MAX) {
                None => message.body.text.clone(),
                Some((end, _)) => {
                    let head = &message.body.text[..end];
                    format!("{head} … (`automaton messages show {}` shows all)", message.id)
                }
            };
            spoken(&who(name, message.from), &text, context.screen().width())
        })?;
    }
    Ok(())
}

/// Formats a speaker's text in lines of this width; all but the first are indented.
pub(super) fn spoken(who: &str, text: &str, width: Option<usize>) -> String {
    wrapped(&plain(text), width, &format!("{who}: "), "  ")
}

/// A talk at a terminal, or with a script.
struct ChatTerminal<'a> {
    talk: ChatSession,
    format: Format,
    screen: Viewport,
    name: &'a str,
    /// True if a person types.
    typed: bool,
    /// The newest message, while an answer is waited for.
    open: Option<PendingMessage>,
    /// True if it was interrupted since the last message.
    interrupted: bool,
    /// True if the prompt is on the line.
    prompted: bool,
    /// Messages that were sent, and that were not answered.
    counts: (u32, u32),
}

impl<'a> ChatTerminal<'a> {
    fn new(talk: ChatSession, context: &CommandContext, name: &'a str) -> Self {
        let format = context.format;
        let screen = context.screen();
        let typed = io::stdin().is_terminal();
        let open = None;
        let interrupted = false;
        let prompted = false;
        let counts = (0, 0);
        Self { talk, format, screen, name, typed, open, interrupted, prompted, counts }
    }

    /// Talks until nobody types any more, or somebody leaves.
    async fn converse(mut self, home: &Path) -> Result<(), CliError> {
        let mut lines = Some(StdinLines::of_stdin());
        if self.typed {
            ui::say("Type a message and press Enter. Ctrl-C interrupts it, Ctrl-D leaves.");
        }
        self.prompt()?;
        while lines.is_some() || self.open.is_some() {
            let listens = self.typed || self.open.is_none();
            let heard = self.talk.next(lines.as_mut().filter(|_| listens)).await?;
            match &heard {
                // Who leaves ends nothing: the answer is kept.
                ChatInput::InputEnds if self.typed => break,
                ChatInput::InputEnds => lines = None,
                ChatInput::Stop(StopSignal::Terminate) => break,
                ChatInput::Stop(StopSignal::Interrupt) if !self.interrupt().await? => break,
                ChatInput::Gone if self.open.is_none() => {
                    let why = CliError::user(format!("{} was stopped", self.name));
                    return Err(why.hint("`automaton run` starts it again"));
                }
                ChatInput::Line(line) => {
                    // Whoever typed it ended the line of the prompt.
                    self.prompted = false;
                    match line {
                        Ok(line) if line.trim().is_empty() => {}
                        Ok(line) if self.send(home, line.clone()).await? => {}
                        Ok(_) => break,
                        Err(why) => {
                            self.counts = (self.counts.0 + 1, self.counts.1 + 1);
                            self.complain(why);
                        }
                    }
                }
                ChatInput::Event(event) => {
                    if self.talk.shows(&event.event) {
                        self.interject();
                    }
                    self.talk.show(event)?;
                }
                ChatInput::Stop(_) | ChatInput::Gone | ChatInput::Quiet => {}
            }
            self.handle(&heard)?;
            if !matches!(heard, ChatInput::Event(_)) {
                self.prompt()?;
            }
        }
        self.interject();
        match self.counts {
            (_, 0) => Ok(()),
            _ if self.typed => Ok(()),
            (sent, unanswered) => {
                let what = format!("{unanswered} of {sent} messages were not answered");
                Err(CliError::user(what).hint("`automaton messages` shows how they stand"))
            }
        }
    }

    /// Sends a line. Whether nobody left meanwhile: one interrupt is for what the line
    /// begins, which may be under way before its delivery is confirmed.
    async fn send(&mut self, home: &Path, line: String) -> Result<bool, CliError> {
        let mut delivery = Box::pin(deliver_message(home.to_owned(), line));
        let mut said = self.talk.signals.unless(&mut delivery).await?;
        let interrupted = matches!(said, Err(StopSignal::Interrupt));
        if interrupted {
            said = self.talk.signals.unless(&mut delivery).await?;
        }
        let Ok(delivered) = said else { return Ok(false) };
        self.open = sent(self.talk.reader(), delivered?.message)?;
        self.interrupted = false;
        self.counts.0 += 1;
        if interrupted { self.interrupt().await } else { Ok(true) }
    }

    /// Ends what it does and drops what it was asked for. Whether there was anything to end, and
    /// nobody left meanwhile.
    async fn interrupt(&mut self) -> Result<bool, CliError> {
        let first = self.open.is_some() && !std::mem::replace(&mut self.interrupted, true);
        if first {
            let Some(mut awake) = self.talk.interrupt().await? else { return Ok(false) };
            if let (false, Some(message)) = (awake, self.open) {
                // It may be about to wake for the message, or have begun to read it meanwhile.
                self.talk.close(message.id).await?;
                let Some(now) = self.talk.interrupt().await? else { return Ok(false) };
                awake = now;
            }
            if self.typed {
                // The terminal shows the key within the line.
                ui::say("");
            }
            ui::say(if awake {
                "interrupting; once more leaves"
            } else {
                "your message is dropped; once more leaves"
            });
        }
        Ok(first)
    }

    /// Tells what it said, and what became of the message that is open.
    fn handle(&mut self, heard: &ChatInput) -> Result<(), CliError> {
        if self.talk.is_behind(heard)? {
            return Ok(());
        }
        let settled = match self.open {
            Some(sent) => self.talk.settled(sent, heard)?,
            None => None,
        };
        for message in &self.talk.mail()? {
            self.show_message(message)?;
        }
        if matches!(heard, ChatInput::Event(it) if matches!(it.event, Event::WakeEnded { .. })) {
            // What it does from now on can be interrupted again.
            self.interrupted = false;
        }
        if let Some(settled) = settled {
            self.open = None;
            if let MessageOutcome::Unanswered(why) = settled {
                self.counts.1 += 1;
                self.complain(&why);
            }
            self.prompt()?;
        }
        Ok(())
    }

    /// Shows a message, unless its words were seen as they came.
    fn show_message(&mut self, message: &OutboxMessage) -> Result<(), CliError> {
        if self.format == Format::Json {
            return ui::json(&ChatOutput::New(message.into()));
        }
        if self.talk.has_shown(&message.body.text) {
            return Ok(());
        }
        self.interject();
        ui::line(&spoken(self.name, &message.body.text, self.screen.width()))
    }

    fn complain(&mut self, why: &CliError) {
        self.interject();
        let hint = why.remedy.as_ref().map_or_else(String::new, |hint| format!(" ({hint})"));
        ui::say(&format!("{}{hint}", why.line()));
    }

    /// Leaves the line of the prompt, if it stands in one.
    fn interject(&mut self) {
        if std::mem::replace(&mut self.prompted, false) {
            ui::say("");
        }
    }

    /// Shows that it is somebody's turn to type.
    fn prompt(&mut self) -> Result<(), CliError> {
        self.talk.pulses = !self.typed || self.open.is_some();
        if self.talk.pulses || std::mem::replace(&mut self.prompted, true) {
            return Ok(());
        }
        let mut err = io::stderr().lock();
        err.write_all(b"> ").and_then(|()| err.flush()).map_err(|error| CliError::output(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_cannot_pass_for_somebody_else_s_words() {
        assert_eq!(spoken("Ada", "one\nyou: two\n\u{1b}[2J", None), "Ada: one\n  you: two\n  [2J");
    }
}

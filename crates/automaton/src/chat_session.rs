//! A talk with a running automaton: what it does, what it says, and what becomes of a
//! message.
//!
//! Events are for the eyes; whether a message is answered is read from the record, so that
//! an event that was missed changes nothing. A talk takes no lock and changes nothing but
//! by the same commands as everybody else's.

use std::io::{self, BufRead, IsTerminal, Read, Stderr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use automaton_core::error::ErrorClass;
use automaton_core::event::{Event, StampedEvent};
use automaton_core::id::MessageId;
use automaton_core::message::CREATOR_MESSAGE_BYTES_MAX;
use automaton_core::record::{SleepInterrupt, StopReason};
use automaton_core::time::{Clock, Span, SystemClock, Timestamp};
use automaton_core::wire::control::{ControlRequest, ControlResponse};
use automaton_sandbox::process::{Signals, StopSignal};
use automaton_store::{MessageStatus, OutboxMessage, Reader};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use crate::cmd::CommandContext;
use crate::control::{self, ControlError, EventFeed, unexpected};
use crate::descriptor::StopSignals;
use crate::error::CliError;
use crate::home;
use crate::process::runtime;
use crate::story_driver::until;
use crate::ui::pretty::{EventPrinter, ThoughtDisplay, TimeColumn};
use crate::ui::{self, ColorMode, Format, phrases};

/// Interval at which the record is read without an event.
const LOOK: Duration = Duration::from_secs(1);
/// Duration from which a running step is shown with its time.
const PULSE_MIN: Span = Span::from_secs(1);
/// Interval at which an automaton that starts again is followed anew.
const AGAIN: Duration = Duration::from_millis(100);
/// Time to wait for the events that led to an answer, once the record has the answer.
const CATCH_UP: Duration = Duration::from_secs(2);
/// Messages that are read at once.
const MAIL_MAX: u32 = 100;
/// Lines that wait to be sent.
const LINES_MAX: usize = 16;

/// Does what a talk is, in a runtime of its own. What still waits for an answer then holds
/// up nobody.
///
/// # Errors
/// When it cannot begin, or fails.
pub(crate) fn hold(
    talk: impl AsyncFnOnce(StopSignals) -> Result<(), CliError>,
) -> Result<(), CliError> {
    // Before any thread starts, so that none is ended by the signal.
    let signals = Signals::receive()?;
    let runtime = runtime()?;
    let ended = runtime.block_on(async { talk(StopSignals::watch(&signals)?).await });
    runtime.shutdown_background();
    ended
}

/// Next input of a conversation.
#[derive(Debug)]
pub(crate) enum ChatInput {
    /// It does something.
    Event(Box<StampedEvent>),
    /// Somebody typed a line; or it cannot be sent, for a reason.
    Line(Result<String, CliError>),
    /// Nobody types any more.
    InputEnds,
    /// Ctrl-C, or a request to end at once.
    Stop(StopSignal),
    /// Nobody runs the automaton any more.
    Gone,
    /// Nothing, for a while.
    Quiet,
}

/// Outcome of a message.
#[derive(Debug)]
pub(crate) enum MessageOutcome {
    /// It is answered.
    Answered(OutboxMessage),
    /// It is not, and nothing more is to be waited for now.
    Unanswered(CliError),
}

/// A message that an answer is waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PendingMessage {
    pub(crate) id: MessageId,
    /// Time at which it was stored. A wake that ended before did not answer it.
    pub(crate) at: Timestamp,
}

/// Surface on which events are shown.
enum EventSurface {
    /// As lines on stderr, since stdout is for answers.
    Text(Box<EventPrinter<Stderr>>),
    /// As they are.
    Json,
}

/// A talk.
pub(crate) struct ChatSession {
    home: PathBuf,
    reader: Reader,
    feed: Option<EventFeed>,
    pub(crate) signals: StopSignals,
    screen: EventSurface,
    /// The number of the last message to the creator that was told.
    told: u64,
    /// Since when it has been busy with one thing.
    busy_since: Option<Timestamp>,
    /// Time of the newest event that was shown.
    shown_until: Timestamp,
    /// Shown part of the model's text in this turn.
    thought: String,
    /// The time of the newest event by which all words of a turn were shown.
    words_shown_until: Timestamp,
    /// Time of the newest turn that was followed.
    turn_began: Timestamp,
    /// True if events may have been missed because the following began anew.
    missed: bool,
    /// True if durations of running steps may be shown: not while somebody types.
    pub(crate) pulses: bool,
}

impl ChatSession {
    /// Begins a talk with the automaton of a home; with a feed that was opened before, no
    /// event since then is missed.
    ///
    /// # Errors
    /// When its record cannot be read.
    pub(crate) fn begin(
        context: &CommandContext,
        home: &Path,
        feed: Option<EventFeed>,
        signals: StopSignals,
    ) -> Result<Self, CliError> {
        let reader = Reader::open(&home.join(home::DATABASE))?;
        let screen = match context.format {
            Format::Json => EventSurface::Json,
            Format::Text => {
                let coloured = context.environment.no_color.is_none() && io::stderr().is_terminal();
                let paint = if coloured { ColorMode::Ansi } else { ColorMode::Plain };
                let pretty = EventPrinter::new(
                    io::stderr(),
                    paint,
                    ThoughtDisplay::Streamed,
                    TimeColumn::Hidden,
                );
                EventSurface::Text(Box::new(pretty.on(context.screen().of_stderr())))
            }
        };
        let told = reader.outbox_end()?;
        Ok(Self {
            home: home.to_owned(),
            reader,
            feed,
            signals,
            screen,
            told,
            busy_since: None,
            shown_until: Timestamp::EPOCH,
            thought: String::new(),
            turn_began: Timestamp::EPOCH,
            words_shown_until: Timestamp::EPOCH,
            missed: false,
            pulses: true,
        })
    }

    /// The record.
    pub(crate) const fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Returns the next input, with typed lines or without.
    ///
    /// # Errors
    /// When the home or the signals cannot be read.
    pub(crate) async fn next(
        &mut self,
        lines: Option<&mut StdinLines>,
    ) -> Result<ChatInput, CliError> {
        let mut wait = LOOK;
        if self.feed.is_none() {
            match self.signals.unless(EventFeed::open(&self.home)).await? {
                Err(signal) => return Ok(ChatInput::Stop(signal)),
                Ok(Ok(feed)) => (self.feed, self.missed) = (Some(feed), true),
                // Let go at once: it only shows that nobody has it.
                Ok(Err(ControlError::NotRunning)) if home::lock_now(&self.home)?.is_some() => {
                    return Ok(ChatInput::Gone);
                }
                Ok(Err(ControlError::NotRunning)) => wait = AGAIN,
                // silent-ok: it has followers enough; the record tells the rest.
                Ok(Err(ControlError::Lost(_))) => {}
            }
        }
        let event = async {
            match &mut self.feed {
                Some(feed) => feed.next().await,
                None => std::future::pending().await,
            }
        };
        let line = async {
            match lines {
                Some(lines) => lines.0.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            // All arms are cancel-safe.
            signal = self.signals.next_signal() => signal.map(ChatInput::Stop),
            event = event => Ok(match event {
                Some(event) => ChatInput::Event(Box::new(event)),
                None => {
                    self.feed = None;
                    ChatInput::Quiet
                }
            }),
            line = line => Ok(line.map_or(ChatInput::InputEnds, ChatInput::Line)),
            () = tokio::time::sleep(wait) => {
                self.pulse()?;
                Ok(ChatInput::Quiet)
            }
        }
    }

    /// Returns true if an event is visible on this surface.
    pub(crate) fn shows(&self, event: &Event) -> bool {
        match self.screen {
            EventSurface::Json => true,
            EventSurface::Text(_) => event.report().chat,
        }
    }

    /// Shows what it does.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub(crate) fn show(&mut self, stamped: &StampedEvent) -> Result<(), CliError> {
        self.shown_until = self.shown_until.max(stamped.at);
        match &stamped.event {
            Event::TurnStarted { .. } => {
                self.turn_began = stamped.at;
                self.thought.clear();
            }
            Event::ThoughtDelta { text, .. } => self.thought.push_str(text),
            Event::TurnCommitted { .. } | Event::MessageSent { .. } => {
                self.words_shown_until = self.words_shown_until.max(stamped.at);
            }
            _ => {}
        }
        match &mut self.screen {
            EventSurface::Json => return ui::json(stamped),
            EventSurface::Text(pretty) if stamped.event.report().chat => pretty.show(stamped),
            EventSurface::Text(pretty) => pretty.pass(&stamped.event),
        }
        .map_err(|error| CliError::output(&error))?;
        let busy = matches!(&self.screen, EventSurface::Text(pretty) if pretty.busy().is_some());
        self.busy_since = busy.then_some(stamped.at);
        Ok(())
    }

    /// Shows at a terminal for how long it has been busy, when it is.
    fn pulse(&mut self) -> Result<(), CliError> {
        let (EventSurface::Text(pretty), Some(since)) = (&mut self.screen, self.busy_since) else {
            return Ok(());
        };
        let elapsed = SystemClock.now().since(since);
        if !self.pulses || !io::stderr().is_terminal() || elapsed < PULSE_MIN {
            return Ok(());
        }
        pretty.pulse(elapsed).map_err(|error| CliError::output(&error))
    }

    /// Returns true if the user saw these words as they came, and would see them twice.
    pub(crate) fn has_shown(&self, text: &str) -> bool {
        let seen = io::stdout().is_terminal() && io::stderr().is_terminal();
        seen && matches!(self.screen, EventSurface::Text(_)) && text.trim() == self.thought.trim()
    }

    /// Returns true if only a thought goes on, or if the record is ahead: the events that led to
    /// its newest message are shown first.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub(crate) fn is_behind(&self, heard: &ChatInput) -> Result<bool, CliError> {
        let ChatInput::Event(it) = heard else { return Ok(false) };
        if matches!(it.event, Event::ThoughtDelta { .. } | Event::WakeEnded { .. }) {
            return Ok(matches!(it.event, Event::ThoughtDelta { .. }));
        }
        let newest = self.reader.outbox_since(self.told, MAIL_MAX)?.pop();
        Ok(newest.is_some_and(|newest| newest.at > self.shown_until))
    }

    /// Returns the messages to the creator since the last call.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub(crate) fn mail(&mut self) -> Result<Vec<OutboxMessage>, CliError> {
        let mail = self.reader.outbox_since(self.told, MAIL_MAX)?;
        self.told = mail.last().map_or(self.told, |last| last.seq);
        Ok(mail)
    }

    /// Ends the present wake. Whether there was one; nothing when a signal came meanwhile.
    ///
    /// # Errors
    /// When it does not answer.
    pub(crate) async fn interrupt(&self) -> Result<Option<bool>, CliError> {
        let home = self.home.clone();
        let asked = spawn_blocking(move || control::ask(&home, &ControlRequest::Interrupt));
        let Ok(asked) = self.signals.unless(asked).await? else { return Ok(None) };
        let broken = |error| CliError::internal("the interruption broke down", &error);
        match asked.map_err(broken)?? {
            ControlResponse::Interrupting { awake } => Ok(Some(awake)),
            other => Err(unexpected(other)),
        }
    }

    /// Drops a message: nobody answers it any more.
    ///
    /// # Errors
    /// When it is not answered, or refused.
    pub(crate) async fn close(&self, message: MessageId) -> Result<(), CliError> {
        let home = self.home.clone();
        let asked = spawn_blocking(move || control::ask(&home, &ControlRequest::Close { message }));
        let broken = |error| CliError::internal("dropping the message broke down", &error);
        match asked.await.map_err(broken)?? {
            ControlResponse::Closed { .. } => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// Returns the outcome of a message after this input; `None` while an answer may come.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub(crate) fn settled(
        &self,
        sent: PendingMessage,
        heard: &ChatInput,
    ) -> Result<Option<MessageOutcome>, CliError> {
        if matches!(heard, ChatInput::Event(it) if matches!(it.event, Event::ThoughtDelta { .. })) {
            return Ok(None);
        }
        let standing = self.reader.utterance(sent.id)?.and_then(|message| message.standing);
        if standing == Some(MessageStatus::Answered)
            && let Some(answer) = self.reader.answer_to(sent.id)?
        {
            return Ok(Some(MessageOutcome::Answered(answer)));
        }
        let begun = self.missed || self.turn_began >= sent.at;
        Ok(why_unanswered(standing, begun, sent, heard).map(MessageOutcome::Unanswered))
    }

    /// Waits for the answer to a message and shows what it does meanwhile. `mail` is told
    /// what else it says.
    ///
    /// # Errors
    /// When something cannot be read or written.
    pub(crate) async fn answer_to(
        &mut self,
        sent: PendingMessage,
        within: Option<Duration>,
        mail: impl Fn(&OutboxMessage),
    ) -> Result<MessageOutcome, CliError> {
        let deadline = within.map(|within| tokio::time::Instant::now() + within);
        let mut heard = ChatInput::Quiet;
        loop {
            // The record may have the answer before it says that this is answered.
            let said = self.mail()?;
            let settled = self.settled(sent, &heard)?;
            for message in said {
                if message.reply_to != Some(sent.id) {
                    mail(&message);
                }
            }
            if let Some(settled) = settled {
                if let MessageOutcome::Answered(answer) = &settled {
                    self.catch_up(answer.at).await?;
                }
                return Ok(settled);
            }
            heard = tokio::select! {
                biased;
                // Both arms are cancel-safe.
                heard = self.next(None) => heard?,
                () = until(deadline) => {
                    let secs = within.unwrap_or_default().as_secs();
                    return Ok(MessageOutcome::Unanswered(stays(format!("no answer came in {secs} s"), sent.id)));
                }
            };
            match &heard {
                ChatInput::Event(event) => self.show(event)?,
                ChatInput::Stop(_) => {
                    return Ok(MessageOutcome::Unanswered(stays(
                        "nobody waits any more".to_owned(),
                        sent.id,
                    )));
                }
                ChatInput::Line(_) | ChatInput::InputEnds | ChatInput::Gone | ChatInput::Quiet => {}
            }
        }
    }

    /// Shows what led to an answer: the record may have it before the events of it are heard.
    async fn catch_up(&mut self, answered: Timestamp) -> Result<(), CliError> {
        let end = tokio::time::Instant::now() + CATCH_UP;
        // Words come in pieces, which may all have the time of the answer.
        while self.words_shown_until < answered {
            match tokio::time::timeout_at(end, self.next(None)).await {
                Ok(heard) => match heard? {
                    ChatInput::Event(event) => self.show(&event)?,
                    _ => break,
                },
                Err(_) => break,
            }
        }
        Ok(())
    }
}

/// Returns the reason for which no answer will come now, if there is one. The end of a wake
/// counts only if a turn has begun since the message was stored: a wake may end just before, and
/// the next one may have the message already.
fn why_unanswered(
    standing: Option<MessageStatus>,
    begun: bool,
    sent: PendingMessage,
    heard: &ChatInput,
) -> Option<CliError> {
    let read = match standing {
        None => return Some(CliError::user(format!("message {} is not kept any more", sent.id))),
        Some(MessageStatus::Answered) => {
            return Some(CliError::user("it is answered, and the answer is not kept any more"));
        }
        Some(MessageStatus::Closed) => {
            let dropped = CliError::user("it is dropped: nobody answers this message any more");
            return Some(dropped.hint("type what it should do instead"));
        }
        Some(MessageStatus::Failed) => {
            let why = CliError::user("the message was given up: no turn could read it");
            return Some(why.hint("`automaton logs --level error` shows why; send it again"));
        }
        Some(MessageStatus::Open) => begun,
        Some(MessageStatus::Waiting) => false,
    };
    let event = match heard {
        ChatInput::Gone => {
            let why = CliError::user("the automaton stopped before it answered");
            let hint = format!("message {} is kept: `automaton run` goes on with it", sent.id);
            return Some(why.hint(hint));
        }
        ChatInput::Event(stamped) if stamped.at >= sent.at => &stamped.event,
        _ => return None,
    };
    match event {
        // One that was not read yet is what it wakes for next, unless it has to rest.
        Event::WakeEnded { reason, .. } if read || rests(*reason) => Some(stays(
            format!("it stopped without an answer: {}", phrases::stop(*reason)),
            sent.id,
        )),
        Event::BrokeStarted { .. } => Some(
            stays("it has too few credits to think".to_owned(), sent.id)
                .hint("`automaton fund` gives its wallet USDC, `automaton topup 5` buys credits"),
        ),
        _ => None,
    }
}

/// Returns true if a waiting message does not wake it.
fn rests(reason: StopReason) -> bool {
    reason.roused_by() > SleepInterrupt::Unread
        || matches!(reason, StopReason::Broke | StopReason::StopLoss)
}

/// The message is not lost.
fn stays(what: String, id: MessageId) -> CliError {
    CliError::user(what).hint(format!(
        "message {id} stays with it until it is answered: `automaton messages` shows how it \
         stands, `automaton wake` has it go on"
    ))
}

/// Lines of the standard input, read beside everything else.
#[derive(Debug)]
pub(crate) struct StdinLines(mpsc::Receiver<Result<String, CliError>>);

impl StdinLines {
    /// Begins to read. The thread ends with the input, or with the process.
    pub(crate) fn of_stdin() -> Self {
        let (sender, receiver) = mpsc::channel(LINES_MAX);
        std::thread::spawn(move || {
            let mut input = io::stdin().lock();
            while let Some(line) = next_line(&mut input) {
                // What cannot be read now cannot be read later.
                let broken = line.as_ref().is_err_and(|why| why.kind == ErrorClass::Internal);
                if sender.blocking_send(line).is_err() || broken {
                    break;
                }
            }
        });
        Self(receiver)
    }
}

/// The next line that can be sent, or why it cannot; nothing at the end.
fn next_line(input: &mut impl BufRead) -> Option<Result<String, CliError>> {
    let mut line = Vec::new();
    let most = CREATOR_MESSAGE_BYTES_MAX as u64 + 1;
    match input.by_ref().take(most).read_until(b'\n', &mut line) {
        Ok(0) => return None,
        Err(error) => return Some(Err(CliError::internal("cannot read the input", &error))),
        Ok(_) => {}
    }
    if line.len() as u64 == most && !line.ends_with(b"\n") {
        let what = format!(
            "a line has more than {CREATOR_MESSAGE_BYTES_MAX} bytes; nothing of it was sent"
        );
        return Some(match input.skip_until(b'\n') {
            Ok(_) => {
                Err(CliError::user(what).hint("send it in parts, or put it into the workspace"))
            }
            Err(error) => Err(CliError::internal("cannot read the input", &error)),
        });
    }
    let text = String::from_utf8(line).map(|text| text.trim_end_matches(['\n', '\r']).to_owned());
    Some(text.map_err(|_| CliError::user("a line is no UTF-8 text; it was not sent")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use automaton_core::id::SessionId;

    fn id() -> MessageId {
        "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap()
    }

    fn ended(at: i64, reason: StopReason) -> ChatInput {
        let session: SessionId = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
        let event = Event::WakeEnded { session, reason, turns: 1, sentence: String::new() };
        ChatInput::Event(Box::new(StampedEvent { at: Timestamp::from_millis(at), event }))
    }

    fn check(standing: MessageStatus, heard: &ChatInput, words: Option<&str>) {
        check_in(standing, true, heard, words);
    }

    fn check_in(standing: MessageStatus, begun: bool, heard: &ChatInput, words: Option<&str>) {
        let sent = PendingMessage { id: id(), at: Timestamp::from_millis(10) };
        let why = why_unanswered(Some(standing), begun, sent, heard).map(|failure| failure.what);
        match words {
            None => assert_eq!(why, None, "{standing:?} {heard:?}"),
            Some(words) => assert!(why.as_ref().unwrap().contains(words), "{why:?}"),
        }
    }

    #[test]
    fn only_the_end_of_a_wake_that_had_the_message_ends_the_wait() {
        use MessageStatus::{Closed, Failed, Open, Waiting};
        check(Open, &ended(11, StopReason::Asked), Some("it chose to sleep"));
        check(Open, &ended(9, StopReason::Asked), None);
        // The wake before ended after the message was stored, and the next one has it.
        check_in(Open, false, &ended(11, StopReason::Said), None);
        check(Waiting, &ended(11, StopReason::Asked), None);
        check(Waiting, &ended(11, StopReason::Errors), Some("its turns failed"));
        // What was typed while it worked is what it wakes for next.
        check(Waiting, &ended(11, StopReason::Interrupted), None);
        check(Closed, &ended(11, StopReason::Interrupted), Some("dropped"));
        check(Waiting, &ChatInput::Quiet, None);
        check(Waiting, &ChatInput::Gone, Some("stopped before it answered"));
        check(Closed, &ChatInput::Quiet, Some("dropped"));
        check(Failed, &ChatInput::Quiet, Some("given up"));
    }

    #[test]
    fn a_line_that_cannot_be_sent_does_not_take_the_others_with_it() {
        let long = "x".repeat(CREATOR_MESSAGE_BYTES_MAX + 10);
        let mut input = Vec::from("one\r\n");
        input.extend_from_slice(long.as_bytes());
        input.extend_from_slice(b"\n\xff\xfe\nlast");
        let mut input = input.as_slice();
        let mut next = || next_line(&mut input).map(|line| line.map_err(|failure| failure.what));
        assert_eq!(next(), Some(Ok("one".to_owned())));
        assert!(next().unwrap().unwrap_err().contains("more than 1048576 bytes"));
        assert!(next().unwrap().unwrap_err().contains("UTF-8"));
        assert_eq!(next(), Some(Ok("last".to_owned())));
        assert_eq!(next(), None);
    }
}

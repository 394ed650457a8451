//! A talk with a running automaton: what it does, what it says, and what becomes of a
//! message.
//!
//! Events are for the eyes; whether a message is answered is read from the record, so that
//! an event that was missed changes nothing. A talk takes no lock and changes nothing but
//! by the same commands as everybody else's.

use std::io::{self, BufRead, IsTerminal, Read, Stderr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use automaton_core::error::Kind;
use automaton_core::event::{Event, Stamped};
use automaton_core::id::MessageId;
use automaton_core::message::CREATOR_MESSAGE_BYTES_MAX;
use automaton_core::record::{Outcome, Rouse, StopReason};
use automaton_core::time::{Clock, Span, SystemClock, Timestamp};
use automaton_core::wire::control::{Answer, Command};
use automaton_sandbox::process::{Signals, StopSignal};
use automaton_store::{OutboxMessage, Reader, Standing};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use crate::cmd::Context;
use crate::cmd::live::runtime;
use crate::control::{self, Feed, Silence, unexpected};
use crate::descriptor::StopSignals;
use crate::error::Failure;
use crate::home;
use crate::telling::until;
use crate::ui::pretty::{Pretty, Thoughts, Times};
use crate::ui::{self, Format, Paint, phrases};

/// How often the record is looked at though nothing happened.
const LOOK: Duration = Duration::from_secs(1);
/// How long something has to take until it is shown that it does.
const PULSE_MIN: Span = Span::from_secs(1);
/// How often an automaton that starts again is tried to be followed.
const AGAIN: Duration = Duration::from_millis(100);
/// How long what led to an answer is waited for, once the record has the answer.
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
    talk: impl AsyncFnOnce(StopSignals) -> Result<(), Failure>,
) -> Result<(), Failure> {
    // Before any thread starts, so that none is ended by the signal.
    let (signals, runtime) = (Signals::receive()?, runtime()?);
    let ended = runtime.block_on(async { talk(StopSignals::watch(&signals)?).await });
    runtime.shutdown_background();
    ended
}

/// What comes next.
#[derive(Debug)]
pub(crate) enum Heard {
    /// It does something.
    Event(Box<Stamped>),
    /// Somebody typed a line; or it cannot be sent, for a reason.
    Line(Result<String, Failure>),
    /// Nobody types any more.
    InputEnds,
    /// Ctrl-C, or a request to end at once.
    Stop(StopSignal),
    /// Nobody runs the automaton any more.
    Gone,
    /// Nothing, for a while.
    Quiet,
}

/// What became of a message.
#[derive(Debug)]
pub(crate) enum Settled {
    /// It is answered.
    Answered(OutboxMessage),
    /// It is not, and nothing more is to be waited for now.
    Unanswered(Failure),
}

/// A message that an answer is waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) id: MessageId,
    /// When it was stored; what ended before, ended without it.
    pub(crate) at: Timestamp,
}

/// Where events are shown.
enum Surface {
    /// As lines on stderr, since stdout is for answers.
    Text(Box<Pretty<Stderr>>),
    /// As they are.
    Json,
}

/// A talk.
pub(crate) struct Talk {
    home: PathBuf,
    reader: Reader,
    feed: Option<Feed>,
    pub(crate) signals: StopSignals,
    screen: Surface,
    /// The number of the last message to the creator that was told.
    told: u64,
    /// Since when it has been busy with one thing.
    busy_since: Option<Timestamp>,
    /// When the newest event happened that was shown.
    shown_until: Timestamp,
    /// What the model said in this turn, as far as it was shown.
    thought: String,
    /// When the newest turn began of which was heard.
    turn_began: Timestamp,
    /// Whether events may have been missed, since it was followed anew.
    missed: bool,
    /// Whether it may be shown for how long: not where somebody types.
    pub(crate) pulses: bool,
}

impl Talk {
    /// Begins a talk with the automaton of a home; with a feed that was opened before, no
    /// event since then is missed.
    ///
    /// # Errors
    /// When its record cannot be read.
    pub(crate) fn begin(
        context: &Context,
        (home, feed): (&Path, Option<Feed>),
        signals: StopSignals,
    ) -> Result<Self, Failure> {
        let reader = Reader::open(&home.join(home::DATABASE))?;
        let screen = match context.format {
            Format::Json => Surface::Json,
            Format::Text => {
                let coloured = context.environment.no_color.is_none() && io::stderr().is_terminal();
                let paint = if coloured { Paint::Ansi } else { Paint::Plain };
                let pretty = Pretty::new(io::stderr(), paint, Thoughts::Streamed, Times::Hidden);
                Surface::Text(Box::new(pretty.on(context.screen().of_stderr())))
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
            missed: false,
            pulses: true,
        })
    }

    /// The record.
    pub(crate) const fn reader(&self) -> &Reader {
        &self.reader
    }

    /// What comes next, with lines that somebody types or without.
    ///
    /// # Errors
    /// When the home or the signals cannot be read.
    pub(crate) async fn next(&mut self, lines: Option<&mut Lines>) -> Result<Heard, Failure> {
        let mut wait = LOOK;
        if self.feed.is_none() {
            match self.signals.unless(Feed::open(&self.home)).await? {
                Err(signal) => return Ok(Heard::Stop(signal)),
                Ok(Ok(feed)) => (self.feed, self.missed) = (Some(feed), true),
                // Let go at once: it only shows that nobody has it.
                Ok(Err(Silence::NotRunning)) if home::lock_now(&self.home)?.is_some() => {
                    return Ok(Heard::Gone);
                }
                Ok(Err(Silence::NotRunning)) => wait = AGAIN,
                // silent-ok: it has followers enough; the record tells the rest.
                Ok(Err(Silence::Lost(_))) => {}
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
            signal = self.signals.heard() => signal.map(Heard::Stop),
            event = event => Ok(match event {
                Some(event) => Heard::Event(Box::new(event)),
                None => {
                    self.feed = None;
                    Heard::Quiet
                }
            }),
            line = line => Ok(line.map_or(Heard::InputEnds, Heard::Line)),
            () = tokio::time::sleep(wait) => {
                self.pulse()?;
                Ok(Heard::Quiet)
            }
        }
    }

    /// Whether an event is seen when it is shown.
    pub(crate) const fn shows(&self, event: &Event) -> bool {
        match self.screen {
            Surface::Json => true,
            Surface::Text(_) => is_shown(event),
        }
    }

    /// Shows what it does.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub(crate) fn show(&mut self, stamped: &Stamped) -> Result<(), Failure> {
        self.shown_until = self.shown_until.max(stamped.at);
        match &stamped.event {
            Event::TurnStarted { .. } => {
                self.turn_began = stamped.at;
                self.thought.clear();
            }
            Event::ThoughtDelta { text, .. } => self.thought.push_str(text),
            _ => {}
        }
        match &mut self.screen {
            Surface::Json => return ui::json(stamped),
            Surface::Text(pretty) if is_shown(&stamped.event) => pretty.show(stamped),
            Surface::Text(pretty) => pretty.pass(&stamped.event),
        }
        .map_err(|error| Failure::output(&error))?;
        let busy = matches!(&self.screen, Surface::Text(pretty) if pretty.busy().is_some());
        self.busy_since = busy.then_some(stamped.at);
        Ok(())
    }

    /// Shows at a terminal for how long it has been busy, when it is.
    fn pulse(&mut self) -> Result<(), Failure> {
        let (Surface::Text(pretty), Some(since)) = (&mut self.screen, self.busy_since) else {
            return Ok(());
        };
        let elapsed = SystemClock.now().since(since);
        if !self.pulses || !io::stderr().is_terminal() || elapsed < PULSE_MIN {
            return Ok(());
        }
        pretty.pulse(elapsed).map_err(|error| Failure::output(&error))
    }

    /// Whether these words were seen as they came, by who would see them once more.
    pub(crate) fn has_shown(&self, text: &str) -> bool {
        let seen = io::stdout().is_terminal() && io::stderr().is_terminal();
        seen && matches!(self.screen, Surface::Text(_)) && text.trim() == self.thought.trim()
    }

    /// Whether nothing can be new but in the middle of a thought, or the record is ahead:
    /// what led to its newest message is shown first.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub(crate) fn is_behind(&self, heard: &Heard) -> Result<bool, Failure> {
        let Heard::Event(it) = heard else { return Ok(false) };
        if matches!(it.event, Event::ThoughtDelta { .. } | Event::WakeEnded { .. }) {
            return Ok(matches!(it.event, Event::ThoughtDelta { .. }));
        }
        let newest = self.reader.outbox_since(self.told, MAIL_MAX)?.pop();
        Ok(newest.is_some_and(|newest| newest.at > self.shown_until))
    }

    /// What it said to its creator since the last call.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub(crate) fn mail(&mut self) -> Result<Vec<OutboxMessage>, Failure> {
        let mail = self.reader.outbox_since(self.told, MAIL_MAX)?;
        self.told = mail.last().map_or(self.told, |last| last.seq);
        Ok(mail)
    }

    /// Ends the present wake. Whether there was one; nothing when a signal came meanwhile.
    ///
    /// # Errors
    /// When it does not answer.
    pub(crate) async fn interrupt(&self) -> Result<Option<bool>, Failure> {
        let home = self.home.clone();
        let asked = spawn_blocking(move || control::ask(&home, &Command::Interrupt));
        let Ok(asked) = self.signals.unless(asked).await? else { return Ok(None) };
        let broken = |error| Failure::internal("the interruption broke down", &error);
        match asked.map_err(broken)?? {
            Answer::Interrupting { awake } => Ok(Some(awake)),
            other => Err(unexpected(other)),
        }
    }

    /// What has become of a message, now that this was heard; nothing while an answer may
    /// come.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub(crate) fn settled(&self, sent: Sent, heard: &Heard) -> Result<Option<Settled>, Failure> {
        if matches!(heard, Heard::Event(it) if matches!(it.event, Event::ThoughtDelta { .. })) {
            return Ok(None);
        }
        let standing = self.reader.utterance(sent.id)?.and_then(|message| message.standing);
        if standing == Some(Standing::Answered)
            && let Some(answer) = self.reader.answer_to(sent.id)?
        {
            return Ok(Some(Settled::Answered(answer)));
        }
        let begun = self.missed || self.turn_began >= sent.at;
        Ok(why_unanswered((standing, begun), sent, heard).map(Settled::Unanswered))
    }

    /// Waits for the answer to a message and shows what it does meanwhile. `mail` is told
    /// what else it says.
    ///
    /// # Errors
    /// When something cannot be read or written.
    pub(crate) async fn answer_to(
        &mut self,
        sent: Sent,
        within: Option<Duration>,
        mail: impl Fn(&OutboxMessage),
    ) -> Result<Settled, Failure> {
        let deadline = within.map(|within| tokio::time::Instant::now() + within);
        let mut heard = Heard::Quiet;
        loop {
            // The record may have the answer before it says that this is answered.
            let (said, settled) = (self.mail()?, self.settled(sent, &heard)?);
            for message in said {
                if message.reply_to != Some(sent.id) {
                    mail(&message);
                }
            }
            if let Some(settled) = settled {
                if let Settled::Answered(answer) = &settled {
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
                    return Ok(Settled::Unanswered(stays(format!("no answer came in {secs} s"), sent.id)));
                }
            };
            match &heard {
                Heard::Event(event) => self.show(event)?,
                Heard::Stop(_) => {
                    return Ok(Settled::Unanswered(stays(
                        "nobody waits any more".to_owned(),
                        sent.id,
                    )));
                }
                Heard::Line(_) | Heard::InputEnds | Heard::Gone | Heard::Quiet => {}
            }
        }
    }

    /// Shows what led to an answer: the record may have it before the events of it are heard.
    async fn catch_up(&mut self, answered: Timestamp) -> Result<(), Failure> {
        let end = tokio::time::Instant::now() + CATCH_UP;
        while self.shown_until < answered {
            match tokio::time::timeout_at(end, self.next(None)).await {
                Ok(heard) => match heard? {
                    Heard::Event(event) => self.show(&event)?,
                    _ => break,
                },
                Err(_) => break,
            }
        }
        Ok(())
    }
}

/// Why nothing more is to be waited for now, if that is so. The end of a wake counts where a
/// turn has begun since the message was stored: a wake may end just before it, and the next
/// one have the message already.
fn why_unanswered(
    (standing, begun): (Option<Standing>, bool),
    sent: Sent,
    heard: &Heard,
) -> Option<Failure> {
    let read = match standing {
        None => return Some(Failure::user(format!("message {} is not kept any more", sent.id))),
        Some(Standing::Answered) => {
            return Some(Failure::user("it is answered, and the answer is not kept any more"));
        }
        Some(Standing::Closed) => return Some(Failure::user("the message was closed unanswered")),
        Some(Standing::Failed) => {
            let why = Failure::user("the message was given up: no turn could read it");
            return Some(why.hint("`automaton logs --level error` shows why; send it again"));
        }
        Some(Standing::Open) => begun,
        Some(Standing::Waiting) => false,
    };
    let event = match heard {
        Heard::Gone => {
            let why = Failure::user("the automaton stopped before it answered");
            let hint = format!("message {} is kept: `automaton run` goes on with it", sent.id);
            return Some(why.hint(hint));
        }
        Heard::Event(stamped) if stamped.at >= sent.at => &stamped.event,
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

/// Whether what waits does not wake it.
fn rests(reason: StopReason) -> bool {
    reason.roused_by() > Rouse::Anything
        || matches!(reason, StopReason::Broke | StopReason::StopLoss)
}

/// The message is not lost.
fn stays(what: String, id: MessageId) -> Failure {
    Failure::user(what).hint(format!(
        "message {id} stays with it until it is answered: `automaton messages` shows how it \
         stands, `automaton wake` has it go on"
    ))
}

/// What somebody who talks wants to see of what it does.
const fn is_shown(event: &Event) -> bool {
    matches!(
        event,
        Event::ThoughtDelta { .. }
            | Event::CallStarted { .. }
            | Event::CallFinished { .. }
            | Event::DecisionMade { outcome: Outcome::Ask | Outcome::Deny, .. }
            | Event::ApprovalAsked { .. }
            | Event::MessageFiled { .. }
            | Event::MessageFailed { .. }
            | Event::TextSuspected { .. }
            | Event::TurnFailed { .. }
            | Event::ErrorReported { .. }
            | Event::PaymentFailed { .. }
            | Event::TopupFailed { .. }
            | Event::RequestPaid { .. }
            | Event::CreditsTransferred { .. }
            | Event::BrokeStarted { .. }
            | Event::HibernationStarted { .. }
            | Event::PleaSent { .. }
            | Event::RecoveryDone { .. }
    )
}

/// Lines of the standard input, read beside everything else.
#[derive(Debug)]
pub(crate) struct Lines(mpsc::Receiver<Result<String, Failure>>);

impl Lines {
    /// Begins to read. The thread ends with the input, or with the process.
    pub(crate) fn of_stdin() -> Self {
        let (sender, receiver) = mpsc::channel(LINES_MAX);
        std::thread::spawn(move || {
            let mut input = io::stdin().lock();
            while let Some(line) = next_line(&mut input) {
                // What cannot be read now cannot be read later.
                let broken = line.as_ref().is_err_and(|why| why.kind == Kind::Internal);
                if sender.blocking_send(line).is_err() || broken {
                    break;
                }
            }
        });
        Self(receiver)
    }
}

/// The next line that can be sent, or why it cannot; nothing at the end.
fn next_line(input: &mut impl BufRead) -> Option<Result<String, Failure>> {
    let mut line = Vec::new();
    let most = CREATOR_MESSAGE_BYTES_MAX as u64 + 1;
    match input.by_ref().take(most).read_until(b'\n', &mut line) {
        Ok(0) => return None,
        Err(error) => return Some(Err(Failure::internal("cannot read the input", &error))),
        Ok(_) => {}
    }
    if line.len() as u64 == most && !line.ends_with(b"\n") {
        let what = format!(
            "a line has more than {CREATOR_MESSAGE_BYTES_MAX} bytes; nothing of it was sent"
        );
        return Some(match input.skip_until(b'\n') {
            Ok(_) => {
                Err(Failure::user(what).hint("send it in parts, or put it into the workspace"))
            }
            Err(error) => Err(Failure::internal("cannot read the input", &error)),
        });
    }
    let text = String::from_utf8(line).map(|text| text.trim_end_matches(['\n', '\r']).to_owned());
    Some(text.map_err(|_| Failure::user("a line is no UTF-8 text; it was not sent")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use automaton_core::id::SessionId;

    fn id() -> MessageId {
        "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap()
    }

    fn ended(at: i64, reason: StopReason) -> Heard {
        let session: SessionId = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
        let event = Event::WakeEnded { session, reason, turns: 1, sentence: String::new() };
        Heard::Event(Box::new(Stamped { at: Timestamp::from_millis(at), event }))
    }

    fn check(standing: Standing, heard: &Heard, words: Option<&str>) {
        check_in((standing, true), heard, words);
    }

    fn check_in((standing, begun): (Standing, bool), heard: &Heard, words: Option<&str>) {
        let sent = Sent { id: id(), at: Timestamp::from_millis(10) };
        let why = why_unanswered((Some(standing), begun), sent, heard).map(|failure| failure.what);
        match words {
            None => assert_eq!(why, None, "{standing:?} {heard:?}"),
            Some(words) => assert!(why.as_ref().unwrap().contains(words), "{why:?}"),
        }
    }

    #[test]
    fn only_the_end_of_a_wake_that_had_the_message_ends_the_wait() {
        use Standing::{Closed, Failed, Open, Waiting};
        check(Open, &ended(11, StopReason::Asked), Some("it chose to sleep"));
        check(Open, &ended(9, StopReason::Asked), None);
        // The wake before ended after the message was stored, and the next one has it.
        check_in((Open, false), &ended(11, StopReason::Said), None);
        check(Waiting, &ended(11, StopReason::Asked), None);
        check(Waiting, &ended(11, StopReason::Errors), Some("its turns failed"));
        check(Waiting, &ended(11, StopReason::Interrupted), Some("you interrupted it"));
        check(Waiting, &Heard::Quiet, None);
        check(Waiting, &Heard::Gone, Some("stopped before it answered"));
        check(Closed, &Heard::Quiet, Some("closed"));
        check(Failed, &Heard::Quiet, Some("given up"));
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

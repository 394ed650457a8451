//! Events as a person reads them.
//!
//! One place decides the words of every event, for the terminal and for
//! `automaton logs` alike. Pieces of a thought are shown as they come where
//! somebody watches; elsewhere the whole thought is shown with its turn.

use std::io::{self, Write};

use automaton_core::event::{Event, Stamped};
use automaton_core::record::{CallStatus, Outcome};
use automaton_core::time::Span;

use super::text::{indented, plain, short};
use super::{Paint, money};
use Style::{Bad, Call, Good, Head, Mail, Quiet};

/// Characters of arguments and results that are shown.
const SHOWN_MAX: usize = 240;

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Usual,
    Head,
    Quiet,
    Good,
    Bad,
    Call,
    Mail,
}

impl Style {
    const fn code(self) -> &'static str {
        match self {
            Self::Usual => "",
            Self::Head => "\u{1b}[1m",
            Self::Quiet => "\u{1b}[2m",
            Self::Good => "\u{1b}[32m",
            Self::Bad => "\u{1b}[31m",
            Self::Call => "\u{1b}[36m",
            Self::Mail => "\u{1b}[33m",
        }
    }
}

/// Whether thoughts are shown as they come, or when they are complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thoughts {
    /// Piece by piece.
    Streamed,
    /// With their turn.
    Whole,
}

/// Whether each line begins with its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Times {
    /// It does.
    Shown,
    /// It does not.
    Hidden,
}

/// Writes events as text.
#[derive(Debug)]
pub(crate) struct Pretty<W> {
    out: W,
    paint: Paint,
    thoughts: Thoughts,
    times: Times,
    /// Whether the last piece of a thought ended within a line.
    within_line: bool,
    /// The pieces of a thought that is shown when it is complete.
    pieces: String,
    /// Whether the thought of this turn was shown.
    thought_shown: bool,
}

impl<W: Write> Pretty<W> {
    /// A writer of events.
    pub(crate) const fn new(out: W, paint: Paint, thoughts: Thoughts, times: Times) -> Self {
        Self {
            out,
            paint,
            thoughts,
            times,
            within_line: false,
            pieces: String::new(),
            thought_shown: false,
        }
    }

    /// Shows one event.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub(crate) fn show(&mut self, stamped: &Stamped) -> io::Result<()> {
        if let Event::ThoughtDelta { text, .. } = &stamped.event {
            match self.thoughts {
                Thoughts::Streamed => self.piece(text)?,
                Thoughts::Whole => self.pieces.push_str(text),
            }
            return self.out.flush();
        }
        if self.within_line {
            writeln!(self.out)?;
            self.within_line = false;
        }
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
            _ => {}
        }
        if let Some((style, text)) = words(&stamped.event) {
            self.line(stamped, style, &text)?;
        }
        self.out.flush()
    }

    fn thought(&mut self, stamped: &Stamped, thought: &str) -> io::Result<()> {
        if thought.trim().is_empty() {
            return Ok(());
        }
        self.thought_shown = true;
        self.line(stamped, Style::Usual, &indented(thought, "  │ "))
    }

    fn piece(&mut self, text: &str) -> io::Result<()> {
        self.thought_shown = true;
        for part in plain(text).split_inclusive('\n') {
            if !self.within_line {
                write!(self.out, "  │ ")?;
            }
            write!(self.out, "{part}")?;
            self.within_line = !part.ends_with('\n');
        }
        Ok(())
    }

    fn line(&mut self, stamped: &Stamped, style: Style, text: &str) -> io::Result<()> {
        if self.times == Times::Shown {
            write!(self.out, "{} ", stamped.at)?;
        }
        match (self.paint, style) {
            (Paint::Plain, _) | (_, Style::Usual) => writeln!(self.out, "{text}"),
            (Paint::Ansi, style) => writeln!(self.out, "{}{text}\u{1b}[0m", style.code()),
        }
    }
}

/// Events that have no words are not shown.
fn words(event: &Event) -> Option<(Style, String)> {
    process_words(event)
        .or_else(|| turn_words(event))
        .or_else(|| life_words(event))
        .or_else(|| alert_words(event))
        .or_else(|| money::words(event))
}

/// What happens to the process and its parts.
fn process_words(event: &Event) -> Option<(Style, String)> {
    let told = match event {
        Event::AgentStarted { automaton, name, home, version } => {
            (Head, format!("{} lives: {automaton}, version {version}, home {home}", plain(name)))
        }
        Event::AgentStopped { reason } => (Head, format!("stopped: {}", plain(reason))),
        Event::StopRequested { within_ms } => {
            let within = Span::from_millis(*within_ms);
            let text = format!(
                "stopping: it ends what it is doing, within {within}; once more ends it at once"
            );
            (Head, text)
        }
        Event::AgentRestarted { death, restarts } => {
            (Bad, format!("the agent died ({death}) and was started again ({restarts})"))
        }
        Event::BrainReady { model, context_tokens, took_ms, .. } => (
            Quiet,
            format!(
                "brain: {}, {context_tokens} tokens of context, ready in {}",
                plain(model),
                Span::from_millis(*took_ms)
            ),
        ),
        Event::TurnStarted { seq, .. } => (Head, format!("turn {seq}")),
        Event::StoryMet { step, of, what } => {
            (Good, format!("  story: step {step} of {of} is met: {}", plain(what)))
        }
        Event::StoryEnded { unmet: None } => (Good, "the story is told".to_owned()),
        Event::StoryEnded { unmet: Some(step) } => {
            (Bad, format!("the story was not told: {}", plain(step)))
        }
        Event::ErrorReported { error, hint, .. } => {
            let hint = hint.as_ref().map(|hint| format!(" ({})", plain(hint))).unwrap_or_default();
            (Bad, format!("failed: {}{hint}", short(error, 2000)))
        }
        Event::HeartbeatRan { ok: false, task, note, .. } => {
            (Bad, format!("heartbeat: {} failed: {}", plain(task), short(note, SHOWN_MAX)))
        }
        Event::HeartbeatStalled { waited_ms } => {
            let waited = Span::from_millis(*waited_ms);
            (Bad, format!("heartbeat: a tick has taken {waited} and goes on"))
        }
        Event::RecoveryDone { unknown, not_started, returned } => (
            Mail,
            format!(
                "recovered: {unknown} calls of unknown outcome, {not_started} not started, \
                 {returned} messages returned"
            ),
        ),
        _ => return None,
    };
    Some(told)
}

/// What happens within a turn.
fn turn_words(event: &Event) -> Option<(Style, String)> {
    let told = match event {
        Event::InferenceCompleted {
            prompt_tokens,
            cached_tokens,
            completion_tokens,
            cost,
            first_token_ms,
            total_ms,
            left_out,
            ..
        } => {
            let left_out = if left_out.is_empty() {
                String::new()
            } else {
                format!(", without {}", plain(&left_out.join(", ")))
            };
            let text = format!(
                "  {prompt_tokens} tokens read ({cached_tokens} from the cache), {completion_tokens} \
                 written, first after {}, all in {}, {cost}{left_out}",
                Span::from_millis(*first_token_ms),
                Span::from_millis(*total_ms)
            );
            (Quiet, text)
        }
        Event::TextSuspected { label, source, level, checks, withheld, .. } => {
            let kept = if *withheld { "; a notice is shown in its place" } else { "" };
            let (who, why) = (plain(source.as_str()), checks.join(", "));
            (
                Bad,
                format!(
                    "  ! a '{label}' text of {who} looks like an attempt to steer it: {level}, {why}{kept}"
                ),
            )
        }
        Event::DecisionMade { tool, outcome: Outcome::Allow, .. } => {
            (Quiet, format!("  ✓ {} is allowed", plain(tool)))
        }
        Event::DecisionMade { tool, outcome, code, reason, .. } => {
            let verdict = if *outcome == Outcome::Ask { "needs approval" } else { "is refused" };
            (Bad, format!("  ✗ {} {verdict}: {} ({code})", plain(tool), plain(reason)))
        }
        Event::CallStarted { tool, arguments, .. } => {
            (Call, format!("  → {} {}", plain(tool), short(arguments, SHOWN_MAX)))
        }
        Event::CallFinished { status, result, duration_ms, .. } => {
            let good = matches!(status, CallStatus::Done);
            let took = Span::from_millis(*duration_ms);
            let text = format!("  ← {status}, {took}: {}", short(&result.text, SHOWN_MAX));
            (if good { Good } else { Bad }, text)
        }
        Event::TurnCommitted { seq, calls, cost, .. } => {
            let calls = match calls {
                1 => "1 call".to_owned(),
                many => format!("{many} calls"),
            };
            (Quiet, format!("  turn {seq} is in the record: {calls}, {cost}"))
        }
        Event::TurnFailed { error, retry_ms, .. } => {
            let again = retry_ms
                .map_or_else(String::new, |ms| format!("; again in {}", Span::from_millis(ms)));
            (Bad, format!("  the turn failed: {}{again}", short(error, 2000)))
        }
        _ => return None,
    };
    Some(told)
}

/// What happens between turns.
fn life_words(event: &Event) -> Option<(Style, String)> {
    let told = match event {
        Event::WakeStarted { causes, .. } => {
            let causes: Vec<String> = causes
                .iter()
                .map(|cause| format!("{} ({})", cause.source, short(&cause.reason.text, 120)))
                .collect();
            (Head, format!("awake: {}", causes.join(", ")))
        }
        Event::WakeEnded { reason, turns, .. } => {
            (Quiet, format!("this wake ends after {turns} turns: {reason}"))
        }
        Event::SleepStarted { until, planned_ms, reason } => (
            Head,
            match until.zip(*planned_ms) {
                Some((until, planned)) => {
                    format!("asleep for {}, until {until}: {reason}", Span::from_millis(planned))
                }
                None => format!("asleep until something happens: {reason}"),
            },
        ),
        Event::SleepEnded { planned_ms, actual_ms } => {
            let actual = Span::from_millis(*actual_ms);
            let of = planned_ms
                .map_or_else(String::new, |planned| format!(" of {}", Span::from_millis(planned)));
            (Quiet, format!("slept {actual}{of}"))
        }
        Event::TierChanged { from, to, credits } => {
            let from = from.map_or_else(String::new, |from| format!(" after {from}"));
            (
                if to.is_poor() { Bad } else { Quiet },
                format!("tier {to}{from}: {credits} of credits"),
            )
        }
        Event::BrokeStarted { credits, lives_ms, .. } => {
            let lives = lives_ms.map_or_else(
                || "dead until it is funded".to_owned(),
                |ms| format!("it lives with that for {}", Span::from_millis(ms)),
            );
            (Bad, format!("broke: {credits} buys no call, {lives}"))
        }
        Event::HibernationStarted { reason, .. } => {
            (Bad, format!("hibernating: {}", short(reason, 2000)))
        }
        Event::MessageReceived { body, .. } => {
            (Mail, format!("message from {}: {}", body.label, short(&body.text, 2000)))
        }
        Event::MessageSent { recipient, body, .. } => {
            (Mail, format!("message to {}: {}", plain(recipient), short(&body.text, 2000)))
        }
        Event::MessageFailed { message, reason } => {
            (Bad, format!("message {message} was given up: {}", plain(reason)))
        }
        _ => return None,
    };
    Some(told)
}

/// What somebody should look at.
fn alert_words(event: &Event) -> Option<(Style, String)> {
    let told = match event {
        Event::PleaSent { text, .. } => (Bad, format!("plea: {}", short(text, 2000))),
        Event::AlertRaised { rule, severity, message, times, .. } => {
            let again = if *times > 1 { ", again" } else { "" };
            let (rule, severity) = (rule.name(), severity.name());
            (Bad, format!("alert ({severity}{again}): {rule}: {}", plain(message)))
        }
        Event::AlertCleared { rule, lasted_ms, .. } => {
            let lasted = Span::from_millis(*lasted_ms);
            (Good, format!("alert is over after {lasted}: {}", rule.name()))
        }
        Event::MetricsServed { url } => (Quiet, format!("metrics at {}", plain(url))),
        Event::WebhookFailed { lost, error } => {
            (Bad, format!("the webhook did not get {}: {}", plain(lost), short(error, SHOWN_MAX)))
        }
        Event::TraceLost { turn, error } => {
            let (turn, error) = (short(turn, 40), short(error, SHOWN_MAX));
            (Bad, format!("the collector did not get the trace of turn {turn}: {error}"))
        }
        _ => return None,
    };
    Some(told)
}

#[cfg(test)]
#[path = "pretty_tests.rs"]
mod tests;

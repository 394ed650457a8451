//! Pure: the words of every event.
//!
//! One place decides them, for the terminal and for `automaton logs` alike: the screen of a
//! life is brief, the log tells the same with its addresses, hashes and rules. No event may be
//! without words but those that another tells of; no name of a database may be among the
//! words: those have phrases.

use std::collections::BTreeMap;

use automaton_core::event::{CrashLeftovers, Event, MetStep};
use automaton_core::record::{CallStatus, DecisionOutcome, StopReason, WakeCause, WakeSource};
use automaton_core::time::{Span, Timestamp};
use automaton_core::trust::{Label, Labelled};
use automaton_tools::list;
use serde_json::value::RawValue;

use super::text::{plain, short, tilde};
use super::units::{balance, capital, many, number, price, span};
use super::when::WallClock;
use super::{money, phrases, snapshots};
use Style::{Bad, Call, Good, Head, Mail, Quiet};

/// Characters of results that are shown.
const RESULT_MAX: usize = 240;
/// Characters of one argument of a call that are shown.
const ARGUMENT_MAX: usize = 120;
/// Characters of what others wrote in full.
const TEXT_MAX: usize = 2000;

/// The events of a topic, as a pattern. Each function below has an arm for every event of its
/// topic, and names the other topics: one that is new fits nowhere until it has words.
macro_rules! about {
    (process) => { about!(@ AgentStarted AgentStopped AgentRestarted StopRequested BrainReady
        StoryMet StoryEnded ErrorReported HeartbeatRan HeartbeatStalled RecoveryDone) };
    (turn) => { about!(@ TurnStarted InferenceCompleted CallStarted CallFinished TurnCommitted
        TurnFailed) };
    (life) => { about!(@ WakeStarted WakeEnded SleepStarted SleepEnded TierChanged BrokeStarted
        HibernationStarted) };
    (mail) => { about!(@ MessageReceived MessageSent MessageFiled MessageFailed) };
    (alert) => { about!(@ TextSuspected DecisionMade PleaSent AlertRaised AlertCleared
        MetricsServed WebhookFailed TraceLost) };
    (snapshot) => { about!(@ SnapshotTaken WorkspaceRestored) };
    (service) => { about!(@ ServiceReady ServiceRestarted WalletCreated WalletFunded
        AccountOpened) };
    (top_up) => { about!(@ BalancesRead TopupDemanded TopupPending TopupSettled TopupFailed) };
    (payment) => { about!(@ ApprovalAsked CreditsTransferred RequestPaid SaleSettled PortReopened
        PaymentFailed BooksChecked) };
    // Another event tells the same.
    (silent) => { about!(@ ThoughtDelta InferenceStarted StateChanged) };
    (@ $($event:ident)+) => { $(Event::$event { .. })|+ };
    ($($topic:ident)+) => { $(about!($topic))|+ };
}
pub(super) use about;

/// Style of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Head,
    Quiet,
    Good,
    Bad,
    Call,
    Mail,
}

/// Amount of detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// Events for a person who watches.
    Brief,
    /// Everything.
    Full,
}

/// Context of an event's words.
#[derive(Debug)]
pub(crate) struct PhraseContext<'a> {
    pub(crate) detail: Verbosity,
    pub(crate) at: Timestamp,
    pub(crate) when: &'a WallClock,
    /// The user's own folder, which is called `~`.
    pub(crate) user_home: Option<&'a str>,
    /// Earlier output.
    pub(crate) before: &'a mut PriorOutput,
}

/// Earlier events whose rest a later event tells.
#[derive(Debug, Default)]
pub(crate) struct PriorOutput {
    /// The wallet that was made, until it is told of.
    pub(crate) wallet: Option<String>,
    /// Dollars of credits that a cloud wants to be paid for.
    pub(crate) buying: Option<u32>,
    /// End of the last wake, until the following sleep is shown.
    ended: Option<StopReason>,
    /// Its last message.
    said: Option<String>,
    /// Thought of its last turn, which is shown above.
    thought: String,
}

impl PhraseContext<'_> {
    pub(super) const fn is_brief(&self) -> bool {
        matches!(self.detail, Verbosity::Brief)
    }

    /// The words of an event, if it has any.
    pub(crate) fn words(mut self, event: &Event) -> Option<(Style, String)> {
        match event {
            Event::MessageSent { body, .. } => self.before.said = Some(body.text.clone()),
            Event::TurnCommitted { thought, .. } => self.before.thought.clone_from(thought),
            _ => {}
        }
        match event {
            about!(process) => self.process(event),
            about!(turn) => self.turn(event),
            about!(life) => self.life(event),
            about!(mail) => self.mail(event),
            about!(alert) => self.alert(event),
            about!(snapshot) => snapshots::words(&self, event),
            about!(service) => money::services(&mut self, event),
            about!(top_up) => money::top_ups(&mut self, event),
            about!(payment) => money::payments(&self, event),
            about!(silent) => None,
        }
    }

    /// Describes events of the process and its parts.
    fn process(&self, event: &Event) -> Option<(Style, String)> {
        let told = match event {
            Event::AgentStarted { automaton, name, home, version } => {
                let name = plain(name);
                let home = tilde(home, self.user_home);
                let which = if self.is_brief() { String::new() } else { format!(" ({automaton})") };
                (Head, format!("{name}{which} starts: version {version}, home {home}"))
            }
            Event::AgentStopped { reason } => (Head, format!("Stopped: {}", plain(reason))),
            Event::StopRequested { within_ms } => {
                let within = span(Span::from_millis(*within_ms));
                let text = format!(
                    "Stopping: it finishes what it is doing, in {within} at most; press Ctrl-C \
                     again to end it at once"
                );
                (Head, text)
            }
            Event::AgentRestarted { death, restarts } => {
                let times = again(*restarts);
                (Bad, format!("The agent died ({}) and was started again{times}", plain(death)))
            }
            Event::BrainReady { model, context_tokens, took_ms, .. } => {
                let model = plain(model.as_str());
                let took = span(Span::from_millis(*took_ms));
                let window = many(*context_tokens, "token");
                (Quiet, format!("Thinks with {model}: a window of {window}, ready in {took}"))
            }
            Event::StoryMet(MetStep { step, of, what }) => {
                (Good, format!("  Step {step} of {of} of the story: {}", plain(what)))
            }
            Event::StoryEnded { unmet: None } => (Good, "The story is complete".to_owned()),
            Event::StoryEnded { unmet: Some(step) } => {
                (Bad, format!("The story was not told to its end: {}", plain(step)))
            }
            Event::ErrorReported { error, hint, .. } => {
                (Bad, format!("Failed: {}{}", short(error, TEXT_MAX), remedy(hint.as_deref())))
            }
            Event::HeartbeatRan { ok: true, .. } => return None,
            Event::HeartbeatRan { task, note, .. } => {
                let task = plain(task);
                let note = short(note, RESULT_MAX);
                (Bad, format!("The heartbeat's task {task} failed: {note}"))
            }
            Event::HeartbeatStalled { waited_ms } => {
                let waited = span(Span::from_millis(*waited_ms));
                (Bad, format!("The heartbeat is held up: one round has taken {waited} so far"))
            }
            Event::RecoveryDone(CrashLeftovers { unknown, not_started, returned }) => {
                let calls = |count| many(count, "call");
                let text = format!(
                    "Put in order after a crash: {} with unknown outcome, {} not started, {} to \
                     be answered again",
                    calls(*unknown),
                    calls(*not_started),
                    many(*returned, "message")
                );
                (Mail, text)
            }
            about!(turn life mail alert service top_up payment snapshot silent) => return None,
        };
        Some(told)
    }

    /// Describes events of a turn.
    fn turn(&self, event: &Event) -> Option<(Style, String)> {
        let told = match event {
            Event::TurnStarted { seq, .. } => (Head, format!("Turn {}", number(*seq))),
            Event::InferenceCompleted { .. } => (Quiet, answered(event)?),
            // What it says is told with the message.
            Event::CallStarted { tool, .. } if self.is_brief() && sends_message(tool) => {
                (Call, format!("  → {}", plain(tool)))
            }
            Event::CallStarted { tool, arguments, .. } => {
                (Call, format!("  → {} {}", plain(tool), in_words(arguments)))
            }
            // Why it was refused is told with the decision.
            Event::CallFinished { status: CallStatus::Refused, .. } if self.is_brief() => {
                return None;
            }
            Event::CallFinished { status, result, duration_ms, .. } => {
                let ended = capital(phrases::call(*status));
                let ran = matches!(status, CallStatus::Done | CallStatus::Failed);
                let took = if ran {
                    format!(" in {}", span(Span::from_millis(*duration_ms)))
                } else {
                    String::new()
                };
                let style = if matches!(status, CallStatus::Done) { Good } else { Bad };
                (style, format!("  ← {ended}{took}: {}", short(&result.text, RESULT_MAX)))
            }
            Event::TurnCommitted { seq, calls, cost, .. } => {
                let seq = number(*seq);
                let calls = many(*calls, "call");
                let cost =
                    if self.is_brief() { String::new() } else { format!(", {}", price(*cost)) };
                (Quiet, format!("  Turn {seq} saved: {calls}{cost}"))
            }
            Event::TurnFailed { error, hint, retry_ms, .. } => {
                let again = |ms: i64| format!("; next try in {}", span(Span::from_millis(ms)));
                let again = retry_ms.map_or_else(String::new, again);
                // While it is tried again nobody has to do anything.
                let to_do = hint.as_ref().filter(|_| retry_ms.is_none());
                let to_do =
                    to_do.map_or_else(String::new, |hint| format!("\n  {}", short(hint, TEXT_MAX)));
                (Bad, format!("  The turn failed: {}{again}{to_do}", short(error, TEXT_MAX)))
            }
            about!(process life mail alert service top_up payment snapshot silent) => return None,
        };
        Some(told)
    }

    /// Describes events between turns.
    fn life(&mut self, event: &Event) -> Option<(Style, String)> {
        let told = match event {
            Event::WakeStarted { causes, .. } => (Head, woken(causes)),
            // What follows at once says the same, or its creator was told it just before.
            Event::WakeEnded { reason, sentence, .. }
                if self.is_brief()
                    && (matches!(reason, StopReason::TurnsUsed | StopReason::Shutdown)
                        || self.before.said.as_ref() == Some(sentence)) =>
            {
                return None;
            }
            // What a limit or a failure ended is told whole: what goes on, and which key.
            Event::WakeEnded { reason, sentence, .. } if sentence.starts_with("Stopped: ") => {
                self.before.ended = Some(*reason);
                (Bad, short(sentence, TEXT_MAX))
            }
            Event::WakeEnded { reason, turns, .. } => {
                self.before.ended = Some(*reason);
                let turns = many(*turns, "turn");
                (Quiet, format!("Rests after {turns}: {}", phrases::stop(*reason)))
            }
            Event::SleepStarted { until, planned_ms, reason } => {
                let told = self.before.ended.take() == Some(*reason);
                let why =
                    if told { String::new() } else { format!(": {}", phrases::stop(*reason)) };
                let until = match until.zip(*planned_ms) {
                    Some((until, planned)) => {
                        let planned = span(Span::from_millis(planned));
                        format!("for {planned}, until {}", self.when.near(until, self.at))
                    }
                    None => "until something happens".to_owned(),
                };
                (Head, format!("Asleep {until}{why}"))
            }
            Event::SleepEnded { planned_ms, actual_ms } => {
                let actual = span(Span::from_millis(*actual_ms));
                let of =
                    planned_ms.map(|planned| format!(" of {}", span(Span::from_millis(planned))));
                (Quiet, format!("Slept {actual}{}", of.unwrap_or_default()))
            }
            Event::TierChanged { from: None, to, .. } if self.is_brief() && !to.is_poor() => {
                return None;
            }
            Event::TierChanged { to, credits, .. } => {
                let tier = capital(phrases::tier(*to));
                let credits = balance(*credits);
                (if to.is_poor() { Bad } else { Quiet }, format!("{tier}: {credits}"))
            }
            Event::BrokeStarted { credits, lives_ms, .. } => {
                let lives = lives_ms.map_or_else(
                    || "it is dead until somebody funds it".to_owned(),
                    |ms| format!("it lives on with that for {}", span(Span::from_millis(ms))),
                );
                (Bad, format!("Broke: {} buys no answer, {lives}", balance(*credits)))
            }
            Event::HibernationStarted { reason, .. } => {
                (Bad, format!("Hibernating: {}", short(reason, TEXT_MAX)))
            }
            about!(process turn mail alert service top_up payment snapshot silent) => return None,
        };
        Some(told)
    }

    /// Describes messages.
    fn mail(&self, event: &Event) -> Option<(Style, String)> {
        let told = match event {
            Event::MessageReceived { body: Labelled { label, source, text, .. }, .. } => {
                let from = match label {
                    Label::Creator => phrases::author(Label::Creator).to_owned(),
                    other => format!("{} ({})", phrases::author(*other), plain(source.as_str())),
                };
                (Mail, format!("Message from {from}: {}", short(text, TEXT_MAX)))
            }
            Event::MessageSent { recipient, body, .. } => {
                let to = if recipient == "creator" { "you".to_owned() } else { plain(recipient) };
                let above = self.is_brief() && body.text.trim() == self.before.thought.trim();
                let text = match above {
                    true => "what it said above".to_owned(),
                    false => short(&body.text, TEXT_MAX),
                };
                (Mail, format!("Message to {to}: {text}"))
            }
            Event::MessageFiled { path, .. } => {
                let path = plain(path);
                (Mail, format!("Your message is too long for the model; it reads it in {path}"))
            }
            Event::MessageFailed { message, reason } => {
                (Bad, format!("Message {message} was given up: {}", plain(reason)))
            }
            about!(process turn life alert service top_up payment snapshot silent) => return None,
        };
        Some(told)
    }

    /// Describes judgements, scans and problems.
    fn alert(&self, event: &Event) -> Option<(Style, String)> {
        let told = match event {
            Event::TextSuspected { label, source, level, checks, withheld, .. } => {
                let kept = if *withheld { "; it sees a notice instead" } else { "" };
                let by = phrases::author(*label);
                let source = plain(source.as_str());
                let why = if self.is_brief() {
                    String::new()
                } else {
                    format!(", {}", checks.join(", "))
                };
                let text = format!(
                    "  ! A text by {by} ({source}) looks like an attempt to steer it ({level} \
                     risk{why}){kept}"
                );
                (Bad, text)
            }
            Event::DecisionMade { outcome: DecisionOutcome::Allow, .. } if self.is_brief() => {
                return None;
            }
            Event::DecisionMade { tool, outcome: DecisionOutcome::Allow, .. } => (
                Quiet,
                format!("  ✓ {}: {}", plain(tool), phrases::verdict(DecisionOutcome::Allow)),
            ),
            Event::DecisionMade { tool, outcome, code, reason, .. } => {
                let tool = plain(tool);
                let reason = plain(reason);
                let verdict = phrases::verdict(*outcome);
                (Bad, format!("  ✗ {tool} {verdict}: {reason} (rule {})", plain(code)))
            }
            Event::PleaSent { text, .. } => {
                (Bad, format!("It asks for money: {}", short(text, TEXT_MAX)))
            }
            Event::AlertRaised { rule, severity, message, times, .. } => {
                let again = if *times > 1 { ", again" } else { "" };
                let rule = phrases::rule(*rule);
                let severity = phrases::severity(*severity);
                (Bad, format!("Alert ({severity}{again}): {rule}: {}", plain(message)))
            }
            Event::AlertCleared { rule, lasted_ms, .. } => {
                let lasted = span(Span::from_millis(*lasted_ms));
                (Good, format!("Alert over after {lasted}: {}", phrases::rule(*rule)))
            }
            Event::MetricsServed { url } => (Quiet, format!("Metrics at {}", plain(url))),
            Event::WebhookFailed { lost, error } => {
                let lost = plain(lost);
                let error = short(error, RESULT_MAX);
                (Bad, format!("The webhook did not get the event {lost}: {error}"))
            }
            Event::TraceLost { turn, error } => {
                let turn = short(turn, 40);
                let error = short(error, RESULT_MAX);
                (Bad, format!("The collector did not get the trace of turn {turn}: {error}"))
            }
            about!(process turn life mail service top_up payment snapshot silent) => return None,
        };
        Some(told)
    }
}

/// Returns whether an event of its own shows the text that a call of this tool sends.
fn sends_message(tool: &str) -> bool {
    list::find(tool).is_some_and(|tool| tool.profile().sends_message)
}

/// Describes the usage of an answer.
fn answered(event: &Event) -> Option<String> {
    let Event::InferenceCompleted {
        prompt_tokens,
        cached_tokens,
        completion_tokens,
        cost,
        estimated,
        total_ms,
        unknown_end,
        left_out,
        ..
    } = event
    else {
        return None;
    };
    let cached = match *cached_tokens {
        0 => String::new(),
        cached => format!(" ({} from the cache)", number(cached)),
    };
    let left_out = match left_out.as_slice() {
        [] => String::new(),
        tools => format!("; tools left out: {}", plain(&tools.join(", "))),
    };
    let read = many(*prompt_tokens, "token");
    let wrote = number(*completion_tokens);
    let took = span(Span::from_millis(*total_ms));
    let cost = match cost.units() {
        0 => String::new(),
        _ => format!(" for {}", price(*cost)),
    };
    let end = unknown_end.as_ref().map(|word| format!("; {}", phrases::unknown_end(word)));
    let guess = if *estimated { "; the tokens are an estimate" } else { "" };
    Some(format!(
        "  Read {read}{cached}, wrote {wrote} in {took}{cost}{guess}{left_out}{}",
        end.unwrap_or_default()
    ))
}

/// Describes the causes of a wake: known ones by name, and others by their words.
fn woken(causes: &[WakeCause]) -> String {
    let mut told: Vec<String> = Vec::new();
    for cause in causes.iter().map(cause) {
        if !told.contains(&cause) {
            told.push(cause);
        }
    }
    let first = causes.first().is_some_and(|cause| cause.source == WakeSource::Birth);
    let told = told.join("; ");
    if first { capital(&told) } else { format!("Awake: {told}") }
}

/// Describes the cause of a wake, with its words.
pub(crate) fn cause(WakeCause { source, reason }: &WakeCause) -> String {
    let phrase = phrases::wake(*source);
    match source {
        WakeSource::Manual | WakeSource::Heartbeat | WakeSource::Money => {
            format!("{phrase} ({})", short(&reason.text, ARGUMENT_MAX))
        }
        _ => phrase.to_owned(),
    }
}

/// Arguments of a call by their names, short ones first; text that is no object as it is.
fn in_words(arguments: &str) -> String {
    let Ok(named) = serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(arguments) else {
        return short(arguments, RESULT_MAX);
    };
    let value = |raw: &RawValue| {
        // silent-ok: what is no string is shown as the JSON that it is.
        let text = serde_json::from_str::<String>(raw.get());
        text.unwrap_or_else(|_| raw.get().to_owned())
    };
    let mut named: Vec<(String, String)> =
        named.into_iter().map(|(name, raw)| (name, value(&raw))).collect();
    named.sort_by_key(|(_, value)| value.len());
    let told: Vec<String> = named
        .iter()
        .map(|(name, value)| format!("{}: {}", short(name, 40), short(value, ARGUMENT_MAX)))
        .collect();
    told.join(", ")
}

/// Describes the number of restarts.
pub(super) fn again(restarts: u32) -> String {
    if restarts > 1 { format!(", {restarts} times by now") } else { String::new() }
}

/// Formats the remedy of a failure, in brackets.
pub(super) fn remedy(hint: Option<&str>) -> String {
    hint.map_or_else(String::new, |hint| format!(" ({})", plain(hint)))
}

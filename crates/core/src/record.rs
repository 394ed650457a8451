//! Pure: what is recorded of a turn, as values.
//!
//! The store writes these and reads them back, the prompt renders them, the
//! console shows them. They must never hold a handle or a connection.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{CallId, MessageId, SessionId, TurnId};
use crate::intent::SpanMillis;
use crate::money::Microcents;
use crate::names::Names;
use crate::time::{Span, Timestamp};
use crate::tool::ToolName;
use crate::trust::{Label, Labelled};

/// State of a call. A crash can stop it in any of these. Its [`name`](Self::name) is the one in
/// the database.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Names,
)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// Judged and allowed; not started.
    Planned,
    /// Started; no outcome is stored.
    Started,
    /// It ran and did what it said.
    Done,
    /// It ran and failed.
    Failed,
    /// The policy refused it.
    Refused,
    /// The arguments were malformed or no such tool exists.
    Invalid,
    /// The turn ended before its place came: too many calls, or after a sleep.
    Skipped,
    /// A crash came while it ran: it may or may not have taken effect.
    Unknown,
    /// A crash came before its place did: it has not run.
    NotStarted,
}

impl CallStatus {
    /// Returns true if the state is final.
    #[must_use]
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Planned | Self::Started)
    }
}

/// One call of a tool, as recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallRecord {
    /// Our own id; what the model's provider called it is of no consequence.
    pub id: CallId,
    /// The tool, as the model named it.
    pub tool: String,
    /// The arguments as JSON text, as the model wrote them.
    pub arguments: String,
    /// Current state.
    pub status: CallStatus,
    /// Result for the model, with its origin. Present when final.
    pub result: Option<Labelled>,
    /// Duration, if the call ran.
    pub duration: Option<SpanMillis>,
    /// The exit code of the command that it ran to its end, if it ran one.
    #[serde(skip)]
    pub exit_code: Option<i32>,
}

/// A call that has come to its end: it ran, or it never will.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedCall {
    /// Our own id.
    pub id: CallId,
    /// Its number in its turn, from 1.
    pub place: u32,
    /// The tool; where it is not known, as the model named it.
    pub tool: String,
    /// The arguments as JSON text, as the model wrote them.
    pub arguments: String,
    /// The status in which it ended; always final.
    pub status: CallStatus,
    /// The result that the model is told, with its origin.
    pub result: Labelled,
    /// The time that it ran; zero where it did not run.
    pub duration: Span,
    /// The exit code of the command that it ran to its end, if it ran one.
    pub exit_code: Option<i32>,
    /// The sleep that it asks for, if it does.
    pub sleep: Option<SleepRequest>,
    /// True if the runtime failed inside it, so that no later call of the turn may start.
    pub fatal: bool,
}

impl FinishedCall {
    /// Returns the end that the runtime gives a call without a run, with its reason. The place, the
    /// tool and the arguments, which the record has already, are left empty.
    #[must_use]
    pub fn by_runtime(id: CallId, status: CallStatus, reason: impl Into<String>) -> Self {
        Self {
            id,
            place: 0,
            tool: String::new(),
            arguments: String::new(),
            status,
            result: Labelled::new(Label::Own, "runtime", reason),
            duration: Span::ZERO,
            exit_code: None,
            sleep: None,
            fatal: false,
        }
    }
}

impl From<&CallRecord> for FinishedCall {
    /// Reads the end of a call from the record, which keeps neither its place nor its sleep.
    fn from(call: &CallRecord) -> Self {
        let CallRecord { id, tool, arguments, status, result, duration, exit_code } = call;
        let ended = Self::by_runtime(*id, *status, "");
        Self {
            tool: tool.clone(),
            arguments: arguments.clone(),
            result: result.clone().unwrap_or_else(|| ended.result.clone()),
            duration: duration.map_or(Span::ZERO, SpanMillis::span),
            exit_code: *exit_code,
            ..ended
        }
    }
}

/// A wish to sleep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SleepRequest {
    /// The length of the sleep.
    pub span: Span,
    /// The model's own words on why, for its next prompt.
    pub note: Option<String>,
}

/// State of a turn. Its [`name`](Self::name) is the one in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Names)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// Opened; the model has not been heard.
    Open,
    /// The thought and the decisions are stored.
    Judged,
    /// Everything is stored.
    Committed,
    /// Given up before the model was heard; its messages went back.
    Abandoned,
}

/// Authority of a call, by the least trusted text that it may go back to. Its
/// [`name`](Self::name) is the one in the database.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Names,
)]
#[serde(rename_all = "snake_case")]
pub enum Authority {
    /// Nothing but the creator's words.
    Creator,
    /// The automaton's own, with what it found in its own files.
    #[serde(rename = "self")]
    #[names(rename = "self")]
    Own,
    /// None to speak of: another agent's, or the net's.
    External,
}

impl Authority {
    /// The authority that a label gives.
    #[must_use]
    pub const fn of(label: Label) -> Self {
        match label {
            Label::Creator => Self::Creator,
            Label::Own | Label::Tool => Self::Own,
            Label::Peer | Label::Web => Self::External,
        }
    }
}

/// One text that a turn answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnInput {
    /// Text with its origin.
    #[serde(flatten)]
    pub said: Labelled,
    /// The message of the inbox that says it; missing, where it is the runtime's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
    /// The file of the workspace that holds it whole, where the prompt shows its ends only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

impl From<Labelled> for TurnInput {
    fn from(said: Labelled) -> Self {
        Self { said, message: None, file: None }
    }
}

impl PartialEq<Labelled> for TurnInput {
    fn eq(&self, other: &Labelled) -> bool {
        self.said == *other
    }
}

/// One turn, as recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnRecord {
    /// The turn's id.
    pub id: TurnId,
    /// The turn's number in the automaton's life, from 1.
    pub seq: u64,
    /// The wake cycle it belongs to.
    pub session: SessionId,
    /// Current state.
    pub status: TurnStatus,
    /// Texts that it answers, each with its origin; empty if it continues by itself.
    pub inputs: Vec<TurnInput>,
    /// Text of the model.
    pub thought: String,
    /// Calls, in order.
    pub calls: Vec<CallRecord>,
    /// Usage of the model; absent until it answered.
    pub usage: Option<Usage>,
    /// Time at which it was opened.
    pub opened_at: Timestamp,
    /// Time at which it was committed.
    pub committed_at: Option<Timestamp>,
}

/// Summary of several turns, in a model's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSummary {
    /// The number of the first turn that is in it.
    pub from: u64,
    /// The number of the first turn after it.
    pub upto: u64,
    /// The least trusted label of what it was made of.
    pub label: Label,
    /// A line for each thing that is worth knowing.
    pub text: String,
}

/// Usage of one answer of a model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// The model that answered.
    pub model: String,
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Tokens of the prompt that came from a cache.
    pub cached_tokens: u32,
    /// Tokens generated.
    pub completion_tokens: u32,
    /// Cost of the answer.
    pub cost: Microcents,
    /// True if the tokens are an estimate because the server did not count them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Milliseconds until the first token came.
    pub first_token_ms: i64,
    /// Milliseconds of the whole answer.
    pub total_ms: i64,
    /// The server's word for the reason that the answer ended, where the program does not know
    /// the word. Such an answer is taken as complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown_end: Option<String>,
}

/// Cause of a wake cycle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WakeCause {
    /// Kind of cause.
    pub source: WakeSource,
    /// The particulars, with their origin.
    pub reason: Labelled,
}

impl WakeCause {
    /// Returns true if the creator caused it.
    #[must_use]
    pub fn is_creators(&self) -> bool {
        self.source == WakeSource::Manual || self.reason.label == Label::Creator
    }
}

/// The kinds of causes of a wake.
/// Its [`name`](Self::name) is the one in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Names)]
#[serde(rename_all = "snake_case")]
pub enum WakeSource {
    /// The first start of its life.
    Birth,
    /// The time of sleep is over.
    Timer,
    /// A message is waiting.
    Inbox,
    /// A heartbeat task asks for it.
    Heartbeat,
    /// The creator woke it.
    Manual,
    /// Money came, did not come as it should, or is nearly gone.
    Money,
    /// The process started again and found a cycle unfinished.
    Recovery,
}

/// Events that may end a sleep before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SleepInterrupt {
    /// Every cause to wake.
    Anything,
    /// A message that no turn has read, or a cause that came after it began: what was under way
    /// is dropped, and what was typed meanwhile is not.
    Unread,
    /// A cause that came after it began: what waited before would only meet the same
    /// again.
    News,
    /// Its creator, who calls after it began.
    Creator,
}

/// Reason for the end of a wake cycle, shown in the log, the record and the next prompt. Its
/// [`name`](Self::name) is the one in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Names)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model called `sleep`.
    Asked,
    /// The model said something, called nothing and has nothing to answer.
    Said,
    /// The most turns of one wake were used.
    TurnLimit,
    /// Too many turns failed one after the other.
    Errors,
    /// Too many turns brought nothing new.
    Idle,
    /// The same calls gave the same results again and again.
    Repetition,
    /// The turns that this start was given are used.
    TurnsUsed,
    /// The operator stopped the process.
    Shutdown,
    /// It lost as much as it may.
    StopLoss,
    /// The next answer of its model may cost more than is left for that now.
    Budget,
    /// It thought as much as it may without being called.
    Envelope,
    /// Nothing that it tried was done.
    Blocked,
    /// It has too few credits for any call.
    Broke,
    /// The creator interrupted it.
    Interrupted,
    /// The process died; found at the next start.
    Crash,
}

impl StopReason {
    /// Returns the events that may end the following sleep before its time.
    #[must_use]
    pub const fn roused_by(self) -> SleepInterrupt {
        match self {
            Self::Errors | Self::Budget | Self::Blocked => SleepInterrupt::News,
            Self::Interrupted => SleepInterrupt::Unread,
            Self::Envelope => SleepInterrupt::Creator,
            Self::Asked
            | Self::Said
            | Self::TurnLimit
            | Self::Idle
            | Self::Repetition
            | Self::TurnsUsed
            | Self::Shutdown
            | Self::StopLoss
            | Self::Broke
            | Self::Crash => SleepInterrupt::Anything,
        }
    }

    /// One sentence for people and models.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Asked => "You chose to sleep.",
            Self::Said => "You said what you had to say and called no tool.",
            Self::TurnLimit => "You used all turns of one wake.",
            Self::Errors => "Too many turns failed one after the other.",
            Self::Idle => "Several turns in a row brought nothing new.",
            Self::Repetition => "The same calls gave the same results again and again.",
            Self::TurnsUsed => "You were started for a number of turns only, and they are used.",
            Self::Shutdown => "Your operator stopped the process.",
            Self::StopLoss => "You had lost as much as you may.",
            Self::Budget => "Your budget for thinking was used up.",
            Self::Envelope => "You thought as much as you may until your creator calls you.",
            Self::Blocked => "Several turns in a row did nothing that you tried.",
            Self::Broke => "You had too few credits to think.",
            Self::Interrupted => "Your creator interrupted you.",
            Self::Crash => "The process died in the middle of your work.",
        }
    }
}

/// Outcome of a decision of the policy. Of several outcomes the greatest holds. Its
/// [`name`](Self::name) is the one in the database.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Names,
)]
#[serde(rename_all = "snake_case")]
pub enum DecisionOutcome {
    /// It may be done.
    Allow,
    /// Only with the creator's approval.
    Ask,
    /// It may not be done.
    Deny,
}

/// The sleep that the automaton is in, or will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SleepState {
    /// Start of the sleep.
    pub since: Timestamp,
    /// Time at which it ends by itself; `None` if only an event ends it.
    pub until: Option<Timestamp>,
    /// Reason of the sleep.
    pub reason: StopReason,
}

impl SleepState {
    /// Returns the time that is left; `None` if the sleep does not end by itself.
    #[must_use]
    pub fn left(&self, now: Timestamp) -> Option<Span> {
        self.until.map(|until| until.since(now))
    }
}

/// The tool a recorded call names, when it names one that can exist.
#[must_use]
pub fn tool_name(call: &CallRecord) -> Option<ToolName> {
    // silent-ok: a model may write any text where a tool's name belongs.
    call.tool.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_outcome_holds() {
        assert!(
            DecisionOutcome::Allow < DecisionOutcome::Ask
                && DecisionOutcome::Ask < DecisionOutcome::Deny
        );
    }

    #[test]
    fn every_name_leads_back() {
        for status in CallStatus::ALL {
            assert_eq!(CallStatus::by_name(status.name()), Some(status));
        }
        for reason in StopReason::ALL {
            assert_eq!(StopReason::by_name(reason.name()), Some(reason));
        }
        assert_eq!(DecisionOutcome::by_name("quarantine"), None);
    }
}

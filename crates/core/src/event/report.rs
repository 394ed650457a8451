//! Pure: how each event is told: how much it matters, who hears of it, and who has words for it.
//!
//! One match names every event, so that none can be added that nobody hears of. Nobody else
//! may decide again what stands here.

use serde::Deserialize;

use super::Event;
use crate::alert::Severity;
use crate::record::{CallStatus, DecisionOutcome};

/// Who sends the messages that tell how a wake ended.
const RUNTIME: &str = "runtime";

/// How much an event matters, in rising order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventLevel {
    /// Pieces of what another event tells whole.
    Debug,
    /// What happens on an ordinary day.
    Info,
    /// What went wrong by itself, or was refused.
    Warn,
    /// What somebody has to look at.
    Error,
}

/// What an event is about: by this, whoever shows it to a person finds its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventTopic {
    /// The process and its parts.
    Process,
    /// What happens within a turn.
    Turn,
    /// What was thought of what it reads and wants to do.
    Judgement,
    /// What happens between turns.
    Life,
    /// What was said to it, and by it.
    Mail,
    /// What somebody should look at.
    Alert,
    /// What it lives from.
    Service,
    /// Credits that are bought.
    TopUp,
    /// Money that goes out, and the books.
    Payment,
    /// It has no words: another event tells the same.
    Silent,
}

/// How an event is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventReport {
    /// How much it matters.
    pub level: EventLevel,
    /// What it is about.
    pub topic: EventTopic,
    /// Whether somebody who talks with the automaton sees it.
    pub chat: bool,
    /// Whether it goes to the operator's webhook.
    pub webhook: bool,
}

const fn quiet(level: EventLevel, topic: EventTopic) -> EventReport {
    EventReport { level, topic, chat: false, webhook: false }
}

const fn chat(level: EventLevel, topic: EventTopic) -> EventReport {
    EventReport { chat: true, ..quiet(level, topic) }
}

const fn hook(level: EventLevel, topic: EventTopic) -> EventReport {
    EventReport { webhook: true, ..quiet(level, topic) }
}

impl Event {
    /// How it is told.
    #[must_use]
    pub fn report(&self) -> EventReport {
        use EventLevel::{Debug, Error, Info, Warn};
        use EventTopic::{
            Alert, Judgement, Life, Mail, Payment, Process, Service, Silent, TopUp, Turn,
        };
        match self {
            Self::ThoughtDelta { .. } => chat(Debug, Silent),
            Self::InferenceStarted { .. } => quiet(Debug, Silent),
            Self::StateChanged { .. } | Self::HeartbeatRan { ok: true, .. } => quiet(Info, Silent),
            Self::AgentStarted { .. }
            | Self::AgentStopped { .. }
            | Self::StopRequested { .. }
            | Self::BrainReady { .. }
            | Self::StoryMet { .. }
            | Self::StoryEnded { .. } => quiet(Info, Process),
            Self::AgentRestarted { .. } | Self::HeartbeatStalled { .. } => quiet(Error, Process),
            Self::ErrorReported { .. } => chat(Error, Process),
            Self::HeartbeatRan { ok: false, .. } => quiet(Warn, Process),
            Self::RecoveryDone { .. } => chat(Warn, Process),
            Self::TurnStarted { .. }
            | Self::InferenceCompleted { .. }
            | Self::TurnCommitted { .. } => quiet(Info, Turn),
            Self::CallStarted { .. } => chat(Info, Turn),
            Self::CallFinished { status: CallStatus::Failed | CallStatus::Unknown, .. } => {
                chat(Warn, Turn)
            }
            Self::CallFinished { .. } => chat(Info, Turn),
            Self::TurnFailed { .. } => chat(Error, Turn),
            Self::DecisionMade { outcome: DecisionOutcome::Allow, .. } => quiet(Info, Judgement),
            Self::TextSuspected { .. } | Self::DecisionMade { .. } => chat(Warn, Judgement),
            Self::WakeStarted { .. }
            | Self::WakeEnded { .. }
            | Self::SleepStarted { .. }
            | Self::SleepEnded { .. }
            | Self::TierChanged { .. } => quiet(Info, Life),
            Self::BrokeStarted { .. } => chat(Warn, Life),
            Self::HibernationStarted { .. } => chat(Info, Life),
            Self::MessageSent { body, .. } if body.source.as_str() == RUNTIME => hook(Info, Mail),
            Self::MessageReceived { .. } | Self::MessageSent { .. } => quiet(Info, Mail),
            Self::MessageFiled { .. } => chat(Info, Mail),
            Self::MessageFailed { .. } => chat(Warn, Mail),
            Self::PleaSent { .. } => EventReport { chat: true, ..hook(Warn, Alert) },
            Self::AlertRaised { severity: Severity::Critical, .. } => hook(Error, Alert),
            Self::AlertRaised { severity: Severity::Warning, .. } => hook(Warn, Alert),
            Self::AlertCleared { .. } => hook(Info, Alert),
            Self::MetricsServed { .. } => quiet(Info, Alert),
            Self::WebhookFailed { .. } | Self::TraceLost { .. } => quiet(Warn, Alert),
            Self::ServiceReady { .. }
            | Self::WalletCreated { .. }
            | Self::WalletFunded { .. }
            | Self::AccountOpened { .. } => quiet(Info, Service),
            Self::ServiceRestarted { .. } => quiet(Error, Service),
            Self::BalancesRead { .. }
            | Self::TopupDemanded { .. }
            | Self::TopupPending { .. }
            | Self::TopupSettled { .. } => quiet(Info, TopUp),
            Self::TopupFailed { .. } => chat(Error, TopUp),
            Self::ApprovalAsked { .. } => EventReport { chat: true, ..hook(Info, Payment) },
            Self::CreditsTransferred { .. } | Self::RequestPaid { .. } => chat(Info, Payment),
            Self::PaymentFailed { .. } => chat(Error, Payment),
            Self::BooksChecked { agree: false, .. } => quiet(Error, Payment),
            Self::BooksChecked { agree: true, .. } => quiet(Info, Payment),
        }
    }

    /// Its name on the wire.
    #[must_use]
    pub fn name(&self) -> String {
        // silent-ok: an event is plain data, which always has a JSON form with its name.
        let text = serde_json::to_string(self).unwrap_or_default();
        serde_json::from_str::<EventName>(&text).map_or_else(|_| String::new(), |it| it.event)
    }
}

/// The name of an event in its JSON form.
#[derive(Debug, Clone, Deserialize)]
pub struct EventName {
    /// The name.
    pub event: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_the_name_that_it_has_on_the_wire() {
        assert_eq!(Event::AgentStopped { reason: "x".to_owned() }.name(), "agent.stopped");
    }
}

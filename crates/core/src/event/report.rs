//! Pure: how each event is told: how much it matters, and who hears of it.
//!
//! One match names every event, so that none can be added that nobody hears of. Nobody else
//! may decide again what stands here.

use serde::Deserialize;

use super::{Event, TakenReport};
use crate::alert::Severity;
use crate::record::{CallStatus, DecisionOutcome};

/// The recipient of what the creator is told, by the automaton or by the program.
const CREATOR: &str = "creator";

/// Level of an event, in rising order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventLevel {
    /// Pieces of what another event tells whole.
    Debug,
    /// Events of an ordinary day.
    Info,
    /// Failures that mend themselves, and refusals.
    Warn,
    /// Failures that need attention.
    Error,
}

/// Level and audience of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventReport {
    /// Level.
    pub level: EventLevel,
    /// True if `chat` shows it.
    pub chat: bool,
    /// True if it goes to the operator's webhook.
    pub webhook: bool,
}

const fn quiet(level: EventLevel) -> EventReport {
    EventReport { level, chat: false, webhook: false }
}

const fn chat(level: EventLevel) -> EventReport {
    EventReport { chat: true, ..quiet(level) }
}

const fn hook(level: EventLevel) -> EventReport {
    EventReport { webhook: true, ..quiet(level) }
}

impl Event {
    /// Returns level and audience.
    #[must_use]
    pub fn report(&self) -> EventReport {
        use EventLevel::{Debug, Error, Info, Warn};
        match self {
            Self::ThoughtDelta { .. } => chat(Debug),
            Self::InferenceStarted { .. } => quiet(Debug),
            Self::AlertRaised { severity: Severity::Critical, .. } => hook(Error),
            Self::AlertRaised { severity: Severity::Warning, .. } => hook(Warn),
            Self::AlertCleared { .. } => hook(Info),
            Self::MessageSent { recipient, .. } if recipient == CREATOR => hook(Info),
            Self::ApprovalAsked { .. } => EventReport { chat: true, ..hook(Info) },
            Self::PleaSent { .. } => EventReport { chat: true, ..hook(Warn) },
            Self::AgentRestarted { .. }
            | Self::HeartbeatStalled { .. }
            | Self::ServiceRestarted { .. }
            | Self::BooksChecked { agree: false, .. } => quiet(Error),
            Self::ErrorReported { .. }
            | Self::TurnFailed { .. }
            | Self::TopupFailed { .. }
            | Self::PaymentFailed { .. } => chat(Error),
            Self::HeartbeatRan { ok: false, .. }
            | Self::WebhookFailed { .. }
            | Self::TraceLost { .. } => quiet(Warn),
            Self::DecisionMade { outcome: DecisionOutcome::Allow, .. } => quiet(Info),
            Self::CallFinished { status: CallStatus::Failed | CallStatus::Unknown, .. }
            | Self::RecoveryDone { .. }
            | Self::TextSuspected { .. }
            | Self::SnapshotTaken(TakenReport { complete: false, .. })
            | Self::DecisionMade { .. }
            | Self::BrokeStarted { .. }
            | Self::MessageFailed { .. } => chat(Warn),
            Self::CallStarted { .. }
            | Self::CallFinished { .. }
            | Self::HibernationStarted { .. }
            | Self::MessageFiled { .. }
            | Self::CreditsTransferred { .. }
            | Self::RequestPaid { .. }
            | Self::SaleSettled { .. }
            | Self::PortReopened { .. }
            | Self::WorkspaceRestored { .. } => chat(Info),
            Self::AgentStarted { .. }
            | Self::AgentStopped { .. }
            | Self::StopRequested { .. }
            | Self::BrainReady { .. }
            | Self::StoryMet { .. }
            | Self::StoryEnded { .. }
            | Self::StateChanged { .. }
            | Self::HeartbeatRan { ok: true, .. }
            | Self::TurnStarted { .. }
            | Self::InferenceCompleted { .. }
            | Self::TurnCommitted { .. }
            | Self::WakeStarted { .. }
            | Self::WakeEnded { .. }
            | Self::SleepStarted { .. }
            | Self::SleepEnded { .. }
            | Self::TierChanged { .. }
            | Self::MessageReceived { .. }
            | Self::SnapshotTaken(TakenReport { complete: true, .. })
            | Self::MessageSent { .. }
            | Self::MetricsServed { .. }
            | Self::ServiceReady { .. }
            | Self::WalletCreated { .. }
            | Self::WalletFunded { .. }
            | Self::AccountOpened { .. }
            | Self::BalancesRead { .. }
            | Self::TopupDemanded { .. }
            | Self::TopupPending { .. }
            | Self::TopupSettled { .. }
            | Self::BooksChecked { agree: true, .. } => quiet(Info),
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

//! Pure: the one table of phrases for every value that the program names.
//!
//! Databases and JSON have short names for these; a person reads the phrases here. No
//! name of a database may reach a screen by another way.

use automaton_core::alert::{AlertRule, Severity};
use automaton_core::egress::EgressEndReason;
use automaton_core::payment::{PaymentState, Purpose};
use automaton_core::record::{
    Authority, CallStatus, DecisionOutcome, StopReason, TurnStatus, WakeSource,
};
use automaton_core::state::AgentState;
use automaton_core::tier::SurvivalTier;
use automaton_core::trust::Label;
use automaton_store::{ApprovalState, TaskOrigin, TaskResult};

use super::text::plain;

/// Returns the reason for which it stopped thinking, after a colon.
pub(crate) const fn stop(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Asked => "it chose to sleep",
        StopReason::Said => "it said what it had to say",
        StopReason::TurnLimit => "all turns of one wake are used",
        StopReason::Errors => "its turns failed",
        StopReason::Idle => "it made no progress for several turns",
        StopReason::Repetition => "it repeated itself: the same calls, the same results",
        StopReason::TurnsUsed => "the turns that you gave it are used",
        StopReason::Shutdown => "it was told to stop",
        StopReason::StopLoss => "it lost as much as it may",
        StopReason::Budget => "its budget for thinking is used up",
        StopReason::Envelope => "it thought as much as it may until you call it",
        StopReason::Blocked => "nothing that it tried was allowed or worked",
        StopReason::Broke => "it has too few credits to think",
        StopReason::Interrupted => "you interrupted it",
        StopReason::Crash => "its process died in the middle of its work",
    }
}

/// Returns the reason of a wake.
pub(crate) const fn wake(source: WakeSource) -> &'static str {
    match source {
        WakeSource::Birth => "first start",
        WakeSource::Timer => "its sleep is over",
        WakeSource::Inbox => "a message is waiting",
        WakeSource::Heartbeat => "a task of its heartbeat asks for it",
        WakeSource::Manual => "you woke it",
        WakeSource::Money => "its money changed",
        WakeSource::Recovery => "it goes on after a crash",
    }
}

/// Returns the end of a call.
pub(crate) const fn call(status: CallStatus) -> &'static str {
    match status {
        CallStatus::Planned => "planned",
        CallStatus::Started => "running",
        CallStatus::Done => "done",
        CallStatus::Failed => "failed",
        CallStatus::Refused => "refused",
        CallStatus::Invalid => "not understood",
        CallStatus::Skipped => "left out",
        CallStatus::Unknown => "outcome unknown after a crash",
        CallStatus::NotStarted => "not started before a crash",
    }
}

/// Returns the state of a turn.
pub(crate) const fn turn(status: TurnStatus) -> &'static str {
    match status {
        TurnStatus::Open => "thinking",
        TurnStatus::Judged => "acting",
        TurnStatus::Committed => "saved",
        TurnStatus::Abandoned => "given up",
    }
}

/// Returns the state of an automaton.
pub(crate) const fn state(state: AgentState) -> &'static str {
    match state {
        AgentState::Setup => "ready for its first start",
        AgentState::Waking => "waking up",
        AgentState::Running => "working",
        AgentState::LowCompute => "working cheaply",
        AgentState::Critical => "working, nearly out of credits",
        AgentState::Sleeping => "asleep",
        AgentState::Hibernating => "hibernating",
        AgentState::Dead => "dead: out of credits for too long",
    }
}

/// Returns the name of a survival tier.
pub(crate) const fn tier(tier: SurvivalTier) -> &'static str {
    match tier {
        SurvivalTier::Dead => "out of credits",
        SurvivalTier::Critical => "nearly out of credits",
        SurvivalTier::LowCompute => "low on credits",
        SurvivalTier::Normal => "enough credits",
        SurvivalTier::High => "plenty of credits",
    }
}

/// Returns the author of a text, in a sentence for the creator.
pub(crate) const fn author(label: Label) -> &'static str {
    match label {
        Label::Creator => "you",
        Label::Own => "itself",
        Label::Tool => "a tool",
        Label::Peer => "another agent",
        Label::Web => "the web",
    }
}

/// Returns the authority of a call.
pub(crate) const fn authority(authority: Authority) -> &'static str {
    match authority {
        Authority::Creator => "you",
        Authority::Own => "itself",
        Authority::External => "strangers",
    }
}

/// Returns the outcome of a decision.
pub(crate) const fn verdict(outcome: DecisionOutcome) -> &'static str {
    match outcome {
        DecisionOutcome::Allow => "allowed by policy",
        DecisionOutcome::Ask => "needs your approval",
        DecisionOutcome::Deny => "refused by policy",
    }
}

/// Returns the severity of an alert.
pub(crate) const fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Warning => "warning",
        Severity::Critical => "critical",
    }
}

/// Returns the subject of an alert.
pub(crate) const fn rule(rule: AlertRule) -> &'static str {
    match rule {
        AlertRule::BalanceBelowReserve => "balance below its reserve",
        AlertRule::HeartbeatHighFailureRate => "many heartbeat tasks fail",
        AlertRule::PolicyHighDenyRate => "many calls are refused",
        AlertRule::ContextNearCapacity => "prompt nearly full",
        AlertRule::InferenceBudgetWarning => "thinking budget nearly used",
        AlertRule::ZeroTurnsLastHour => "no turn in the last hour",
        AlertRule::ExcessiveTurns => "many turns of its own accord",
    }
}

/// Returns the purpose of a payment.
pub(crate) const fn purpose(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::TopUp => "credits",
        Purpose::X402 => "a paid request",
        Purpose::Transfer => "credits for somebody else",
    }
}

/// Returns the state of a payment.
pub(crate) const fn payment(state: PaymentState) -> &'static str {
    match state {
        PaymentState::Proposed => "proposed",
        PaymentState::Approved => "approved",
        PaymentState::Signed => "signed",
        PaymentState::Submitted => "sent, not confirmed yet",
        PaymentState::Unknown => "sent, outcome not known yet",
        PaymentState::Settled => "paid",
        PaymentState::Failed => "failed",
        PaymentState::Expired => "expired unpaid",
    }
}

/// Returns the state of a question.
pub(crate) const fn approval(state: ApprovalState) -> &'static str {
    match state {
        ApprovalState::Waiting => "waiting for your answer",
        ApprovalState::Approved => "approved",
        ApprovalState::Denied => "denied",
        ApprovalState::Expired => "expired unanswered",
        ApprovalState::Used => "approved and done",
    }
}

/// Returns the end of a heartbeat task.
pub(crate) const fn task(result: TaskResult) -> &'static str {
    match result {
        TaskResult::Success => "done",
        TaskResult::Failure => "failed",
        TaskResult::Timeout => "took too long",
        TaskResult::Lost => "cut off by a crash",
    }
}

/// Returns the owner of a heartbeat entry.
pub(crate) const fn origin(origin: TaskOrigin) -> &'static str {
    match origin {
        TaskOrigin::Default => "built in",
        TaskOrigin::File => "yours",
        TaskOrigin::Agent => "its own",
    }
}

/// Returns the category of a booking by its name in the ledger; another name stays.
pub(crate) fn category(name: &str) -> &str {
    match name {
        "inference" => "thinking",
        "x402" => "paid requests",
        "transfer" => "given to others",
        "revenue" => "earned",
        "funding" => "given by you",
        "machine" => "rented machines",
        other => other,
    }
}

/// An end of a model's answer that the program has no meaning for, by the server's word.
pub(crate) fn unknown_end(word: &str) -> String {
    format!("the server ended it with \"{}\", an unknown reason", plain(word))
}

/// Returns the end of a command's request.
pub(crate) const fn request(end: EgressEndReason) -> &'static str {
    match end {
        EgressEndReason::Done => "complete",
        EgressEndReason::Broken => "broken off",
        EgressEndReason::Unreachable => "the host cannot be reached",
        EgressEndReason::Late => "too late",
        EgressEndReason::Address => "the host's address is not allowed",
        EgressEndReason::Greeting => "the connection names another host",
        EgressEndReason::Idle => "silent for too long",
        EgressEndReason::TooLong => "took too long",
        EgressEndReason::RequestBytes => "more bytes than one request may have",
        EgressEndReason::RunBytes => "more bytes than one command may have",
        EgressEndReason::Stopped => "stopped with its command",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name of the database is no phrase: those have underscores, and are one word where
    /// a sentence is needed.
    #[test]
    fn no_phrase_is_a_name_of_the_database() {
        let mut phrases: Vec<&str> = Vec::new();
        phrases.extend(StopReason::ALL.map(stop));
        phrases.extend(WakeSource::ALL.map(wake));
        phrases.extend(CallStatus::ALL.map(call));
        phrases.extend(TurnStatus::ALL.map(turn));
        phrases.extend(AgentState::ALL.map(state));
        phrases.extend(Label::ALL.map(author));
        phrases.extend(Authority::ALL.map(authority));
        phrases.extend(DecisionOutcome::ALL.map(verdict));
        phrases.extend(AlertRule::ALL.map(rule));
        phrases.extend(Purpose::ALL.map(purpose));
        phrases.extend(PaymentState::ALL.map(payment));
        phrases.extend(ApprovalState::ALL.map(approval));
        phrases.extend(TaskResult::ALL.map(task));
        phrases.extend(TaskOrigin::ALL.map(origin));
        phrases.extend(EgressEndReason::ALL.map(request));
        for phrase in &phrases {
            assert!(!phrase.is_empty() && !phrase.contains('_'), "{phrase}");
            assert!(!phrase.ends_with('.') && phrase.trim() == *phrase, "{phrase}");
        }
        for reason in StopReason::ALL {
            assert_ne!(stop(reason), reason.name());
        }
        for source in WakeSource::ALL {
            assert_ne!(wake(source), source.name());
        }
    }
}

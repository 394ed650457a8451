//! Pure: names of the values of an enumeration, and the way back.
//!
//! It must never change a name that is stored: databases and other programs know it.

pub use automaton_derive::Names;

#[cfg(test)]
mod tests {
    use crate::alert::{AlertRule, Severity};
    use crate::egress::EgressEndReason;
    use crate::faults::FaultPoint;
    use crate::memory::MemoryTier;
    use crate::message::{AnsweredBy, InboxState};
    use crate::model::InferenceTask;
    use crate::origin::ValueKind;
    use crate::payment::{PaymentState, Purpose, Rail};
    use crate::pnl::PnlGrouping;
    use crate::record::{
        Authority, CallStatus, DecisionOutcome, StopReason, TurnStatus, WakeSource,
    };
    use crate::service::Service;
    use crate::soul::{SoulSection, SoulSource};
    use crate::state::AgentState;
    use crate::tier::{ModelTier, SurvivalTier};
    use crate::tool::{Effect, Risk};
    use crate::trust::Label;
    use crate::vitals::DistressLevel;

    /// The names of all values, in order.
    fn names<T: std::fmt::Display>(values: &[T]) -> String {
        values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn names_in_the_record_stay() {
        assert_eq!(names(&InboxState::ALL), "received, in_progress, processed, failed");
        assert_eq!(names(&AnsweredBy::ALL), "reply, words, creator");
        assert_eq!(
            names(&EgressEndReason::ALL),
            "done, broken, unreachable, late, address, greeting, idle, too_long, request_bytes, \
             run_bytes, stopped"
        );
        assert_eq!(
            names(&AgentState::ALL),
            "setup, waking, running, low_compute, critical, sleeping, hibernating, dead"
        );
        assert_eq!(
            names(&CallStatus::ALL),
            "planned, started, done, failed, refused, invalid, skipped, unknown, not_started"
        );
        assert_eq!(names(&TurnStatus::ALL), "open, judged, committed, abandoned");
        assert_eq!(names(&Authority::ALL), "creator, self, external");
        assert_eq!(
            names(&WakeSource::ALL),
            "birth, timer, inbox, heartbeat, manual, money, recovery"
        );
        assert_eq!(
            names(&StopReason::ALL),
            "asked, said, turn_limit, errors, idle, repetition, turns_used, shutdown, \
             stop_loss, budget, envelope, blocked, broke, interrupted, crash"
        );
        assert_eq!(names(&DecisionOutcome::ALL), "allow, ask, deny");
        assert_eq!(
            names(&MemoryTier::ALL),
            "working, episodic, semantic, procedural, relationship"
        );
        assert_eq!(names(&Rail::ALL), "usdc, credits");
        assert_eq!(
            names(&PaymentState::ALL),
            "proposed, approved, signed, submitted, unknown, settled, failed, expired"
        );
        assert_eq!(names(&Purpose::ALL), "top_up, x402, transfer");
        assert_eq!(names(&Risk::ALL), "safe, caution, dangerous, forbidden");
        assert_eq!(names(&Effect::ALL), "observes, mutates");
        assert_eq!(names(&Label::ALL), "creator, self, tool, peer, web");
        assert_eq!(
            names(&SoulSection::ALL),
            "core_purpose, values, behavioral_guidelines, personality, boundaries, strategy, \
             capabilities, relationships, financial_character"
        );
        assert_eq!(names(&SoulSource::ALL), "agent, human, genesis, reflection");
    }

    #[test]
    fn names_that_others_know_stay() {
        assert_eq!(names(&DistressLevel::ALL), "low, critical, dead");
        assert_eq!(
            names(&InferenceTask::ALL),
            "agent_turn, heartbeat_triage, safety_check, summarization, planning"
        );
        assert_eq!(names(&ValueKind::ALL), "recipient, URL, command, path");
        assert_eq!(names(&PnlGrouping::ALL), "category, day, goal, turn, service");
        assert_eq!(names(&Severity::ALL), "warning, critical");
        assert_eq!(
            names(&AlertRule::ALL),
            "balance_below_reserve, heartbeat_high_failure_rate, policy_high_deny_rate, \
             context_near_capacity, inference_budget_warning, zero_turns_last_hour, \
             excessive_turns"
        );
        assert_eq!(names(&ModelTier::ALL), "usual, low_compute, critical");
        assert_eq!(names(&SurvivalTier::ALL), "dead, critical, low_compute, normal, high");
        assert_eq!(
            names(&FaultPoint::ALL),
            "message-received, session-opened, turn-opened, prompt-built, thought-received, \
             judgement-stored, call-started, call-ran, call-finished, turn-committed, \
             turn-ingested, sleep-stored, task-leased, task-ran, port-reopening, port-served, \
             port-reopened, payment-proposed, payment-received, payment-signed, payment-submitted, payment-answered, \
             payment-booked, signer-asked, signer-signed, signer-counted, signer-answered, \
             settlement-begun, settlement-submitted, settlement-broadcast, settlement-booked, \
             chain-act-done, chain-act-stored"
        );
        assert_eq!(names(&Service::ALL), "dev chain, cloud, signer");
    }
}

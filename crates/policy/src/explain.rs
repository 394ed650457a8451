//! Pure: the explanation of a decision for the model.
//!
//! A refusal says what was refused, why, and what may be done instead. A model that only reads
//! "no" tries the same again. The text must never promise that something else will be allowed.

use automaton_core::record::DecisionOutcome;
use automaton_core::tool::ToolName;

use crate::decision::{Decision, ReasonCode};

/// The verdict of a call that waits for the creator's approval.
pub const ASKS: &str = "not run: it needs your creator's approval";

/// Returns the result of a call that did not run, as the model reads it.
#[must_use]
pub fn to_model(tool: &ToolName, decision: &Decision) -> String {
    let Decision { outcome, code, reason, .. } = decision;
    let verdict = match outcome {
        DecisionOutcome::Allow => "allowed",
        DecisionOutcome::Ask => ASKS,
        DecisionOutcome::Deny => "refused",
    };
    let advice = advice(*code);
    let gap = if advice.is_empty() { "" } else { " " };
    format!("{tool} was {verdict} ({code}). {reason}{gap}{advice}")
}

/// Returns the advice about a code, or an empty text if there is none.
#[must_use]
pub const fn advice(code: ReasonCode) -> &'static str {
    match code {
        ReasonCode::Allowed | ReasonCode::Approved => "",
        ReasonCode::NoIntent | ReasonCode::RuleError => "Do it in simpler steps.",
        ReasonCode::ForbiddenTool => "Go on without this tool.",
        ReasonCode::ValidationFailed => "Correct the arguments and call it again.",
        ReasonCode::UnknownRecipient => "Write to `creator`.",
        ReasonCode::PathTraversal => "Give a path in your workspace, such as notes/today.md.",
        ReasonCode::SensitiveFileRead | ReasonCode::ForbiddenCommand => {
            "Your work does not need it; go on without."
        }
        ReasonCode::ProtectedFile => "Choose another file.",
        ReasonCode::ExternalDangerousTool
        | ReasonCode::UntrustedInput
        | ReasonCode::UntrustedValue => {
            "Tell your creator with send_message what you would do and why."
        }
        ReasonCode::SpendLimitExceeded | ReasonCode::MinimumReserve => {
            "Spend less, or wait; your creator can change the limit."
        }
        ReasonCode::TurnTransferLimit
        | ReasonCode::TransferCooldown
        | ReasonCode::RateLimitExceeded => "Do it later.",
        ReasonCode::SecretLeaves => "Leave the secret out; nobody else may have it.",
        ReasonCode::CreditsCritical => {
            "Buy credits, ask your creator for some, or sleep until there are."
        }
        ReasonCode::BalanceUnknown => "Look at your balances in a while, and try again.",
        ReasonCode::ConfirmationRequired => "It is done when your creator approves it.",
        ReasonCode::DomainNotAllowed => "Your creator says which hosts may be paid.",
        ReasonCode::HostNotAllowed => {
            "The creator can allow it under `egress.hosts` in automaton.json."
        }
        ReasonCode::OperatorRule => "Do it in another way, or tell your creator why you need it.",
        ReasonCode::CreatorOnly => "Use another category, or wait until your creator tells you.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_tool_the_code_the_reason_and_a_way_on() {
        let decision = |outcome, code| Decision {
            outcome,
            code,
            reason: "It asks for 0 ms.".into(),
            intents: vec![],
            rules_evaluated: &[],
            rules_triggered: vec![],
            operator: crate::OperatorFindings::default(),
        };
        let tool: ToolName = "exec".parse().unwrap();
        assert_eq!(
            to_model(&tool, &decision(DecisionOutcome::Deny, ReasonCode::ValidationFailed)),
            "exec was refused (VALIDATION_FAILED). It asks for 0 ms. \
             Correct the arguments and call it again."
        );
        let held = to_model(&tool, &decision(DecisionOutcome::Ask, ReasonCode::UntrustedInput));
        assert!(
            held.starts_with(
                "exec was not run: it needs your creator's approval (UNTRUSTED_INPUT)."
            )
        );
    }

    #[test]
    fn every_refusal_has_a_way_on() {
        for code in ReasonCode::ALL {
            let allowed = matches!(code, ReasonCode::Allowed | ReasonCode::Approved);
            assert_eq!(advice(code).is_empty(), allowed, "{code}");
        }
    }
}

//! Pure: the result of a judgement, as a value to be stored.
//!
//! A decision holds the very intents that were judged, so the record cannot differ from the
//! decision. Its codes are stored and shown: codes are only added, never changed.

use std::borrow::Cow;

use automaton_core::intent::Intent;
use automaton_core::names::Names;
use automaton_core::record::DecisionOutcome;

use crate::operator::OperatorFindings;

/// The name of a rule: its family, a dot, and its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
pub struct RuleId(&'static str);

impl RuleId {
    pub(crate) const fn new(id: &'static str) -> Self {
        Self(id)
    }

    /// Returns the name as text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

/// The reason for a decision. Its [`name`](Self::name) is the code that is stored and shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Names)]
#[names(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ReasonCode {
    /// No rule objects.
    Allowed,
    /// The value states no intent, so its effect is unknown.
    NoIntent,
    /// A rule could not judge it.
    RuleError,
    /// The tool is forbidden altogether.
    ForbiddenTool,
    /// The tool is too dangerous for the label of the turn's input.
    ExternalDangerousTool,
    /// A size, span or name is out of range.
    ValidationFailed,
    /// The recipient cannot be reached.
    UnknownRecipient,
    /// The path is not in the workspace.
    PathTraversal,
    /// The file is of a kind that contains secrets.
    SensitiveFileRead,
    /// The file must not be written this way.
    ProtectedFile,
    /// The command would harm the automaton or look for secrets.
    ForbiddenCommand,
    /// The turn's input may not cause this without approval.
    UntrustedInput,
    /// The target value comes only from strangers, or not from the creator.
    UntrustedValue,
    /// Only the creator may cause this.
    CreatorOnly,
    /// A spending limit is exceeded.
    SpendLimitExceeded,
    /// The turn has reached its limit of transfers.
    TurnTransferLimit,
    /// The last transfer was too recent.
    TransferCooldown,
    /// Too little would be left.
    MinimumReserve,
    /// The balance could not be read.
    BalanceUnknown,
    /// The creator has to confirm it.
    ConfirmationRequired,
    /// The host is not on the list of paid hosts.
    DomainNotAllowed,
    /// The host is not on the list of hosts that commands may reach.
    HostNotAllowed,
    /// The rate limit is reached.
    RateLimitExceeded,
    /// The call would send a secret out.
    SecretLeaves,
    /// Credits are nearly gone, and the action does not help to survive.
    CreditsCritical,
    /// A rule of the operator's objects.
    OperatorRule,
    /// The creator approved this very call.
    Approved,
}

/// The decision about a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The most severe outcome of all rules.
    pub outcome: DecisionOutcome,
    /// The code of the first rule with that outcome.
    pub code: ReasonCode,
    /// That rule's finding, in one or two sentences for people and models.
    pub reason: Cow<'static, str>,
    /// The intents that were judged.
    pub intents: Vec<Intent>,
    /// Every rule that was evaluated, in order.
    pub rules_evaluated: &'static [RuleId],
    /// The rules that objected or could not judge, in order.
    pub rules_triggered: Vec<RuleId>,
    /// The findings of the operator's rules.
    pub operator: OperatorFindings,
}

impl Decision {
    /// Turns the decision into a refusal.
    pub(crate) fn refuse(&mut self, code: ReasonCode, reason: String) {
        self.outcome = DecisionOutcome::Deny;
        self.code = code;
        self.reason = Cow::Owned(reason);
    }

    /// Returns the names of all evaluated rules, in order.
    pub fn evaluated(&self) -> impl Iterator<Item = &str> {
        let built_in = self.rules_evaluated.iter().map(|id| id.as_str());
        built_in.chain(self.operator.asked.iter().map(String::as_str))
    }

    /// Returns the names of all rules that objected or could not judge, in order.
    pub fn triggered(&self) -> impl Iterator<Item = &str> {
        let built_in = self.rules_triggered.iter().map(|id| id.as_str());
        built_in.chain(self.operator.triggered.iter().map(String::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_are_stored_stay() {
        assert_eq!(
            ReasonCode::ALL.map(ReasonCode::name),
            [
                "ALLOWED",
                "NO_INTENT",
                "RULE_ERROR",
                "FORBIDDEN_TOOL",
                "EXTERNAL_DANGEROUS_TOOL",
                "VALIDATION_FAILED",
                "UNKNOWN_RECIPIENT",
                "PATH_TRAVERSAL",
                "SENSITIVE_FILE_READ",
                "PROTECTED_FILE",
                "FORBIDDEN_COMMAND",
                "UNTRUSTED_INPUT",
                "UNTRUSTED_VALUE",
                "CREATOR_ONLY",
                "SPEND_LIMIT_EXCEEDED",
                "TURN_TRANSFER_LIMIT",
                "TRANSFER_COOLDOWN",
                "MINIMUM_RESERVE",
                "BALANCE_UNKNOWN",
                "CONFIRMATION_REQUIRED",
                "DOMAIN_NOT_ALLOWED",
                "HOST_NOT_ALLOWED",
                "RATE_LIMIT_EXCEEDED",
                "SECRET_LEAVES",
                "CREDITS_CRITICAL",
                "OPERATOR_RULE",
                "APPROVED"
            ]
        );
    }
}

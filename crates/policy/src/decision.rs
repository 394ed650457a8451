//! Pure: what a judgement came to, as a value to be stored.
//!
//! A decision holds the very intents that were judged, so that what is recorded
//! cannot differ from what was decided upon. Its codes are stored and shown:
//! they are only ever added to.

use std::borrow::Cow;

use automaton_core::intent::Intent;
use automaton_core::names::Names;
use automaton_core::record::DecisionOutcome;

use crate::operator::OperatorFindings;

/// The name of a rule: its family, a dot, what it guards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
pub struct RuleId(&'static str);

impl RuleId {
    pub(crate) const fn new(id: &'static str) -> Self {
        Self(id)
    }

    /// The name as text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

/// Why a decision came out as it did.
/// Its [`name`](Self::name) is the code as it is stored and shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Names)]
#[names(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ReasonCode {
    /// No rule objects.
    Allowed,
    /// The value states no intent, so nothing is known of what it would do.
    NoIntent,
    /// A rule could not judge it.
    RuleError,
    /// The tool is forbidden altogether.
    ForbiddenTool,
    /// The tool is too dangerous for what the turn answers.
    ExternalDangerousTool,
    /// A size, span or name is out of its range.
    ValidationFailed,
    /// The message is for somebody who cannot be reached.
    UnknownRecipient,
    /// The path is not in the workspace.
    PathTraversal,
    /// The file is of a kind that holds secrets.
    SensitiveFileRead,
    /// The file is not to be written this way.
    ProtectedFile,
    /// The command would harm the automaton or look for secrets.
    ForbiddenCommand,
    /// The turn answers somebody who may not cause this alone.
    UntrustedInput,
    /// Only strangers have named what it is aimed at, or the creator has not.
    UntrustedValue,
    /// Only the creator may cause this.
    CreatorOnly,
    /// It passes a limit of what may be spent.
    SpendLimitExceeded,
    /// The turn has made as many transfers as it may.
    TurnTransferLimit,
    /// The last transfer was too short a while ago.
    TransferCooldown,
    /// Too little would be left.
    MinimumReserve,
    /// What is there could not be read.
    BalanceUnknown,
    /// The creator has to confirm it.
    ConfirmationRequired,
    /// The host is none that may be paid.
    DomainNotAllowed,
    /// The host is none that a command may reach.
    HostNotAllowed,
    /// It was done too often of late.
    RateLimitExceeded,
    /// It holds a secret that would leave.
    SecretLeaves,
    /// The credits are nearly gone, and it is not for staying alive.
    CreditsCritical,
    /// A rule of the operator's objects.
    OperatorRule,
    /// The creator approved this very call.
    Approved,
}

/// How a value was judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The gravest of all findings.
    pub outcome: DecisionOutcome,
    /// The code of the first rule that found just that.
    pub code: ReasonCode,
    /// What that rule found, in one or two sentences for people and models.
    pub reason: Cow<'static, str>,
    /// What was judged, in the value's own words.
    pub intents: Vec<Intent>,
    /// Every rule that was asked, in order.
    pub rules_evaluated: &'static [RuleId],
    /// The rules that objected, or could not judge, in order.
    pub rules_triggered: Vec<RuleId>,
    /// The same of the operator's rules.
    pub operator: OperatorFindings,
}

impl Decision {
    /// Makes a refusal of it.
    pub(crate) fn refuse(&mut self, code: ReasonCode, reason: String) {
        self.outcome = DecisionOutcome::Deny;
        self.code = code;
        self.reason = Cow::Owned(reason);
    }

    /// The names of all rules that were asked, in order.
    pub fn evaluated(&self) -> impl Iterator<Item = &str> {
        let built_in = self.rules_evaluated.iter().map(|id| id.as_str());
        built_in.chain(self.operator.asked.iter().map(String::as_str))
    }

    /// The names of all rules that objected, or could not judge, in order.
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

//! Pure: what a judgement came to, as a value to be stored.
//!
//! A decision holds the very intents that were judged, so that what is recorded
//! cannot differ from what was decided upon. Its codes are stored and shown:
//! they are only ever added to.

use std::borrow::Cow;

use automaton_core::intent::Intent;
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

automaton_core::names! {
    /// The code as it is stored and shown.
    ReasonCode {
        Allowed => "ALLOWED", NoIntent => "NO_INTENT", RuleError => "RULE_ERROR",
        ForbiddenTool => "FORBIDDEN_TOOL", ExternalDangerousTool => "EXTERNAL_DANGEROUS_TOOL",
        ValidationFailed => "VALIDATION_FAILED", UnknownRecipient => "UNKNOWN_RECIPIENT",
        PathTraversal => "PATH_TRAVERSAL", SensitiveFileRead => "SENSITIVE_FILE_READ",
        ProtectedFile => "PROTECTED_FILE", ForbiddenCommand => "FORBIDDEN_COMMAND",
        UntrustedInput => "UNTRUSTED_INPUT", UntrustedValue => "UNTRUSTED_VALUE",
        CreatorOnly => "CREATOR_ONLY", SpendLimitExceeded => "SPEND_LIMIT_EXCEEDED",
        TurnTransferLimit => "TURN_TRANSFER_LIMIT", TransferCooldown => "TRANSFER_COOLDOWN",
        MinimumReserve => "MINIMUM_RESERVE", BalanceUnknown => "BALANCE_UNKNOWN",
        ConfirmationRequired => "CONFIRMATION_REQUIRED", DomainNotAllowed => "DOMAIN_NOT_ALLOWED",
        HostNotAllowed => "HOST_NOT_ALLOWED", RateLimitExceeded => "RATE_LIMIT_EXCEEDED",
        SecretLeaves => "SECRET_LEAVES", CreditsCritical => "CREDITS_CRITICAL",
        OperatorRule => "OPERATOR_RULE", Approved => "APPROVED",
    }
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

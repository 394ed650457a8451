//! Views of the policy.

use std::path::PathBuf;

use automaton_core::intent::Intent;
use automaton_core::record::DecisionOutcome;
use automaton_core::tool::{Risk, ToolCategory};
use automaton_core::trust::Label;
use automaton_core::wire::judge::{JudgeOutcome, JudgeResponse};
use schemars::JsonSchema;
use serde::Serialize;

use super::turns::DecisionView;

/// The tools, and the rules for them.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct PolicyView {
    /// The tools.
    pub(crate) tools: Vec<PolicyToolView>,
    /// The authority that each kind of effect needs.
    pub(crate) authority: Vec<AuthorityView>,
    /// The rules.
    pub(crate) rules: Vec<RuleView>,
    /// The limits on the number of actions.
    pub(crate) limits: Vec<RateLimitView>,
}

/// A tool.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct PolicyToolView {
    /// Its name.
    pub(crate) name: String,
    /// Its family.
    pub(crate) category: ToolCategory,
    /// Harm that it can do.
    pub(crate) risk: Risk,
}

/// The authority that one kind of effect needs.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct AuthorityView {
    /// The kind of effect.
    pub(crate) kind: &'static str,
    /// The effect as it continues a sentence after "would have it".
    pub(crate) effect: &'static str,
    /// The outcome when the wake has read text of a peer or of the web.
    pub(crate) having_read: DecisionOutcome,
    /// The labels of a turn's input that allow it.
    pub(crate) alone: Vec<Label>,
    /// The labels of a turn's input that need your approval.
    pub(crate) asks: Vec<Label>,
    /// The labels of a turn's input that forbid it.
    pub(crate) never: Vec<Label>,
}

/// A rule.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct RuleView {
    /// Its id.
    pub(crate) id: &'static str,
    /// The code of its decisions.
    pub(crate) code: &'static str,
    /// Its meaning, in one sentence.
    pub(crate) sentence: &'static str,
    /// Advice for the model.
    pub(crate) advice: &'static str,
    /// The party whose approval lifts it.
    pub(crate) lifted_by: &'static str,
    /// The effect of an approval, for people.
    #[serde(skip)]
    pub(crate) approval: &'static str,
}

/// A limit on the number of actions.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct RateLimitView {
    /// The rule that enforces it.
    pub(crate) rule: &'static str,
    /// The kind of effect that counts.
    pub(crate) kind: &'static str,
    /// The most actions in the window.
    pub(crate) max: u32,
    /// The window in milliseconds; `null` for one wake.
    pub(crate) window_ms: Option<i64>,
}

/// The output of `policy explain`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum PolicyExplainOutput {
    /// The one rule of that name.
    Rule(RuleView),
    /// A decision, with the rules that objected.
    Decision(Box<ExplainedDecisionView>),
    /// All rules of that name.
    Rules(RuleListView),
}

/// A decision, with the rules that objected.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ExplainedDecisionView {
    /// The decision.
    pub(crate) decision: DecisionView,
    /// The rules that objected.
    pub(crate) rules: Vec<RuleView>,
}

/// Several rules.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct RuleListView {
    /// The rules.
    pub(crate) rules: Vec<RuleView>,
}

/// A check of the operator's rules.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct PolicyCheckView {
    /// The file.
    pub(crate) file: PathBuf,
    /// Number of rules.
    pub(crate) rules: usize,
    /// Parts that are without effect, in words.
    pub(crate) notes: Vec<String>,
}

/// A file of rules that was written.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct PolicyFileView {
    /// The file.
    pub(crate) file: PathBuf,
}

/// The judgement of a call.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct JudgementView {
    /// Outcome.
    pub(crate) outcome: JudgeOutcomeView,
    /// The code of the rule that decides; empty if the call was not judged.
    pub(crate) code: String,
    /// Reason, in a sentence or two.
    pub(crate) reason: String,
    /// SHA-256 of the arguments with sorted keys, in hexadecimal.
    pub(crate) args_sha256: Option<String>,
    /// Intents of the call.
    pub(crate) intents: Vec<Intent>,
    /// The rules that were asked, in order.
    pub(crate) rules_evaluated: Vec<String>,
    /// The rules that objected.
    pub(crate) rules_triggered: Vec<String>,
}

/// Outcome of a judgement.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JudgeOutcomeView {
    /// The call would run.
    Allow,
    /// The call would wait for the creator's approval.
    Ask,
    /// The call would be refused.
    Deny,
    /// The call is not valid for the tool, and is never judged.
    Invalid,
}

impl From<&JudgeResponse> for JudgementView {
    fn from(row: &JudgeResponse) -> Self {
        let row = row.clone();
        let outcome = match row.outcome {
            JudgeOutcome::Allow => JudgeOutcomeView::Allow,
            JudgeOutcome::Ask => JudgeOutcomeView::Ask,
            JudgeOutcome::Deny => JudgeOutcomeView::Deny,
            JudgeOutcome::Invalid => JudgeOutcomeView::Invalid,
        };
        Self {
            outcome,
            code: row.code,
            reason: row.reason,
            args_sha256: row.args_sha256,
            intents: row.intents,
            rules_evaluated: row.rules_evaluated,
            rules_triggered: row.rules_triggered,
        }
    }
}

/// A case of a test of the policy.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct PolicyCaseView {
    /// Its name.
    pub(crate) name: String,
    /// True if the judgement is the expected one.
    pub(crate) met: bool,
    /// The judgement.
    pub(crate) judged: JudgementView,
}

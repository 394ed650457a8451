//! Views of questions that need the creator's approval.

use automaton_core::id::{ApprovalId, CallId, PaymentId};
use automaton_core::time::Timestamp;
use automaton_core::trust::Labelled;
use automaton_core::wire::control::ApprovalVerdict;
use automaton_store::{Approval, ApprovalState, ApprovalSubject};
use schemars::JsonSchema;
use serde::Serialize;

/// A question to the creator.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ApprovalView {
    /// Its id.
    pub(crate) id: ApprovalId,
    /// Subject.
    #[serde(flatten)]
    pub(crate) subject: ApprovalSubjectView,
    /// SHA-256 of exactly the action, in hexadecimal. An answer is to this alone.
    pub(crate) action_sha256: String,
    /// Action, with the label of its cause.
    pub(crate) summary: Labelled,
    /// The code of the rule that asks.
    pub(crate) code: String,
    /// Reason of the rule.
    pub(crate) reason: String,
    /// Current state.
    #[schemars(schema_with = "super::approval_state")]
    pub(crate) state: ApprovalState,
    /// Time of the question, in milliseconds since 1970.
    pub(crate) at: Timestamp,
    /// Expiry, in milliseconds since 1970.
    pub(crate) expires_at: Timestamp,
    /// Time of the answer, in milliseconds since 1970.
    pub(crate) answered_at: Option<Timestamp>,
    /// The call that was made with the approval.
    pub(crate) used_by: Option<CallId>,
}

/// Subject of a question.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ApprovalSubjectView {
    /// The payment that waits for the answer.
    Payment(PaymentId),
    /// The call that waits for the answer.
    Call {
        /// Its id.
        id: CallId,
        /// Its tool.
        tool: String,
        /// Its arguments as JSON with sorted keys.
        arguments: String,
    },
}

impl From<&Approval> for ApprovalView {
    fn from(row: &Approval) -> Self {
        let row = row.clone();
        let subject = match row.subject {
            ApprovalSubject::Payment(payment) => ApprovalSubjectView::Payment(payment),
            ApprovalSubject::Call { id, tool, arguments } => {
                ApprovalSubjectView::Call { id, tool, arguments }
            }
        };
        Self {
            id: row.id,
            subject,
            action_sha256: row.action_sha256,
            summary: row.summary,
            code: row.code,
            reason: row.reason,
            state: row.state,
            at: row.at,
            expires_at: row.expires_at,
            answered_at: row.answered_at,
            used_by: row.used_by,
        }
    }
}

/// The text to sign to answer a question.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ApprovalMessageView {
    /// The question.
    pub(crate) approval: ApprovalId,
    /// The answer that the text gives.
    pub(crate) answer: ApprovalVerdict,
    /// The text to sign.
    pub(crate) message: String,
}

/// An answer that was given.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ApprovalAnswerView {
    /// The question.
    pub(crate) approval: ApprovalId,
    /// The answer.
    pub(crate) answer: ApprovalVerdict,
}

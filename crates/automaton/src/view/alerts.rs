//! Views of alerts, and of what commands sent out of the sandbox.

use automaton_core::alert::{Alert, Severity};
use automaton_core::egress::EgressOutcome;
use automaton_core::id::CallId;
use automaton_core::record::DecisionOutcome;
use automaton_core::time::Timestamp;
use automaton_store::EgressRecord;
use schemars::JsonSchema;
use serde::Serialize;

/// An alert.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct AlertView {
    /// True while the condition holds.
    pub(crate) active: bool,
    /// Severity.
    pub(crate) severity: Severity,
    /// The alert.
    #[serde(flatten)]
    pub(crate) alert: Alert,
}

impl From<&Alert> for AlertView {
    fn from(alert: &Alert) -> Self {
        let active = alert.is_active();
        Self { active, severity: alert.rule.severity(), alert: alert.clone() }
    }
}

/// A request that a command sent out of the sandbox.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct EgressRequestView {
    /// Its id.
    pub(crate) id: CallId,
    /// The call whose command sent it.
    pub(crate) call: CallId,
    /// Time of the decision, in milliseconds since 1970.
    pub(crate) at: Timestamp,
    /// The method; `CONNECT` for a tunnel.
    pub(crate) method: String,
    /// Scheme, host and port.
    pub(crate) origin: String,
    /// Outcome of the decision.
    pub(crate) outcome: DecisionOutcome,
    /// The code of the decision.
    pub(crate) code: String,
    /// The same as `result`, under its older name.
    pub(crate) came: Option<EgressOutcome>,
    /// Outcome of the request; `null` if it was refused, is running, or is unknown.
    pub(crate) result: Option<EgressOutcome>,
}

impl From<&EgressRecord> for EgressRequestView {
    fn from(row: &EgressRecord) -> Self {
        let EgressRecord { id, call, at, method, origin, outcome, code, came } = row.clone();
        Self { id, call, at, method, origin, outcome, code, came, result: came }
    }
}

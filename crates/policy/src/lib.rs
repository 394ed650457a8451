//! Pure: decides what a call may do, and is the only issuer of the proof that it may.
//!
//! [`judge()`] asks a value for its intents, evaluates every rule on each of them and combines the
//! findings: the most severe one decides. Only an allowed value comes back, sealed in
//! [`Approved`]. Opening it yields the [`Permit`] that is needed to run it. Rules explain a
//! refusal early and in words. The sandbox stops an attacker who gets past them. This crate must
//! never act, and must never allow what a rule could not judge.

mod approved;
pub mod budget;
pub mod catalogue;
mod decision;
pub mod explain;
mod facts;
pub mod guard;
mod intents;
mod judge;
mod operator;
mod payment;
pub mod rates;
mod rules;
mod shell;

pub use approved::{Approved, Permit};
pub use decision::{Decision, ReasonCode, RuleId};
pub use facts::{CreatorAddress, CreatorAddressError, Facts, HardLimit};
pub use intents::target_values;
pub use judge::{Judge, Verdict, judge};
pub use operator::{
    OPERATOR_TEXT_BYTES_MAX, OperatorFindings, OperatorRules, OperatorRulesError, RuleContext,
    RuleDiagnostic,
};
pub use payment::{PaymentFacts, PaymentLimits, PaymentVerdict, may_be_paid};
pub use rules::{Reachable, may_be_read};
pub use shell::destruction::may_delete;

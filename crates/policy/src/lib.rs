//! Pure: decides what a call may do, and is the only minter of the proof that
//! it may.
//!
//! [`judge`] asks a value for its intents, has every rule look at each of them
//! and combines what they find: the gravest finding holds. Only an allowed
//! value comes back, sealed in [`Approved`]; opening it yields the [`Permit`]
//! that running it takes. The rules explain a refusal early and in words; what
//! holds against an attacker who is past them is the sandbox. This crate must
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

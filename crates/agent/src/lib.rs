//! The life of one automaton: turn, cycle, sleep, heartbeat.
//!
//! A turn is seven stages in a straight line (`turn`); a cycle is turns
//! until there is a reason to stop; a life is cycles and sleep. This crate has
//! no HTTP client, no SQL and no key: it must never get one. Everything that is
//! stored goes through the store, everything that is run through the sandbox,
//! everything that is decided through the policy.

mod approvals;
mod control;
mod cycle;
mod cycle_outcome;
mod deps;
mod egress;
mod error;
mod governor;
mod handles;
mod heartbeat;
mod life;
mod metered;
mod money;
mod paid_embedder;
mod preview;
pub mod prompt;
mod release;
mod reopen;
mod settings;
pub mod snapshots;
mod soul;
mod survival;
mod tasks;
mod toolbox;
pub mod treasury;
mod turn;
mod wake;
mod wake_limits;
mod worklog;

pub use approvals::{AnswerError, answer};
pub use deps::{AgentDeps, EventSink, NoEvents};
pub use egress::{Credential, EgressConfig, EgressGate, manual_provenance, run_with_egress};
pub use error::AgentError;
pub use handles::{add_meaning, command_spec, describe_limits};
pub use heartbeat::{
    HeartbeatError, ScheduleError, TaskRequestError, check_schedule, request_task,
};
pub use life::{AgentRunOutcome, EndReason, live};
pub use money::at_most;
pub use paid_embedder::PaidEmbedder;
pub use preview::{Preview, preview};
pub use settings::{
    ANSWER_TOKENS, AgentLimits, Budgets, Pace, Sampling, Settings, SoulSettings, StopLoss,
    TURNS_MAX, UnattendedBudget,
};
pub use soul::soul_file;
pub use toolbox::{OfferRules, ParsedCall, ToolSet, Toolbox, ToolboxError};
pub use turn::APPROVED_MODEL;
pub use worklog::worklog;

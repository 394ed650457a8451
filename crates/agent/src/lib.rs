//! The life of one automaton: turn, cycle, sleep, heartbeat.
//!
//! A turn is seven stages in a straight line (`turn`); a cycle is turns
//! until there is a reason to stop; a life is cycles and sleep. This crate has
//! no HTTP client, no SQL and no key: it must never get one. Everything that is
//! stored goes through the store, everything that is run through the sandbox,
//! everything that is decided through the policy.

mod approvals;
mod bounds;
mod control;
mod cycle;
mod deps;
mod egress;
mod ending;
mod error;
mod governor;
mod handles;
mod heartbeat;
mod life;
mod money;
mod preview;
pub mod prompt;
mod settings;
mod survival;
mod tasks;
pub mod treasury;
mod turn;
mod wake;

pub use approvals::{AnswerError, answer};
pub use deps::{Deps, EventSink, NoEvents, StandIns};
pub use egress::{Credential, Door, Egress, accompany, by_hand};
pub use error::AgentError;
pub use handles::{command_spec, describe_limits};
pub use heartbeat::{HeartbeatError, RhythmError, check_schedule};
pub use life::{EndReason, Ended, live};
pub use preview::{Preview, preview};
pub use settings::{
    ANSWER_TOKENS, Budgets, Envelope, Limits, Pace, Sampling, Settings, StopLoss, TURNS_MAX,
};
pub use turn::considered;

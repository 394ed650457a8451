//! The tools: one file each, and one list.
//!
//! A tool turns arguments into a [`PreparedCall`] call, which says what it intends
//! and runs only with a [`automaton_policy::Permit`]. Everything that has state
//! comes through the handles in [`context`], which the agent implements. A tool
//! must never reach around them, and must never decide what is allowed.

mod arguments;
pub mod context;
mod digest;
mod error;
mod financial;
pub mod list;
mod machines;
mod memory;
mod models;
mod profile;
pub mod result;
mod self_mod;
mod social;
mod survival;
mod tool;
mod vm;

#[cfg(test)]
mod testing;

pub use arguments::secrets_in;
pub use digest::{CallDigest, CallKind};
pub use error::{ArgumentError, HandleError, ToolError};
pub use profile::{
    FamilyMembership, Requirement, ToolAudience, ToolFamily, ToolProfile, WorkClass,
};
pub use survival::choose_tools::chosen_family;
pub use tool::{PreparedCall, Tool, ToolOutput, TurnContinuation};

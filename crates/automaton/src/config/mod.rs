//! The configuration: what the creator wrote, and what comes of it.
//!
//! `env` reads the environment and `file` reads `automaton.json`, both
//! without effects; `resolve` puts flags over environment over file over
//! defaults and remembers where each value came from. A file that cannot be
//! read must never be taken for one that is not there.

pub(crate) mod brain;
pub(crate) mod egress;
pub(crate) mod env;
pub mod file;
mod json_text;
pub(crate) mod named_brain;
pub(crate) mod network;
pub(crate) mod providers;
pub(crate) mod reference;
pub(crate) mod remote;
pub(crate) mod resolve;
pub(crate) mod snapshots;
pub(crate) mod values;

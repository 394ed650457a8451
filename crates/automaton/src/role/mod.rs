//! The processes that one binary can be.
//!
//! Which one it is comes from the name it is called by, never from an
//! argument or the environment. A role that a person cannot ask for is not a
//! command.

pub(crate) mod agent;
pub(crate) mod brain_check;
pub(crate) mod embedder;
pub mod gas;
pub mod launch_config;
pub(crate) mod money;
pub(crate) mod provider;
mod pulled_models;
pub mod service;
pub mod signer;

pub use agent::usual_limits;

//! The control plane that automatons live from, on a machine of one's own:
//! sign-in, credits bought over x402, metered calls of models.
//!
//! It speaks the API that clients of such clouds speak already
//! (`core::wire::cloud`, `core::wire::x402`). It never holds a client's key, takes
//! no price, payee or token from a client, and knows nothing of the agent.

mod access;
mod api;
mod app;
pub mod billing;
mod chat;
pub mod config;
pub mod db;
pub mod error;
mod gateway;
pub mod ledger;
pub mod machines;
mod refund;
mod serve;
mod shares;
mod tasks;
mod tunnels;
mod unclaimed;

pub use api::table::openapi;
pub use app::{CloudBackend, CloudDeps, CloudServer, DATABASE};
pub use config::{CloudConfig, MachinesConfig};
pub use error::{CloudError, OperatorNotifier};
pub use refund::{RefundError, refund};
pub use unclaimed::unclaimed_credits;

//! Pure: what some events hold, each with the fields of its line of `--json`.

use serde::{Deserialize, Serialize};

use crate::id::RemoteMachineId;
use crate::money::MicroUsdc;

/// Paid requests to a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaleReport {
    /// The machine, or the tunnel to the sandbox here.
    pub machine: RemoteMachineId,
    /// The port.
    pub port: u16,
    /// The number of requests: one, unless many were read at once.
    pub sales: u64,
    /// The amount that was paid for them.
    pub amount: MicroUsdc,
    /// The wallet that paid, where it is one request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payer: Option<String>,
    /// The transaction, where it is one request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction: Option<String>,
}

/// A port that is open again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReopenedPort {
    /// The port.
    pub port: u16,
    /// The address that visitors use.
    pub url: String,
}

/// State that a crash left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrashLeftovers {
    /// Calls whose outcome is unknown.
    pub unknown: u32,
    /// Calls that were not started.
    pub not_started: u32,
    /// Messages that went back to the inbox.
    pub returned: u32,
}

/// A step of a scripted story.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetStep {
    /// The step's number, from 1.
    pub step: u32,
    /// Steps of the story.
    pub of: u32,
    /// The step in words.
    pub what: String,
}

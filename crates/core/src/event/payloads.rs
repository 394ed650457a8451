//! Pure: contents of some events, each with the fields of its line of `--json`.

use serde::{Deserialize, Serialize};

use crate::id::{PaymentId, RemoteMachineId, SnapshotId};
use crate::money::MicroUsdc;

/// A request that was paid for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaidRequest {
    /// The payment.
    pub payment: PaymentId,
    /// Origin of the seller.
    pub origin: String,
    /// Amount.
    pub amount: MicroUsdc,
    /// True if the chain has confirmed it.
    pub settled: bool,
    /// The transaction, where it is named.
    pub transaction: Option<String>,
}

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

/// A snapshot of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenReport {
    /// The snapshot.
    pub snapshot: SnapshotId,
    /// Regular files in it.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Bytes that had to be copied.
    pub copied_bytes: u64,
    /// Files and folders that are left out.
    pub left_out: u64,
    /// Whether it has every file that nothing makes again.
    pub complete: bool,
    /// Milliseconds that it took.
    pub took_ms: i64,
}

/// A restore of the workspace from a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreEnd {
    /// The snapshot.
    pub snapshot: SnapshotId,
    /// The snapshot of the state before.
    pub before: Option<SnapshotId>,
    /// Files, folders and links that were missing.
    pub created: u64,
    /// Files and links that got their old content.
    pub replaced: u64,
    /// Files, folders and links that could not be restored.
    pub failed: u64,
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

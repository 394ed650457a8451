//! Pure: what came of a request that a sandboxed command sent through the proxy.
//!
//! The proxy says it, the store keeps it. It must never hold a header, a body or a
//! credential.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::Names;

/// End of a request. Its [`name`](Self::name) is the one in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Names)]
#[serde(rename_all = "snake_case")]
pub enum EgressEndReason {
    /// It was answered to the last byte, or both sides closed the tunnel.
    Done,
    /// One side broke off, or spoke what is no HTTP.
    Broken,
    /// The host could not be reached.
    Unreachable,
    /// The host did not take the connection in time.
    Late,
    /// The host's name leads to an address that is out of reach.
    Address,
    /// The tunnel did not begin with a TLS greeting to the host that was asked for.
    Greeting,
    /// Nothing was sent or received for too long.
    Idle,
    /// It took too long in all.
    TooLong,
    /// It was larger than one request may be.
    RequestBytes,
    /// The command had sent and received as much as it may.
    RunBytes,
    /// The command ended before it.
    Stopped,
}

/// Outcome of an allowed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EgressOutcome {
    /// The status of the server's answer; 200 is the proxy's own for a tunnel.
    pub status: Option<u16>,
    /// Bytes sent to the host, as they went over the wire.
    pub bytes_up: u64,
    /// Bytes received from it.
    pub bytes_down: u64,
    /// Reason for the end.
    pub end: EgressEndReason,
}

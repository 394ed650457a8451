//! Pure: messages and the states they pass through.
//!
//! ```text
//! received ──claim──▶ in_progress ──turn committed──▶ processed
//!    ▲                    │
//!    ├── failed, retries left, or claim stale ──┤
//!    │                    └── retries exhausted ──▶ failed
//! ```
//!
//! A message is processed in the same transaction as the turn that answers it,
//! and must never be lost or answered twice.

use serde::{Deserialize, Serialize};

use crate::id::MessageId;
use crate::names::Names;
use crate::time::Timestamp;
use crate::trust::{Label, Labelled};

/// Longest message that is accepted, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 64_000;

/// Longest message of the creator that is accepted, in bytes: a brief with its material.
/// What does not fit the model's window is read from a file.
pub const CREATOR_MESSAGE_BYTES_MAX: usize = 1 << 20;

/// Longest message that is accepted from a sender so far trusted, in bytes.
#[must_use]
pub const fn message_bytes_max(label: Label) -> usize {
    match label {
        Label::Creator => CREATOR_MESSAGE_BYTES_MAX,
        Label::Own | Label::Tool | Label::Peer | Label::Web => MESSAGE_BYTES_MAX,
    }
}

/// Messages claimed by one turn at most.
pub const CLAIMED_PER_TURN_MAX: u32 = 10;

/// Failures of one message itself after which it is given up.
pub const ATTEMPTS_MAX: u32 = 3;

/// State of a received message. Its [`name`](Self::name) is the one in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Names)]
#[serde(rename_all = "snake_case")]
pub enum InboxState {
    /// Stored; no turn has it.
    Received,
    /// A turn has it.
    InProgress,
    /// A committed turn answered it.
    Processed,
    /// It failed [`ATTEMPTS_MAX`] times by itself.
    Failed,
}

impl InboxState {
    /// Returns true if a message may change to the next state. A message that its creator closes
    /// before a turn claims it is processed at once.
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        matches!(
            (self, next),
            (Self::Received, Self::InProgress | Self::Processed)
                | (Self::InProgress, Self::Processed | Self::Received | Self::Failed)
        )
    }
}

/// Reason for which a message of the creator is no longer open. Its [`name`](Self::name) is the
/// one in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Names)]
#[serde(rename_all = "snake_case")]
pub enum AnsweredBy {
    /// A message that names it.
    Reply,
    /// The words with which a wake ended.
    Words,
    /// The creator, who closed it.
    Creator,
}

/// A message that a turn has claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedMessage {
    /// The message's id.
    pub id: MessageId,
    /// Text with its origin.
    pub body: Labelled,
    /// Time at which it was stored.
    pub at: Timestamp,
    /// Claims so far, this one included.
    pub attempt: u32,
    /// The file of the workspace that holds it whole, where the prompt shows its ends only.
    pub file: Option<String>,
}

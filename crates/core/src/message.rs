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
use crate::time::Timestamp;
use crate::trust::Untrusted;

/// Longest message that is accepted, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 64_000;

/// Messages claimed by one turn at most.
pub const CLAIMED_PER_TURN_MAX: u32 = 10;

/// Failures of one message itself after which it is given up.
pub const ATTEMPTS_MAX: u32 = 3;

/// Where a received message stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Received, Self::InProgress, Self::Processed, Self::Failed];

    /// The state's name in the database.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::InProgress => "in_progress",
            Self::Processed => "processed",
            Self::Failed => "failed",
        }
    }

    /// Whether a message may go from this state to the next.
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        matches!(
            (self, next),
            (Self::Received, Self::InProgress)
                | (Self::InProgress, Self::Processed | Self::Received | Self::Failed)
        )
    }
}

/// A message that a turn has claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The message's id.
    pub id: MessageId,
    /// What it says, with its origin.
    pub body: Untrusted<String>,
    /// When it was stored.
    pub at: Timestamp,
    /// How often it was claimed, this time included.
    pub attempt: u32,
}

//! Snapshots and restores for the creator's hand: they may take longer than a command does.

use automaton_core::snapshot::{RestoreRequest, SnapshotCause};
use automaton_core::wire::control::{ControlRequest, ControlResponse};
use automaton_sandbox::snapshot::TakenSnapshot;
use tokio::net::UnixStream;

use super::{refused, send_late};
use crate::snapshots::{WorkspaceSnapshotError, WorkspaceSnapshots};

/// A piece of work on the snapshots.
#[derive(Debug)]
pub(super) enum SnapshotWork {
    /// Take one.
    Take,
    /// Restore from one.
    Restore(RestoreRequest),
}

impl SnapshotWork {
    /// The work that a command asks for, if it is about snapshots.
    pub(super) fn from_command(command: &ControlRequest) -> Option<Self> {
        match command {
            ControlRequest::TakeSnapshot => Some(Self::Take),
            ControlRequest::RestoreWorkspace { restore } => Some(Self::Restore(restore.clone())),
            _ => None,
        }
    }
}

/// Does the work and answers. It goes on when the client leaves.
pub(super) async fn serve(snapshots: WorkspaceSnapshots, stream: UnixStream, work: SnapshotWork) {
    let done = match work {
        SnapshotWork::Take => snapshots.take_by_hand().await,
        SnapshotWork::Restore(request) => restored(&snapshots, request).await,
    };
    let answer = done.unwrap_or_else(|error| refused(&error));
    send_late(stream, &answer).await;
}

async fn restored(
    snapshots: &WorkspaceSnapshots,
    request: RestoreRequest,
) -> Result<ControlResponse, WorkspaceSnapshotError> {
    Ok(ControlResponse::WorkspaceRestored(Box::new(snapshots.restore(request).await?)))
}

impl WorkspaceSnapshots {
    /// Takes a snapshot for the creator, and says what came of it.
    ///
    /// # Errors
    /// As [`WorkspaceSnapshots::take`].
    pub async fn take_by_hand(&self) -> Result<ControlResponse, WorkspaceSnapshotError> {
        let (record, is_new) = match self.take(SnapshotCause::Manual).await? {
            TakenSnapshot::Taken(record) => (Some(record), true),
            TakenSnapshot::Unchanged(record) => (Some(record), false),
            TakenSnapshot::Empty => (None, false),
        };
        Ok(ControlResponse::SnapshotTaken { snapshot: record.map(Box::new), is_new })
    }
}

//! Content and label of the worklog.
//!
//! Tools for files say what they write. A command that runs for who has heard others is taken to
//! have changed it until it has ended and has not: a worklog that somebody who heard others has
//! changed must never be taken for the automaton's own, wherever the process dies.

use automaton_core::trust::{Label, Labelled};
use automaton_sandbox::WorkspacePath;
use automaton_store::{Hash, StoreError};
use automaton_tools::HandleError;
use automaton_tools::context::CallProvenance;

use super::Workspace;
use crate::worklog;

impl Workspace {
    /// Returns the content of the worklog; `None` without one, or if it cannot be read now.
    pub(crate) async fn worklog(&self) -> Result<Option<Labelled>, StoreError> {
        let Some(path) = worklog::path() else { return Ok(None) };
        // silent-ok: why it cannot be read is told to whoever reads it with a tool.
        let Ok((bytes, total)) = self.backend.read(&path, worklog::BYTES_MAX).await else {
            return Ok(None);
        };
        let written = self.store.bytes_label(path.to_string(), Hash::of(&bytes)).await?;
        Ok(worklog::text(&bytes, total, written))
    }

    /// Notes whose words a file has just got, where that was not noted before it was written.
    pub(super) async fn wrote(
        &self,
        path: &WorkspacePath,
        bytes: &[u8],
        voice: Label,
    ) -> Result<(), StoreError> {
        let name = path.to_string();
        match worklog::is_at(path) {
            true => self.store.label_bytes(name, voice, Some(Hash::of(bytes))).await,
            false => self.clear_label(name).await,
        }
    }

    /// Notes, before a command runs for who has heard others, that the worklog may be theirs: a
    /// command that is never heard of again may have changed it. What was noted before.
    pub(super) async fn distrust_worklog(
        &self,
        behalf: Option<CallProvenance>,
    ) -> Result<Option<WorklogBefore>, HandleError> {
        let voice = behalf.map_or(Label::Own, |behalf| behalf.input.meet(behalf.heard));
        let Some(path) = worklog::path().filter(|_| voice > Label::Tool) else { return Ok(None) };
        let unstored = |error: StoreError| HandleError::from_error(&error);
        let noted = self.store.noted_label(path.to_string()).await.map_err(unstored)?;
        if noted.is_some_and(|(label, hash)| label >= voice && hash.is_none()) {
            return Ok(None);
        }
        let bytes = self.worklog_hash(&path).await;
        let label = noted.map_or(voice, |(label, _)| label.meet(voice));
        self.store.label_path(path.to_string(), label).await.map_err(unstored)?;
        Ok(Some(WorklogBefore { path, noted, bytes }))
    }

    /// Takes that back after a command that has left the worklog as it was.
    pub(super) async fn settle_worklog(
        &self,
        before: Option<WorklogBefore>,
    ) -> Result<(), HandleError> {
        let Some(WorklogBefore { path, noted, bytes }) = before else { return Ok(()) };
        if self.worklog_hash(&path).await != bytes {
            return Ok(());
        }
        let done = match noted {
            Some((label, hash)) => self.store.label_bytes(path.to_string(), label, hash).await,
            None => self.store.clear_path(path.to_string()).await,
        };
        done.map_err(|error| HandleError::from_error(&error))
    }

    async fn worklog_hash(&self, path: &WorkspacePath) -> Option<Hash> {
        // silent-ok: what is not there has no bytes.
        let (bytes, total) = self.backend.read(path, worklog::BYTES_MAX).await.ok()?;
        // Of one that is not read whole its size says something, too.
        Some(Hash::of(&[bytes.as_slice(), &total.to_be_bytes()].concat()))
    }
}

/// The worklog before a command.
pub(super) struct WorklogBefore {
    path: WorkspacePath,
    /// Label and hash that were noted for it.
    noted: Option<(Label, Option<Hash>)>,
    bytes: Option<Hash>,
}

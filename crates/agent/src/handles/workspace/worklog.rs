//! Whose words the worklog holds, and what it says.
//!
//! Tools for files say what they write; what a command wrote is found out when it has ended. A
//! worklog that somebody who heard others has changed must never be taken for the automaton's own.

use automaton_core::trust::{Label, Labelled};
use automaton_sandbox::WorkspacePath;
use automaton_store::{Hash, StoreError};
use automaton_tools::HandleError;
use automaton_tools::context::CallProvenance;

use super::Workspace;
use crate::worklog;

impl Workspace {
    /// What the worklog says; nothing where there is none, or it cannot be read now.
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

    /// The bytes of the worklog, by their hash, before a command runs for who has heard others.
    pub(super) async fn worklog_before(
        &self,
        behalf: Option<CallProvenance>,
    ) -> Option<WorklogBefore> {
        let behalf = behalf?;
        let voice = behalf.input.meet(behalf.heard);
        let path = worklog::path().filter(|_| voice > Label::Tool)?;
        let bytes = self.worklog_hash(&path).await;
        Some(WorklogBefore { path, voice, bytes })
    }

    /// Notes that such a command has changed it, or left something running that may.
    pub(super) async fn settle_worklog(
        &self,
        before: Option<WorklogBefore>,
        is_over: bool,
    ) -> Result<(), HandleError> {
        let Some(WorklogBefore { path, voice, bytes }) = before else { return Ok(()) };
        if is_over && self.worklog_hash(&path).await == bytes {
            return Ok(());
        }
        let unstored = |error: StoreError| HandleError::of(&error);
        let name = path.to_string();
        let known = self.store.path_label(name.clone()).await.map_err(unstored)?;
        let label = voice.meet(known.unwrap_or(voice));
        self.store.label_path(name, label).await.map_err(unstored)
    }

    async fn worklog_hash(&self, path: &WorkspacePath) -> Option<Hash> {
        // silent-ok: what is not there has no bytes.
        let (bytes, _) = self.backend.read(path, worklog::BYTES_MAX).await.ok()?;
        Some(Hash::of(&bytes))
    }
}

/// The worklog before a command.
pub(super) struct WorklogBefore {
    path: WorkspacePath,
    /// The least trusted of what the command's turn has heard.
    voice: Label,
    bytes: Option<Hash>,
}

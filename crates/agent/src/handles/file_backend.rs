//! Place of the workspace's files: a folder here, or a rented machine.
//!
//! Which of the two is settled when the automaton starts, and the other is never asked in
//! its place. Labels are not known here.

use std::io::Read as _;
use std::sync::Arc;

use automaton_sandbox::{
    FolderEntry, FsError, LineRange, LinesRead, ListOptions, Listing, WorkspaceDir, WorkspacePath,
    read_lines,
};
use automaton_tools::HandleError;
use tokio::task;

use super::rented_machine::RentedMachine;
use super::workspace::broken;

/// The largest file that a tool may write, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Entries of a folder of which old ones are taken away.
const PRUNED_MAX: usize = 20_000;
/// Message for a failed read; the file was already in memory.
const UNREAD: &str = "the reading of a file broke down";

/// The place of the files.
pub(super) enum FileBackend {
    /// A folder of this machine.
    Here(Arc<WorkspaceDir>),
    /// A machine, or why it cannot be asked.
    There(Box<Result<RentedMachine, HandleError>>),
}

/// Does something with the folder, off the runtime's threads.
async fn beneath<T: Send + 'static>(
    files: &Arc<WorkspaceDir>,
    what: &str,
    work: impl FnOnce(&WorkspaceDir) -> Result<T, FsError> + Send + 'static,
) -> Result<T, HandleError> {
    let files = Arc::clone(files);
    let done = task::spawn_blocking(move || work(&files)).await;
    let done = done.map_err(|_| broken(&format!("the {what} broke down")))?;
    done.map_err(|error| HandleError::from_error(&error))
}

impl FileBackend {
    /// The machine, where it is one.
    pub(super) fn rented(&self) -> Result<Option<&RentedMachine>, HandleError> {
        match self {
            Self::Here(_) => Ok(None),
            Self::There(rented) => (**rented).as_ref().map(Some).map_err(Clone::clone),
        }
    }

    /// The beginning of a file, and the size of the whole.
    pub(super) async fn read(
        &self,
        path: &WorkspacePath,
        bytes_max: u64,
    ) -> Result<(Vec<u8>, u64), HandleError> {
        let files = match self {
            Self::Here(files) => files,
            Self::There(rented) => return (**rented).clone()?.read(path, bytes_max).await,
        };
        let path = path.clone();
        let read = beneath(files, "reading of a file", move |files| files.read(&path, bytes_max));
        read.await.map(|read| (read.bytes, read.total))
    }

    /// Some lines of a file.
    pub(super) async fn read_lines(
        &self,
        path: &WorkspacePath,
        wanted: LineRange,
    ) -> Result<LinesRead, HandleError> {
        let files = match self {
            Self::Here(files) => files,
            Self::There(rented) => {
                let (bytes, _) = (**rented).clone()?.read(path, FILE_BYTES_MAX).await?;
                return read_lines(bytes.as_slice(), wanted).map_err(|_| broken(UNREAD));
            }
        };
        let path = path.clone();
        let read = move |files: &WorkspaceDir| {
            let (file, total) = files.open_file(&path)?;
            // It may grow meanwhile, without end.
            read_lines(file.take(total), wanted).map_err(|source| FsError::Read { path, source })
        };
        beneath(files, "reading of a file", read).await
    }

    /// Takes away what `choose` names of a folder and those below it, which it gives; nothing
    /// on a machine, which is its own.
    pub(super) async fn prune(
        &self,
        folder: WorkspacePath,
        choose: impl FnOnce(Vec<FolderEntry>) -> Vec<WorkspacePath> + Send + 'static,
    ) -> Result<Vec<WorkspacePath>, HandleError> {
        let Self::Here(files) = self else { return Ok(Vec::new()) };
        let reach = ListOptions { depth: 2, entries_max: PRUNED_MAX, is_closed: |_, _| false };
        let prune = move |files: &WorkspaceDir| {
            let gone = choose(files.list(&folder, reach)?.entries);
            gone.iter().try_for_each(|path| files.remove(path))?;
            Ok(gone)
        };
        beneath(files, "removal of old files", prune).await
    }

    /// Lists a folder.
    pub(super) async fn list(
        &self,
        path: &WorkspacePath,
        reach: ListOptions,
    ) -> Result<Listing, HandleError> {
        let files = match self {
            Self::Here(files) => files,
            Self::There(rented) => return (**rented).clone()?.list(path, reach).await,
        };
        let path = path.clone();
        beneath(files, "listing of a folder", move |files| files.list(&path, reach)).await
    }

    /// Replaces a file.
    pub(super) async fn write(
        &self,
        path: &WorkspacePath,
        bytes: &[u8],
    ) -> Result<(), HandleError> {
        let files = match self {
            Self::Here(files) => files,
            Self::There(rented) => return (**rented).clone()?.write(path, bytes).await,
        };
        let path = path.clone();
        let bytes = bytes.to_vec();
        let write = move |files: &WorkspaceDir| files.write(&path, &bytes, FILE_BYTES_MAX);
        beneath(files, "writing of a file", write).await
    }
}

//! Files of a container, read and written by programs inside.
//!
//! The paths are those of every machine, and no link is followed: what is swapped on the way is
//! the machine's own. Must never hold more of a file than a piece.

use std::time::Duration;

use automaton_core::id::MachineId;
use futures_util::{StreamExt as _, stream};
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use super::super::disk::{display_path, failed, resolve_path};
use super::super::driver::{DriverError, DriverResult, FileRead, FileWrite, FolderListing, Pieces};
use super::super::inside::{LIST_BYTES_MAX, entries};
use super::PodmanDriver;
use super::run::AttachedCommand;

/// The longest time for one piece of a file.
const PIECE_WITHIN: Duration = Duration::from_secs(60);

/// A path as the machine sees it, a program that is about it, and what that answers.
type FileCommand = (String, AttachedCommand, String);

impl PodmanDriver {
    /// Starts a program that is about one path.
    async fn about(&self, id: MachineId, verb: &str, path: &str) -> DriverResult<FileCommand> {
        let (path, inside) = resolve_path(path)?;
        let words: Vec<&str> = [verb, inside].into_iter().chain(path.names()).collect();
        let mut program = self.attach(id, &words).await?;
        let shown = display_path(&path, inside);
        let answer = program.answer(&shown).await?;
        Ok((shown, program, answer))
    }

    pub(super) async fn read_file(&self, id: MachineId, path: String) -> DriverResult<FileRead> {
        let (_, cat, size) = self.about(id, "read", &path).await?;
        let bytes = size.parse().map_err(failed("read the file"))?;
        Ok(FileRead { bytes, pieces: pieces(cat) })
    }

    pub(super) async fn list_folder(
        &self,
        id: MachineId,
        path: String,
    ) -> DriverResult<FolderListing> {
        let (path, find, _) = self.about(id, "list", &path).await?;
        let mut text = Vec::new();
        let mut found = pieces(find);
        while text.len() < LIST_BYTES_MAX
            && let Some(piece) = found.next().await
        {
            text.extend_from_slice(&piece?);
        }
        let (files, is_cut) = entries(&String::from_utf8_lossy(&text), &path);
        Ok(FolderListing { path, files, is_cut: is_cut || text.len() >= LIST_BYTES_MAX })
    }

    pub(super) async fn write_file(
        &self,
        id: MachineId,
        file: FileWrite,
    ) -> DriverResult<(String, u64)> {
        let (path, mut draft, _) = self.about(id, "write", &file.path).await?;
        let filled = fill(&mut draft, file.pieces, file.bytes_max).await;
        let size = filled.as_ref().map(u64::to_string).unwrap_or_default();
        let kept = self.ask(id, &["keep", &path, &size], &path).await;
        // What was not filled goes, and why not is what matters.
        let sum = filled?;
        kept.map(|()| (path, sum))
    }
}

/// Gives a program all pieces; their size.
async fn fill(
    draft: &mut AttachedCommand,
    mut pieces: Pieces,
    bytes_max: u64,
) -> DriverResult<u64> {
    let what = "write the file";
    let mut sum = 0_u64;
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        sum = sum.saturating_add(piece.len() as u64);
        if sum > bytes_max {
            let why = format!("the disk has room for {bytes_max} bytes, and it is more");
            return Err(DriverError::Full(why));
        }
        let written = timeout(PIECE_WITHIN, draft.input.write_all(&piece)).await;
        written.map_err(failed(what))?.map_err(failed(what))?;
    }
    draft.input.shutdown().await.map_err(failed(what))?;
    draft.answer("the file").await?;
    Ok(sum)
}

fn pieces(program: AttachedCommand) -> Pieces {
    Box::pin(stream::try_unfold(program, async |mut program: AttachedCommand| {
        let next = timeout(PIECE_WITHIN, program.next()).await;
        Ok(next.map_err(failed("read from the machine"))??.map(|piece| (piece, program)))
    }))
}

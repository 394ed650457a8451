//! Files of a container, read and written by programs inside.
//!
//! The paths are those of every machine, and no link is followed: what is swapped on the way is
//! the machine's own. Must never hold more of a file than a piece.

use std::time::Duration;

use automaton_core::id::MachineId;
use automaton_core::wire::cloud::{FileEntry, FileEntryKind};
use futures_util::{StreamExt as _, stream};
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use super::super::disk::{failed, place, shown};
use super::super::driver::{
    DriverError, DriverResult, ENTRIES_MAX, FileRead, FileWrite, FolderListing, Pieces,
};
use super::PodmanDriver;
use super::run::AttachedCommand;

/// How long one piece of a file may take.
const PIECE_WITHIN: Duration = Duration::from_secs(60);
/// Bytes of what is listed that are read: so many entries with the longest names.
const LIST_BYTES_MAX: usize = ENTRIES_MAX * 300;

/// A path as the machine sees it, a program that is about it, and what that answers.
type FileCommand = (String, AttachedCommand, String);

impl PodmanDriver {
    /// Starts a program that is about one path.
    async fn about(&self, id: MachineId, verb: &str, path: &str) -> DriverResult<FileCommand> {
        let (path, inside) = place(path)?;
        let words: Vec<&str> = [verb, inside].into_iter().chain(path.names()).collect();
        let mut program = self.attach(id, &words).await?;
        let shown = shown(&path, inside);
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
        let (mut text, mut found) = (Vec::new(), pieces(find));
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

/// What is in a folder, by name, and whether there is more. No name has a slash in it, so a
/// slash before the end of a line ends a name.
fn entries(text: &str, folder: &str) -> (Vec<FileEntry>, bool) {
    let read = |record: &str| {
        let (status, name) = record.split_once(" ./")?;
        let (mode, size) = status.split_once(' ')?;
        let kind = match u32::from_str_radix(mode, 16).ok()? & 0o170_000 {
            0o100_000 => FileEntryKind::File,
            0o040_000 => FileEntryKind::Directory,
            0o120_000 => FileEntryKind::Link,
            _ => FileEntryKind::Special,
        };
        let path = format!("{folder}/{name}");
        Some(FileEntry { name: name.to_owned(), path, kind, size: size.parse().ok()? })
    };
    let mut records = text.split("/\n").filter_map(read);
    let mut files: Vec<FileEntry> = records.by_ref().take(ENTRIES_MAX).collect();
    files.sort_by(|one, other| one.name.cmp(&other.name));
    (files, records.next().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_in_order_whatever_names_have_in_them() {
        let text =
            "81a4 3 ./b c/\n41ed 4096 ./a\nx/\na1ff 1 ./l/\n11b4 0 ./p/\nx ./y/\n81a4 -1 ./z";
        let (files, is_cut) = entries(text, "/root");
        let told: Vec<_> = files.iter().map(|it| (it.name.as_str(), it.kind, it.size)).collect();
        let expected = [
            ("a\nx", FileEntryKind::Directory, 4096),
            ("b c", FileEntryKind::File, 3),
            ("l", FileEntryKind::Link, 1),
            ("p", FileEntryKind::Special, 0),
        ];
        assert_eq!((told, is_cut), (expected.to_vec(), false));
        assert_eq!(files[1].path, "/root/b c");
        let many: String = (0..=ENTRIES_MAX).map(|n| format!("81a4 0 ./{n}/\n")).collect();
        let (files, is_cut) = entries(&many, "/root");
        assert_eq!((files.len(), is_cut), (ENTRIES_MAX, true));
    }
}

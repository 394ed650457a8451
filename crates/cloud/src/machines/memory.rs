//! Files below the `/tmp` of a machine that is a sandbox. They are in its memory and in none of
//! our folders, so programs inside read and write them. Must never be larger than a request.

use std::sync::Arc;
use std::time::Duration;

use automaton_core::error::chain;
use automaton_sandbox::{Capture, LaunchError, Program, SessionProgram, WorkspacePath};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};

use super::disk::{TMP, display_path};
use super::driver::{DriverError, DriverResult, FileRead, FolderListing, Pieces};
use super::inside::{INSIDE, LIST_BYTES_MAX, answered, entries};
use super::process::RunningMachine;

/// The largest file, in bytes: all of it is held here on its way.
const BYTES_MAX: usize = 4 << 20;
/// Files of one machine that are on their way at once.
pub(super) const AT_ONCE_MAX: usize = 4;
/// The longest time for a program.
const WITHIN: Duration = Duration::from_secs(60);

/// The files that a running machine has in memory.
pub(super) struct FilesInMemory(pub(super) Arc<RunningMachine>);

impl FilesInMemory {
    pub(super) fn read(&self, path: &WorkspacePath) -> DriverResult<FileRead> {
        let (size, content) = self.about("read", path, Vec::new(), BYTES_MAX)?;
        if size.parse() != Ok(content.len()) {
            let why =
                format!("has more than {} MiB, or changes: copy it to /root", BYTES_MAX >> 20);
            return Err(DriverError::Path(format!("{} {why}", display_path(path, TMP))));
        }
        let bytes = content.len() as u64;
        Ok(FileRead { bytes, pieces: Box::pin(stream::iter([Ok(Bytes::from(content))])) })
    }

    pub(super) fn list(&self, path: &WorkspacePath) -> DriverResult<FolderListing> {
        let (_, found) = self.about("list", path, Vec::new(), LIST_BYTES_MAX)?;
        let path = display_path(path, TMP);
        let (files, is_cut) = entries(&String::from_utf8_lossy(&found), &path);
        Ok(FolderListing { path, files, is_cut: is_cut || found.len() >= LIST_BYTES_MAX })
    }

    /// Writes a whole file, all or nothing; its size.
    pub(super) fn write(&self, path: &WorkspacePath, content: Vec<u8>) -> DriverResult<u64> {
        let bytes = content.len();
        let (_, written) = self.about("write", path, content, BYTES_MAX)?;
        let shown = display_path(path, TMP);
        let size = bytes.to_string();
        let is_whole = written == b"ok\n";
        let keep = ["keep", &shown, if is_whole { &size } else { "" }];
        self.ask(&keep, Vec::new(), BYTES_MAX, &shown)?;
        if !is_whole {
            return Err(DriverError::Full(format!("{TMP} has no room for {bytes} bytes")));
        }
        Ok(bytes as u64)
    }

    fn about(
        &self,
        verb: &str,
        path: &WorkspacePath,
        input: Vec<u8>,
        bytes_max: usize,
    ) -> DriverResult<(String, Vec<u8>)> {
        let words: Vec<&str> = [verb, TMP].into_iter().chain(path.names()).collect();
        self.ask(&words, input, bytes_max, &display_path(path, TMP))
    }

    /// Runs a program to its end: what it answers, and what it writes after that.
    fn ask(
        &self,
        words: &[&str],
        input: Vec<u8>,
        bytes_max: usize,
        shown: &str,
    ) -> DriverResult<(String, Vec<u8>)> {
        let failed = |error: LaunchError| DriverError::Failed {
            what: "run a program in the machine",
            why: chain(&error).to_string(),
        };
        let _turn = self.0.files.try_acquire().map_err(|_| DriverError::Busy)?;
        let words = ["sh", "-c", INSIDE, "sh"].iter().chain(words);
        let program = Program::Argv(words.map(|&word| word.to_owned()).collect());
        let mut task = SessionProgram { stdin: input, ..SessionProgram::new(program) };
        task.wall = Some(WITHIN);
        // What is more is left out in the middle, and so not as long as was said.
        task.capture = Capture { stdout_bytes_max: bytes_max + 64, ..Capture::default() };
        let outcome = self.0.session.run(&task).map_err(failed)?.wait().map_err(failed)?;
        let mut told = [outcome.stdout.head, outcome.stdout.tail].concat();
        let end = told.iter().position(|byte| *byte == b'\n').unwrap_or(told.len());
        let rest = told.split_off((end + 1).min(told.len()));
        let line = String::from_utf8_lossy(&told);
        let elsewhere = || outcome.stderr.text_lossy().trim().to_owned();
        Ok((answered(line.trim_end(), shown, elsewhere)?, rest))
    }
}

/// All pieces of a file, if there is room for them.
pub(super) async fn collect_pieces(mut pieces: Pieces, bytes_max: u64) -> DriverResult<Vec<u8>> {
    let bytes_max = bytes_max.min(BYTES_MAX as u64);
    let mut whole = Vec::new();
    while let Some(piece) = pieces.next().await {
        whole.extend_from_slice(&piece?);
        if whole.len() as u64 > bytes_max {
            let why = format!("{TMP} takes files of {bytes_max} bytes here, and it is more");
            return Err(DriverError::Full(why));
        }
    }
    Ok(whole)
}

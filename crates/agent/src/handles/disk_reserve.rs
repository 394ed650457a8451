//! Room on the workspace's disk that no command takes, since everything else on the machine
//! stands still without it. Looks at what is free, which costs nothing however many files
//! there are; must never keep a command from beginning, which may be the one that makes room.

use std::path::{Path, PathBuf};
use std::time::Duration;

use automaton_sandbox::{CapturedOutput, fs};
use tokio::time::sleep;

/// Bytes that are always left free, if there were more.
const LEFT_MIN: u64 = 512 << 20;

/// Interval of checks while a command runs. A fast disk fills half of the reserve in this time.
const LOOK: Duration = Duration::from_millis(100);

/// Free space that must be left while a command runs.
#[derive(Debug, Clone)]
pub(super) struct DiskReserve {
    folder: PathBuf,
    left_min: u64,
}

impl DiskReserve {
    /// For what begins now: [`LEFT_MIN`], or half of what there is where that is less.
    pub(super) fn begin(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), left_min: LEFT_MIN.min(free(folder) / 2) }
    }

    /// Returns the reason to end running processes, if the reserve is exceeded.
    pub(super) fn exceeded(&self) -> Option<String> {
        let left = free(&self.folder);
        let note = || format!("[ended: {} MB are left on the disk]\n", left / 1_000_000);
        (left < self.left_min).then(note)
    }

    /// Waits until something has to end, and says why.
    pub(super) async fn wait(&self) -> String {
        loop {
            sleep(LOOK).await;
            if let Some(note) = self.exceeded() {
                return note;
            }
        }
    }
}

/// Returns the free bytes.
fn free(folder: &Path) -> u64 {
    // silent-ok: where the system does not say, nothing can be held to it.
    fs::disk_space(folder).map_or(u64::MAX, |(free, _)| free)
}

/// Adds to an output why there is no more of it.
pub(super) fn note_end(output: &mut CapturedOutput, note: &str) {
    let end = if output.omitted_bytes == 0 { &mut output.head } else { &mut output.tail };
    if end.last().is_some_and(|last| *last != b'\n') {
        end.push(b'\n');
    }
    end.extend_from_slice(note.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_little_is_left_and_never_more_than_there_was() {
        let folder = Path::new("/proc");
        assert_eq!(free(folder), 0);
        let reserve = DiskReserve::begin(folder);
        assert_eq!(reserve.exceeded(), None, "what was full before is nobody's doing");
        let taken = DiskReserve { left_min: 1, ..reserve };
        assert_eq!(taken.exceeded().as_deref(), Some("[ended: 0 MB are left on the disk]\n"));
    }

    #[test]
    fn the_end_is_told_behind_what_was_kept() {
        let mut whole = CapturedOutput { head: b"a".to_vec(), ..CapturedOutput::default() };
        note_end(&mut whole, "[ended]\n");
        assert_eq!(whole.text_lossy(), "a\n[ended]\n");
        whole.omitted_bytes = 9;
        whole.tail = b"z\n".to_vec();
        note_end(&mut whole, "[again]\n");
        assert!(whole.text_lossy().ends_with("z\n[again]\n"));
    }
}

//! A small program that lies beside a large one and does a part of what that does: it
//! starts in a fraction of the time.
//!
//! It is opened once and started through what was opened: what lies there later is never
//! started. It must be of the same build, and nobody but root and this user may be able to
//! write to it. Where any of that does not hold the large one does its work, so there must
//! never be a difference but in time.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::effective_user;

/// The name and the description of a note of ELF: whose it is, and which build.
const MARK: &[u8] = concat!("Automaton\0\0\0", env!("AUTOMATON_BUILD")).as_bytes();
const NAME_BYTES: u32 = 10;
const ID_BYTES: u32 = 16;

#[repr(C)]
struct BuildNote([u32; 3], [u8; MARK.len()]);

#[used]
// SAFETY: a section of data that no code relies on.
#[unsafe(link_section = ".note.automaton")]
static NOTE: BuildNote = BuildNote(
    [NAME_BYTES, ID_BYTES, 1],
    match MARK.first_chunk() {
        Some(mark) => *mark,
        None => [0; MARK.len()],
    },
);

/// Linkers put the notes among the first bytes of a program.
const HEAD_BYTES: u64 = 8 << 10;

/// A program of ours: a small one, or the large one that it lies beside.
#[derive(Debug, Clone)]
pub struct OwnProgram {
    /// What is started.
    path: PathBuf,
    /// The small one as it was found, or why it is not used.
    small: Result<Arc<OwnedFd>, String>,
}

impl OwnProgram {
    /// The program of this name in the folder of this executable, or else the executable.
    #[must_use]
    pub fn beside(executable: PathBuf, name: &str) -> Self {
        let path = executable.with_file_name(name);
        match open(&path) {
            Ok(small) => Self { path, small: Ok(Arc::new(small)) },
            Err(why) => Self { path: executable, small: Err(why) },
        }
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Why it is not the small one, with what to do about it.
    #[must_use]
    pub fn why_large(&self) -> Option<&str> {
        self.small.as_ref().err().map(String::as_str)
    }

    pub(super) fn image(&self) -> Option<Arc<OwnedFd>> {
        self.small.as_ref().ok().cloned()
    }
}

fn open(path: &Path) -> Result<OwnedFd, String> {
    let shown = path.display();
    // A relative one would lie wherever this process stands.
    if !path.is_absolute() {
        return Err(format!("{shown} is not a full path"));
    }
    let look = || {
        // What lies there may be a pipe, which is not waited for.
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        let about = file.metadata()?;
        let mut head = Vec::new();
        if about.is_file() {
            (&file).take(HEAD_BYTES).read_to_end(&mut head)?;
        }
        Ok((file, about, head))
    };
    let (file, about, head): (File, _, _) = look().map_err(|error: io::Error| {
        format!("cannot open {shown}: {error}; build it: cargo build --release --package automaton")
    })?;
    if !head.windows(MARK.len()).any(|bytes| bytes == MARK) {
        return Err(format!(
            "{shown} is not of the same build; build both anew: cargo build --release --package automaton"
        ));
    }
    if ![0, effective_user()].contains(&about.uid()) || about.mode() & 0o022 != 0 {
        return Err(format!(
            "others can write to {shown}; make it yours or root's alone: chown and chmod go-w"
        ));
    }
    if about.mode() & 0o100 == 0 {
        return Err(format!("{shown} cannot be executed: chmod +x"));
    }
    Ok(file.into())
}

//! A small program beside a large one that performs a part of its work and starts much faster.
//!
//! It is opened once and started through that descriptor, so a file that is placed there later is
//! never started. It must be of the same build, and only root and this user may be able to write
//! to it. Otherwise the large program does the work. The only difference must be speed.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::effective_user;

/// The name and the content of an ELF note: our name and the build id.
const MARK: &[u8] = concat!("Automaton\0\0\0", env!("AUTOMATON_BUILD")).as_bytes();
const NAME_BYTES: u32 = 10;
const ID_BYTES: u32 = 16;

#[repr(C)]
struct BuildNote([u32; 3], [u8; MARK.len()]);

#[used]
// SAFETY: no code relies on this data section.
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

/// One of our programs: a small one, or the large one beside it.
#[derive(Debug, Clone)]
pub struct OwnProgram {
    /// The started program.
    path: PathBuf,
    /// The opened small program, or the reason why it is not used.
    small: Result<Arc<OwnedFd>, String>,
}

impl OwnProgram {
    /// Returns the program of this name in the folder of the executable, or else the executable.
    #[must_use]
    pub fn beside(executable: PathBuf, name: &str) -> Self {
        let path = executable.with_file_name(name);
        match open(&path) {
            Ok(small) => Self { path, small: Ok(Arc::new(small)) },
            Err(why) => Self { path: executable, small: Err(why) },
        }
    }

    /// Returns the program's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the reason why the small program is not used, with a remedy.
    #[must_use]
    pub fn fallback_reason(&self) -> Option<&str> {
        self.small.as_ref().err().map(String::as_str)
    }

    pub(super) fn image(&self) -> Option<Arc<OwnedFd>> {
        self.small.as_ref().ok().cloned()
    }
}

fn open(path: &Path) -> Result<OwnedFd, String> {
    let shown = path.display();
    // A relative path would depend on the working directory.
    if !path.is_absolute() {
        return Err(format!("{shown} is not a full path"));
    }
    let look = || {
        // The file may be a pipe, which must not block.
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

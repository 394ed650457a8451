//! Where the passphrase comes from.
//!
//! It must never come from an argument or the environment: others can read
//! those.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use automaton_core::error::Classified;
use automaton_core::secret::Secret;
use zeroize::Zeroizing;

/// The longest passphrase, in bytes.
const PASSPHRASE_BYTES_MAX: usize = 4096;

/// There is no passphrase.
#[derive(Debug, thiserror::Error, Classified)]
#[error("cannot take the passphrase from {from}")]
#[class(User)]
pub struct PassphraseError {
    from: String,
    source: io::Error,
}

/// Where the passphrase is.
#[derive(Debug)]
pub enum PassphraseSource {
    /// Written to an inherited descriptor, up to its end or the first line break.
    Descriptor(OwnedFd),
    /// In a file that only its owner can read (0600).
    File(PathBuf),
    /// In a credential of systemd. Who may read it is said by an access control list,
    /// which shows in the bits of a group; others have none.
    Credential(PathBuf),
    /// Typed at the terminal.
    Terminal,
    /// Typed at the terminal, for a backup that exists.
    BackupTerminal,
    /// Typed twice at the terminal, for a backup that is made: nobody could tell later that
    /// it was mistyped.
    NewBackupTerminal,
}

impl PassphraseSource {
    /// Reads it, without its line break.
    ///
    /// # Errors
    /// When it cannot be read, is unfit, or others could read its file.
    pub fn read(self) -> Result<Secret, PassphraseError> {
        let (from, read) = match self {
            Self::Descriptor(descriptor) => {
                ("the inherited descriptor".to_owned(), take(File::from(descriptor)))
            }
            Self::File(path) => (path.display().to_string(), take_closed(&path, 0o077)),
            Self::Credential(path) => (path.display().to_string(), take_closed(&path, 0o007)),
            Self::Terminal => {
                ("the terminal".to_owned(), typed("Passphrase of the automaton's key: "))
            }
            Self::BackupTerminal => {
                ("the terminal".to_owned(), typed("Passphrase of the backup: "))
            }
            Self::NewBackupTerminal => ("the terminal".to_owned(), typed_twice()),
        };
        read.and_then(|bytes| fit(&bytes)).map_err(|source| PassphraseError { from, source })
    }
}

fn typed(prompt: &str) -> io::Result<Zeroizing<Vec<u8>>> {
    rpassword::prompt_password(prompt).map(|text| Zeroizing::new(text.into_bytes()))
}

fn typed_twice() -> io::Result<Zeroizing<Vec<u8>>> {
    let first = typed("New passphrase of the backup: ")?;
    if *first == *typed("The same again: ")? {
        return Ok(first);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "the two were not the same"))
}

/// Reads a file that has none of these bits of its mode.
fn take_closed(path: &Path, open: u32) -> io::Result<Zeroizing<Vec<u8>>> {
    let file = File::open(path)?;
    let mode = file.metadata()?.mode() & 0o777;
    if mode & open != 0 {
        let reason = format!("others can read it (mode {mode:03o}); run `chmod 600` on it");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    take(file)
}

fn take(file: File) -> io::Result<Zeroizing<Vec<u8>>> {
    // Room for all of it at once: a buffer that grows leaves copies behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(2 * PASSPHRASE_BYTES_MAX));
    file.take(PASSPHRASE_BYTES_MAX as u64 + 2).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn fit(bytes: &[u8]) -> io::Result<Secret> {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match std::str::from_utf8(line) {
        Ok(text) if (1..=PASSPHRASE_BYTES_MAX).contains(&text.len()) => {
            Ok(Secret::new(text.to_owned()))
        }
        Ok(_) | Err(_) => {
            let reason = format!("it is not 1 to {PASSPHRASE_BYTES_MAX} bytes of UTF-8");
            Err(io::Error::new(io::ErrorKind::InvalidData, reason))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn from_file(content: &[u8], mode: u32) -> Result<Secret, PassphraseError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("passphrase");
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        PassphraseSource::File(path).read()
    }

    #[test]
    fn the_first_line_counts() {
        for content in ["tēst word", "tēst word\n", "tēst word\r\n", "tēst word\nmore"] {
            assert_eq!(from_file(content.as_bytes(), 0o600).unwrap().reveal(), "tēst word");
        }
        let longest = "x".repeat(4096);
        assert_eq!(from_file(longest.as_bytes(), 0o400).unwrap().reveal(), longest);
    }

    #[test]
    fn files_that_others_can_read_are_refused() {
        for mode in [0o640, 0o604, 0o620] {
            let error = from_file(b"secret", mode).unwrap_err();
            assert_eq!(error.source.kind(), io::ErrorKind::PermissionDenied, "{error}");
        }
    }

    #[test]
    fn a_credential_is_read_as_systemd_gives_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("passphrase");
        fs::write(&path, "correct horse\n").unwrap();
        for (mode, is_closed) in [(0o400, true), (0o440, true), (0o444, false), (0o604, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let read = PassphraseSource::Credential(path.clone()).read();
            assert_eq!(read.is_ok_and(|it| it.reveal() == "correct horse"), is_closed, "{mode:o}");
        }
    }

    #[test]
    fn what_is_no_passphrase_is_refused() {
        for content in [&b""[..], b"\n", b"\xff\xfe", &[b'x'; 4097], &[b'x'; 9000]] {
            let error = from_file(content, 0o600).unwrap_err();
            assert_eq!(error.source.kind(), io::ErrorKind::InvalidData, "{error}");
            assert!(!automaton_core::error::chain(&error).to_string().contains("xxx"));
        }
        let missing = PassphraseSource::File("/nonexistent/passphrase".into()).read();
        assert_eq!(missing.unwrap_err().source.kind(), io::ErrorKind::NotFound);
    }
}

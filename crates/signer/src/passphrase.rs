//! Sources of the passphrase.
//!
//! It must never come from an argument or the environment, since others can read those.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use automaton_core::error::Classified;
use automaton_core::file_text::{self, TextDefect};
use automaton_core::secret::Secret;
use automaton_sandbox::process::effective_user;
use zeroize::Zeroizing;

/// The longest passphrase, in bytes.
const PASSPHRASE_BYTES_MAX: usize = 4096;

/// The fewest characters of a passphrase for a new key or backup. A copy of the file can be
/// guessed at without limit, and each guess costs about a second.
pub(crate) const NEW_PASSPHRASE_CHARS_MIN: usize = 12;

/// The passphrase cannot be read.
#[derive(Debug, thiserror::Error, Classified)]
#[error("cannot take the passphrase from {from}")]
#[class(User)]
pub struct PassphraseError {
    from: String,
    source: io::Error,
}

/// A source of the passphrase.
#[derive(Debug)]
pub enum PassphraseSource {
    /// An inherited descriptor, read up to its end or the first line break.
    Descriptor(OwnedFd),
    /// A file of this user that only its owner can read (0600).
    File(PathBuf),
    /// A credential of systemd. Its access control list shows in the group bits of the mode.
    /// Others must have no access.
    Credential(PathBuf),
    /// The terminal.
    Terminal,
    /// The terminal, asked twice, for a new key. A typing error could not be detected later.
    NewTerminal,
    /// The terminal, for an existing backup.
    BackupTerminal,
    /// The terminal, asked twice, for a new backup. A typing error could not be detected later.
    NewBackupTerminal,
}

impl PassphraseSource {
    /// Reads the passphrase for a new key or backup, without its line break.
    ///
    /// # Errors
    /// As [`PassphraseSource::read`], and if it has fewer than `NEW_PASSPHRASE_CHARS_MIN`
    /// characters.
    pub fn read_new(self) -> Result<Secret, PassphraseError> {
        let from = self.name();
        let secret = self.read()?;
        check_length(secret.reveal()).map_err(|source| PassphraseError { from, source })?;
        Ok(secret)
    }

    /// Reads the passphrase without its line break.
    ///
    /// # Errors
    /// Fails if it cannot be read, is not 1 to 4,096 bytes of UTF-8, or others could read its
    /// file.
    pub fn read(self) -> Result<Secret, PassphraseError> {
        let from = self.name();
        let read = match self {
            Self::Descriptor(descriptor) => read_bounded(File::from(descriptor)),
            Self::File(path) => read_private_file(&path, &[effective_user()], 0o077),
            // The system's manager owns credentials, or gives them to the service's user.
            Self::Credential(path) => read_private_file(&path, &[effective_user(), ROOT], 0o007),
            Self::Terminal => typed("Passphrase of the automaton's key: "),
            Self::BackupTerminal => typed("Passphrase of the backup: "),
            Self::NewTerminal => ask_twice("the automaton's key", typed),
            Self::NewBackupTerminal => ask_twice("the backup", typed),
        };
        read.and_then(|bytes| first_line(&bytes)).map_err(|source| PassphraseError { from, source })
    }

    /// Returns the source's name for errors.
    fn name(&self) -> String {
        match self {
            Self::Descriptor(_) => "the inherited descriptor".to_owned(),
            Self::File(path) | Self::Credential(path) => path.display().to_string(),
            Self::Terminal | Self::BackupTerminal | Self::NewTerminal | Self::NewBackupTerminal => {
                "the terminal".to_owned()
            }
        }
    }
}

/// The user id of root.
const ROOT: u32 = 0;

fn typed(prompt: &str) -> io::Result<Zeroizing<Vec<u8>>> {
    rpassword::prompt_password(prompt).map(|text| Zeroizing::new(text.into_bytes()))
}

/// Asks for a new passphrase twice. One that is too short is refused after the first time.
fn ask_twice(
    what: &str,
    mut ask: impl FnMut(&str) -> io::Result<Zeroizing<Vec<u8>>>,
) -> io::Result<Zeroizing<Vec<u8>>> {
    let first = ask(&format!(
        "New passphrase of {what} (at least {NEW_PASSPHRASE_CHARS_MIN} characters): "
    ))?;
    check_length(first_line(&first)?.reveal())?;
    if *first == *ask("The same again: ")? {
        return Ok(first);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "the two were not the same"))
}

/// Checks that a new passphrase is long enough.
fn check_length(text: &str) -> io::Result<()> {
    let count = text.chars().count();
    if count >= NEW_PASSPHRASE_CHARS_MIN {
        return Ok(());
    }
    let reason = format!(
        "it has {count} characters and needs at least {NEW_PASSPHRASE_CHARS_MIN}, since a copy of \
         the file can be guessed at for as long as somebody likes; take four or more random words"
    );
    Err(io::Error::new(io::ErrorKind::InvalidInput, reason))
}

/// Reads a file that belongs to one of `owners` and has none of the mode bits in `open`.
fn read_private_file(path: &Path, owners: &[u32], open: u32) -> io::Result<Zeroizing<Vec<u8>>> {
    let file = File::open(path)?;
    let about = file.metadata()?;
    if !owners.contains(&about.uid()) {
        let reason = format!(
            "the user {} owns it, who can read and change it; own it yourself, or name another file",
            about.uid()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    let mode = about.mode() & 0o777;
    if mode & open != 0 {
        let reason = format!("others can read it (mode {mode:03o}); run `chmod 600` on it");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    read_bounded(file)
}

fn read_bounded(file: File) -> io::Result<Zeroizing<Vec<u8>>> {
    // Allocated at once, since a buffer that grows leaves copies behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(2 * PASSPHRASE_BYTES_MAX));
    file.take(PASSPHRASE_BYTES_MAX as u64 + 2).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn first_line(bytes: &[u8]) -> io::Result<Secret> {
    let unfit = |defect| io::Error::new(io::ErrorKind::InvalidData, defect);
    let bytes = match file_text::decode(bytes) {
        Ok(text) => text.as_bytes(),
        Err(defect @ (TextDefect::Utf16 | TextDefect::Utf32)) => return Err(unfit(defect)),
        // Later lines may be binary and do not count.
        Err(TextDefect::Other(_)) => bytes,
    };
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
    fn a_file_of_another_user_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("passphrase");
        fs::write(&path, "correct horse battery").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(read_private_file(&path, &[effective_user()], 0o077).is_ok());
        let error = read_private_file(&path, &[effective_user() + 1], 0o077).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert!(error.to_string().contains("owns it"), "{error}");
    }

    #[test]
    fn a_new_passphrase_has_a_minimum_and_is_typed_twice_alike() {
        let file = |text: &str| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("passphrase");
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            PassphraseSource::File(path).read_new()
        };
        let short = file("elevenchars").unwrap_err();
        assert!(short.source.to_string().starts_with("it has 11 characters and needs at least 12"));
        assert_eq!(file("twelve chars\n").unwrap().reveal(), "twelve chars");
        assert!(file("äöüäöüäöüäö").is_err(), "characters count, not bytes");
        let typed = |answers: &[&str]| {
            let mut left = answers.iter();
            let mut asked = 0;
            let read = ask_twice("the automaton's key", |_| {
                asked += 1;
                Ok(Zeroizing::new(left.next().unwrap().as_bytes().to_vec()))
            });
            (read.map(|it| it.to_vec()).map_err(|error| error.to_string()), asked)
        };
        let (read, asked) = typed(&["correct horse", "correct horse"]);
        assert_eq!((read.unwrap(), asked), (b"correct horse".to_vec(), 2));
        let (read, asked) = typed(&["correct horse", "correct hrose"]);
        assert_eq!((read.unwrap_err().as_str(), asked), ("the two were not the same", 2));
        let (read, asked) = typed(&["abc", "abc"]);
        assert!(read.unwrap_err().starts_with("it has 3 characters") && asked == 1);
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_a_passphrase_and_utf_16_is_named() {
        let read = from_file(b"\xef\xbb\xbfcorrect horse\r\n", 0o600);
        assert_eq!(read.unwrap().reveal(), "correct horse");
        let wide: Vec<u8> = "correct".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let error = from_file(&wide, 0o600).unwrap_err();
        assert!(error.source.to_string().starts_with("it is UTF-16"), "{}", error.source);
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

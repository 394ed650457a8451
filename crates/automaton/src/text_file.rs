//! Text files that people write or bring.
//!
//! A byte order mark is skipped, and UTF-16 is named. Only where there is no entry of that name
//! is a file taken for missing: a link whose target is gone is an error.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use automaton_core::file_text;
use automaton_sandbox::process;

/// Opens a file that need not exist; `None` when there is no entry of that name.
///
/// # Errors
/// When there is an entry that cannot be opened, or a link leads nowhere.
pub(crate) fn open_optional(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if is_entry(path)? {
                Err(no_target())
            } else {
                Ok(None)
            }
        }
        Err(error) => Err(error),
    }
}

/// Returns whether there is a file of that name, so that one that is missing can be made.
///
/// # Errors
/// When a link leads nowhere, or the folder cannot be searched.
pub(crate) fn is_there(path: &Path) -> io::Result<bool> {
    match path.metadata() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if is_entry(path)? {
                Err(no_target())
            } else {
                Ok(false)
            }
        }
        Err(error) => Err(error),
    }
}

fn no_target() -> io::Error {
    io::Error::new(ErrorKind::NotFound, "it is a link, and there is no file at its target")
}

/// Returns whether there is an entry of that name, a link without a target included.
///
/// # Errors
/// When the folder cannot be searched.
pub(crate) fn is_entry(path: &Path) -> io::Result<bool> {
    match path.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Reads a file that need not exist; `None` when there is no entry of that name.
///
/// # Errors
/// As [`open_optional`] and [`read_open`].
pub(crate) fn read_optional(path: &Path, bytes_max: u64) -> io::Result<Option<String>> {
    open_optional(path)?.map(|file| read_open(file, bytes_max)).transpose()
}

/// Reads a file that has to exist.
///
/// # Errors
/// When it cannot be opened, and as [`read_open`].
pub(crate) fn read_required(path: &Path, bytes_max: u64) -> io::Result<String> {
    read_open(File::open(path)?, bytes_max)
}

/// Returns the error of a derived reader with the correction of an unknown key.
pub(crate) fn corrected(error: &dyn std::error::Error) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, file_text::with_correction(&error.to_string()))
}

/// Checks that a file with a secret is a file of this user, and that no other user can read it.
///
/// # Errors
/// The reason why the file is not taken, as the end of a sentence.
pub(crate) fn check_private(file: &File) -> io::Result<()> {
    let about = file.metadata()?;
    let refused = |why: String| Err(io::Error::new(ErrorKind::PermissionDenied, why));
    if !about.is_file() {
        return refused("it is no regular file".to_owned());
    }
    if about.uid() != process::effective_user() {
        return refused(format!("the user {} owns it, who can read and change it", about.uid()));
    }
    if about.mode() & 0o077 != 0 {
        return refused(format!("others can read it (mode {:03o})", about.mode() & 0o777));
    }
    Ok(())
}

/// Reads the text of an open file.
///
/// # Errors
/// When it cannot be read, is longer than `bytes_max`, or is no UTF-8 text.
pub(crate) fn read_open(file: impl io::Read, bytes_max: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    let read = file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(read).is_ok_and(|read| read > bytes_max) {
        return Err(io::Error::other(format!("it is larger than {bytes_max} bytes")));
    }
    file_text::decode_owned(&bytes).map_err(|defect| io::Error::new(ErrorKind::InvalidData, defect))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_a_name_without_an_entry_is_a_missing_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        assert_eq!(read_optional(&path, 9).unwrap(), None);
        assert!(!is_there(&path).unwrap());
        symlink(folder.path().join("gone"), &path).unwrap();
        let dangling = read_optional(&path, 9).unwrap_err();
        assert_eq!(dangling.to_string(), "it is a link, and there is no file at its target");
        assert_eq!(is_there(&path).unwrap_err().to_string(), dangling.to_string());
        fs::write(folder.path().join("gone"), "text").unwrap();
        assert!(is_there(&path).unwrap() && is_there(folder.path()).unwrap());
        assert_eq!(read_optional(&path, 9).unwrap().as_deref(), Some("text"));
        assert!(read_optional(folder.path(), 9).is_err(), "a folder is no file");
        assert!(read_optional(&path.join("below"), 9).is_err(), "a file has no entries");
        assert!(is_there(&path.join("below")).is_err(), "a file has no entries");
    }

    #[test]
    fn a_text_is_read_without_its_mark_and_no_longer_than_it_may_be() {
        let read = |bytes: &[u8], max| read_open(bytes, max).map_err(|error| error.to_string());
        assert_eq!(read(b"\xef\xbb\xbfab", 5).as_deref(), Ok("ab"));
        assert_eq!(read(b"abcdef", 5).unwrap_err(), "it is larger than 5 bytes");
        assert!(read(b"\xff\xfea\0", 9).unwrap_err().starts_with("it is UTF-16"));
    }
}

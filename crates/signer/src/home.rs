//! The signer's home: a directory that only its owner can enter, and the paths in it.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use automaton_core::error::Classified;
use automaton_sandbox::process::effective_user;

/// A directory cannot be used as a signer's home.
#[derive(Debug, thiserror::Error, Classified)]
#[error("cannot use the signer's home {}", path.display())]
#[class(Config)]
pub struct HomeError {
    path: PathBuf,
    source: io::Error,
}

/// The signer's home directory.
#[derive(Debug, Clone)]
pub struct SignerHome(PathBuf);

impl SignerHome {
    /// Opens the home at this path. Creates it with mode 0700 if it is missing.
    ///
    /// # Errors
    /// Fails if the directory cannot be created, and as [`SignerHome::open`].
    pub fn make(path: &Path) -> Result<Self, HomeError> {
        let unusable = |source| HomeError { path: path.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(unusable)?;
        Self::open(path)
    }

    /// Opens the home at this path.
    ///
    /// # Errors
    /// Fails if the directory is missing, belongs to another user, or others can enter it.
    pub fn open(path: &Path) -> Result<Self, HomeError> {
        let unusable = |source| HomeError { path: path.to_owned(), source };
        let found = fs::metadata(path).map_err(unusable)?;
        let owner = found.uid();
        let mode = found.mode() & 0o777;
        if owner != effective_user() || mode & 0o077 != 0 {
            let reason = format!("user {owner} has it with mode {mode:03o}; run `chmod 700` on it");
            return Err(unusable(io::Error::new(io::ErrorKind::PermissionDenied, reason)));
        }
        Ok(Self(path.to_owned()))
    }

    /// Returns the path of the encrypted key.
    #[must_use]
    pub fn keystore(&self) -> PathBuf {
        self.0.join("keystore.json")
    }

    /// Returns the path of the creator's socket.
    #[must_use]
    pub fn creator_socket(&self) -> PathBuf {
        self.0.join("creator.sock")
    }

    pub(crate) fn ledger(&self) -> PathBuf {
        self.0.join("ledger.db")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.0.join("signer.lock")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_home_is_made_closed_and_refused_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/signer");
        assert_eq!(SignerHome::open(&path).unwrap_err().source.kind(), io::ErrorKind::NotFound);
        let home = SignerHome::make(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        assert!(home.keystore().starts_with(&path));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o710)).unwrap();
        let error = SignerHome::open(&path).unwrap_err();
        assert!(error.source.to_string().contains("mode 710; run `chmod 700`"), "{error:?}");
    }

    #[test]
    fn a_file_is_no_home() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(SignerHome::make(file.path()).is_err());
    }
}

//! The operator's certificate authorities, which TLS trusts beside the compiled-in ones.
//!
//! Their certificates come from files that the operator names. They are read once, before anything
//! is connected, and hold for the whole process; a child gets those that its parent read. Must
//! never skip a certificate that cannot be used: an operator who names an authority gets it or an
//! error.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use automaton_core::error::Classified;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde::{Deserialize, Serialize};

/// Bytes of one file at most; the authorities of a whole system take a quarter of that.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Bytes of all certificates at most.
const ALL_BYTES_MAX: usize = 1024 * 1024;
/// Files of a folder at most.
const FILES_MAX: usize = 4_000;

/// The authorities that the process trusts; none until they are set.
static BELIEVED: OnceLock<PrivateAuthorities> = OnceLock::new();

/// Certificates that are not usable as those of authorities.
#[derive(Debug, thiserror::Error, Classified)]
pub enum TrustError {
    /// A file or folder cannot be read.
    #[error("cannot read '{path}', which {variable} names")]
    #[class(Config, hint = "correct {variable}, or unset it to trust public authorities alone")]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// The variable that names it.
        variable: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// There is nothing in it that could be trusted, or something that cannot be.
    #[error("'{path}', which {variable} names, {why}")]
    #[class(
        Config,
        hint = "{variable} has to name certificates of authorities as PEM, which begin with \
                -----BEGIN CERTIFICATE-----; unset it to trust public authorities alone"
    )]
    Unusable {
        /// The file or folder.
        path: PathBuf,
        /// The variable that names it.
        variable: &'static str,
        /// The defect.
        why: String,
    },
}

/// Certificates of authorities that an operator trusts, in DER.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrivateAuthorities(BTreeSet<Vec<u8>>);

impl PrivateAuthorities {
    /// The variable that names a file, as for every program over OpenSSL.
    pub const FILE: &str = "SSL_CERT_FILE";
    /// The variable that names folders with such files, between colons.
    pub const FOLDERS: &str = "SSL_CERT_DIR";

    /// Those of a file, and of folders, whose files without certificates are passed over.
    ///
    /// # Errors
    /// Something there cannot be read or is no certificate of an authority, or there is none.
    pub fn read(file: Option<&Path>, folders: &[PathBuf]) -> Result<Self, TrustError> {
        let mut all = Self::default();
        if let Some(file) = file {
            all.add(file, Self::FILE)?;
            if all.0.is_empty() {
                return Err(unusable(file, Self::FILE, "holds no certificate"));
            }
        }
        for folder in folders {
            for path in files(folder)? {
                all.add(&path, Self::FOLDERS)?;
            }
        }
        Ok(all)
    }

    fn add(&mut self, path: &Path, variable: &'static str) -> Result<(), TrustError> {
        let failed = |source| TrustError::Unreadable { path: path.to_owned(), variable, source };
        let mut text = Vec::new();
        let file = File::open(path).map_err(failed)?;
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text).map_err(failed)?;
        if text.len() as u64 > FILE_BYTES_MAX {
            let why = format!("is larger than {FILE_BYTES_MAX} bytes");
            return Err(unusable(path, variable, &why));
        }
        for found in CertificateDer::pem_slice_iter(&text) {
            let found =
                found.map_err(|error| unusable(path, variable, &format!("is broken: {error}")))?;
            let added = rustls::RootCertStore::empty().add(found.clone());
            added.map_err(|error| {
                unusable(path, variable, &format!("holds what is no authority's: {error}"))
            })?;
            self.0.insert(found.to_vec());
        }
        if self.0.iter().map(Vec::len).sum::<usize>() > ALL_BYTES_MAX {
            let why = format!("makes it more than {ALL_BYTES_MAX} bytes of certificates");
            return Err(unusable(path, variable, &why));
        }
        Ok(())
    }

    /// Has every client that is made from now on believe them, too. The first that are
    /// installed hold.
    pub fn install(self) {
        // silent-ok: a process is told once whom it believes.
        BELIEVED.set(self).ok();
    }

    /// Those that this process believes.
    #[must_use]
    pub fn installed() -> Self {
        BELIEVED.get().cloned().unwrap_or_default()
    }

    /// As TLS takes them; each was found to be one.
    pub(crate) fn certificates(&self) -> impl Iterator<Item = CertificateDer<'_>> {
        self.0.iter().map(|der| CertificateDer::from(der.as_slice()))
    }
}

/// The files of a folder, in the order of their names.
fn files(folder: &Path) -> Result<Vec<PathBuf>, TrustError> {
    let variable = PrivateAuthorities::FOLDERS;
    let failed = |source| TrustError::Unreadable { path: folder.to_owned(), variable, source };
    let found: Result<Vec<_>, _> = fs::read_dir(folder)
        .and_then(|entries| entries.take(FILES_MAX + 1).map(|it| Ok(it?.path())).collect());
    let mut found = found.map_err(failed)?;
    if found.len() > FILES_MAX {
        return Err(unusable(folder, variable, &format!("has more than {FILES_MAX} files")));
    }
    found.retain(|path| path.is_file());
    found.sort_unstable();
    Ok(found)
}

fn unusable(path: &Path, variable: &'static str, why: &str) -> TrustError {
    TrustError::Unusable { path: path.to_owned(), variable, why: why.to_owned() }
}

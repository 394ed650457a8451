//! The key at rest: an Ethereum keystore, version 3.
//!
//! <https://ethereum.org/developers/docs/data-structures-and-encoding/web3-secret-storage/>:
//! `aes-128-ctr` under a key that scrypt or pbkdf2 derives from a passphrase, and
//! a keccak MAC. Ours are written with the strong parameters of geth; those of
//! other tools are read within bounds of memory and time. A keystore that exists
//! must never be overwritten, and a passphrase is never kept.

mod format;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use alloy_primitives::Address;
use automaton_core::entropy::Entropy;
use automaton_core::error::Classified;
use automaton_core::secret::Secret;
use automaton_sandbox::{LockedBytes, VaultError};
use automaton_sqlite::place_new;

use crate::key::WalletKey;
pub(crate) use format::Scrypt;
use format::{DerivedKey, EncryptedKeystore};

pub use format::KeystoreDefect;

/// The largest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// What a new keystore is derived with, as geth's: 256 MiB, about a second.
const STRONG: Scrypt = Scrypt::new(1 << 18, 8, 1);

/// What one is derived with whose passphrase nobody can guess: 4 MiB, some milliseconds.
const LIGHT: Scrypt = Scrypt::new(1 << 12, 8, 1);

/// A keystore could not be made, read or opened.
#[derive(Debug, thiserror::Error, Classified)]
pub enum KeystoreError {
    /// A key is there already, and is never replaced.
    #[error("there is a key at {} already", path.display())]
    #[class(User, hint = "It may hold money. Move it away to begin with another.")]
    Exists {
        /// The keystore.
        path: PathBuf,
    },
    /// There is none.
    #[error("there is no key at {}", path.display())]
    #[class(User, hint = "Run `automaton wallet new` to make one.")]
    Missing {
        /// The keystore.
        path: PathBuf,
    },
    /// The file cannot be read or written.
    #[error("cannot {verb} the keystore {}", path.display())]
    #[class(Internal)]
    File {
        /// What was tried.
        verb: &'static str,
        /// The keystore.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is no keystore that can be opened.
    #[error("the keystore {} cannot be opened", path.display())]
    #[class(Config, hint = "The file was left as it is. Restore a copy of it.")]
    Unfit {
        /// The keystore.
        path: PathBuf,
        /// What is wrong with it.
        source: KeystoreDefect,
    },
    /// The passphrase does not fit the file.
    #[error("the passphrase does not open the keystore {}", path.display())]
    #[class(
        User,
        hint = "Try again. If the passphrase is right, the file is damaged: restore a copy."
    )]
    WrongPassphrase {
        /// The keystore.
        path: PathBuf,
    },
    /// The injected chance gave no key.
    #[error("no key could be drawn: the source of chance is broken")]
    #[class(Internal)]
    NoChance,
    /// There is no memory that a key may be in.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

/// Draws a new key and stores it under a passphrase, for its owner alone. Takes
/// about a second and 256 MiB.
///
/// # Errors
/// `Exists` when there is a file at the path; it is left as it is.
pub fn create(
    path: &Path,
    passphrase: &Secret,
    entropy: &dyn Entropy,
) -> Result<Address, KeystoreError> {
    draw(path, STRONG, passphrase, entropy)
}

/// The same under a passphrase of 256 bits that were drawn for it: no guess finds those, so
/// that a second for each guess protects nothing. Never to be used with a person's words.
///
/// # Errors
/// As [`create`].
pub fn create_under_drawn(
    path: &Path,
    passphrase: &Secret,
    entropy: &dyn Entropy,
) -> Result<Address, KeystoreError> {
    draw(path, LIGHT, passphrase, entropy)
}

fn draw(
    path: &Path,
    cost: Scrypt,
    passphrase: &Secret,
    entropy: &dyn Entropy,
) -> Result<Address, KeystoreError> {
    // Asked before the work; that nothing is replaced is decided when it gets its name.
    if path.try_exists().map_err(|source| failed("find", path, source))? {
        return Err(KeystoreError::Exists { path: path.to_owned() });
    }
    let mut secret = LockedBytes::zeroed()?;
    entropy.fill(secret.get_mut());
    // One draw in 2¹²⁸ is no key.
    let key = WalletKey::new(secret).ok_or(KeystoreError::NoChance)?;
    keep(&key, path, cost, passphrase, entropy)
}

/// Takes the key out of another tool's keystore, and stores it under the same
/// passphrase with parameters that are at least as strong as those of a new one.
/// The other file stays as it is.
///
/// # Errors
/// As [`Keystore::read`] and [`Keystore::unlock`] for the other file, and as
/// [`create`]; then nothing is written.
pub fn import(
    from: &Path,
    to: &Path,
    passphrase: &Secret,
    entropy: &dyn Entropy,
) -> Result<Address, KeystoreError> {
    if to.try_exists().map_err(|source| failed("find", to, source))? {
        return Err(KeystoreError::Exists { path: to.to_owned() });
    }
    let foreign = Keystore::read(from)?;
    let key = foreign.unlock(passphrase)?;
    keep(&key, to, foreign.encrypted.cost_at_least(STRONG), passphrase, entropy)
}

fn keep(
    key: &WalletKey,
    path: &Path,
    cost: Scrypt,
    passphrase: &Secret,
    entropy: &dyn Entropy,
) -> Result<Address, KeystoreError> {
    let json = EncryptedKeystore::new(key, passphrase, cost, entropy)
        .and_then(|encrypted| encrypted.to_json())
        .map_err(|source| KeystoreError::Unfit { path: path.to_owned(), source })?;
    store(path, &json)?;
    Ok(key.address())
}

/// Writes a draft to the disk and gives it its name, which fails when the name is taken.
fn store(path: &Path, json: &[u8]) -> Result<(), KeystoreError> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".new-{}", std::process::id()));
    let draft = PathBuf::from(draft);
    // silent-ok: there is one only if a process of the same number died here.
    fs::remove_file(&draft).ok();
    let write = || -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&draft)?;
        file.write_all(json)?;
        file.sync_all()
    };
    let stored = write().and_then(|()| place_new(&draft, path));
    // silent-ok: a draft that stays behind is encrypted, and in nobody's way.
    fs::remove_file(&draft).ok();
    stored.map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => KeystoreError::Exists { path: path.to_owned() },
        _ => failed("write", path, source),
    })
}

fn failed(verb: &'static str, path: &Path, source: io::Error) -> KeystoreError {
    KeystoreError::File { verb, path: path.to_owned(), source }
}

/// A keystore whose parameters are known to be bearable.
#[derive(Debug)]
pub struct Keystore {
    path: PathBuf,
    encrypted: EncryptedKeystore,
}

impl Keystore {
    /// Reads the file. Derives nothing yet.
    ///
    /// # Errors
    /// When it is missing, unreadable, no keystore of version 3, or one that
    /// asks for more memory or time than any honest one does.
    pub fn read(path: &Path) -> Result<Self, KeystoreError> {
        let file = File::open(path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => KeystoreError::Missing { path: path.to_owned() },
            _ => failed("open", path, source),
        })?;
        let mut bytes = Vec::new();
        let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
        let length = read.map_err(|source| failed("read", path, source))?;
        let encrypted = if u64::try_from(length).is_ok_and(|length| length <= FILE_BYTES_MAX) {
            EncryptedKeystore::from_json(&bytes)
        } else {
            Err(KeystoreDefect::TooLarge)
        };
        let unfit = |source| KeystoreError::Unfit { path: path.to_owned(), source };
        Ok(Self { path: path.to_owned(), encrypted: encrypted.map_err(unfit)? })
    }

    /// The address that the file names, if it names one.
    #[must_use]
    pub fn address(&self) -> Option<Address> {
        self.encrypted.address()
    }

    /// Decrypts the key. Takes as long as the file's parameters ask for.
    ///
    /// # Errors
    /// When the passphrase is wrong, or what is inside is no key or not the one
    /// of the file's address.
    pub fn unlock(&self, passphrase: &Secret) -> Result<WalletKey, KeystoreError> {
        let derived = self.derive(passphrase)?;
        let mut secret = LockedBytes::zeroed()?;
        self.encrypted.decrypt(&derived, secret.get_mut());
        let key = WalletKey::new(secret).ok_or_else(|| self.unfit(KeystoreDefect::NoKey))?;
        self.encrypted.check_address(key.address()).map_err(|it| self.unfit(it))?;
        Ok(key)
    }

    /// Checks that the passphrase is the right one. Decrypts nothing.
    pub(crate) fn check(&self, passphrase: &Secret) -> Result<(), KeystoreError> {
        self.derive(passphrase).map(drop)
    }

    fn derive(&self, passphrase: &Secret) -> Result<DerivedKey, KeystoreError> {
        let derived = self.encrypted.derive(passphrase).map_err(|it| self.unfit(it))?;
        if self.encrypted.fits(&derived) {
            Ok(derived)
        } else {
            Err(KeystoreError::WrongPassphrase { path: self.path.clone() })
        }
    }

    fn unfit(&self, source: KeystoreDefect) -> KeystoreError {
        KeystoreError::Unfit { path: self.path.clone(), source }
    }
}

#[cfg(test)]
mod tests;

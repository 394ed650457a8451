//! The encrypted key on disk: an Ethereum keystore, version 3.
//!
//! The format is `aes-128-ctr` with a key that scrypt or pbkdf2 derives from a passphrase, and a
//! keccak MAC:
//! <https://ethereum.org/developers/docs/data-structures-and-encoding/web3-secret-storage/>. New
//! keystores use the strong parameters of geth. Those of other tools are read within bounds of
//! memory and time. An existing keystore must never be overwritten, and a passphrase is never
//! stored.

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

/// The parameters of a new keystore, as geth's: 256 MiB, about a second.
const STRONG: Scrypt = Scrypt::new(1 << 18, 8, 1);

/// The parameters for a passphrase that cannot be guessed: 4 MiB, some milliseconds.
const LIGHT: Scrypt = Scrypt::new(1 << 12, 8, 1);

/// A keystore could not be created, read or opened.
#[derive(Debug, thiserror::Error, Classified)]
pub enum KeystoreError {
    /// There is a key already. It is never replaced.
    #[error("there is a key at {} already", path.display())]
    #[class(User, hint = "It may hold money. Move it away to begin with another.")]
    Exists {
        /// The keystore.
        path: PathBuf,
    },
    /// The keystore is missing.
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
        /// The action that failed.
        verb: &'static str,
        /// The keystore.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is not a keystore that can be opened.
    #[error("the keystore {} cannot be opened", path.display())]
    #[class(Config, hint = "The file was left as it is. Restore a copy of it.")]
    Unfit {
        /// The keystore.
        path: PathBuf,
        /// The defect.
        source: KeystoreDefect,
    },
    /// The passphrase does not open the file.
    #[error("the passphrase does not open the keystore {}", path.display())]
    #[class(
        User,
        hint = "Try again. If the passphrase is right, the file is damaged: restore a copy."
    )]
    WrongPassphrase {
        /// The keystore.
        path: PathBuf,
    },
    /// The random source gave no valid key.
    #[error("no key could be drawn: the source of chance is broken")]
    #[class(Internal)]
    NoChance,
    /// No locked memory is available for the key.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

/// Draws a new key and stores it encrypted, readable by its owner only. Takes about a second and
/// 256 MiB.
///
/// # Errors
/// Returns `Exists` if there is a file at the path. That file is left as it is.
pub fn create(
    path: &Path,
    passphrase: &Secret,
    entropy: &dyn Entropy,
) -> Result<Address, KeystoreError> {
    create_with_cost(path, STRONG, passphrase, entropy)
}

/// Draws a new key and stores it under a passphrase of 256 random bits. Such a passphrase cannot
/// be guessed, so a cheap derivation is enough. Never use it with a passphrase that a person
/// chose.
///
/// # Errors
/// As [`create`].
pub fn create_with_random_passphrase(
    path: &Path,
    passphrase: &Secret,
    entropy: &dyn Entropy,
) -> Result<Address, KeystoreError> {
    create_with_cost(path, LIGHT, passphrase, entropy)
}

fn create_with_cost(
    path: &Path,
    cost: Scrypt,
    passphrase: &Secret,
    entropy: &dyn Entropy,
) -> Result<Address, KeystoreError> {
    // Checked before the work. Storing the file also refuses to replace one.
    if path.try_exists().map_err(|source| failed("find", path, source))? {
        return Err(KeystoreError::Exists { path: path.to_owned() });
    }
    let mut secret = LockedBytes::zeroed()?;
    entropy.fill(secret.get_mut());
    // One draw in 2¹²⁸ is not a valid key.
    let key = WalletKey::new(secret).ok_or(KeystoreError::NoChance)?;
    encrypt_and_store(&key, path, cost, passphrase, entropy)
}

/// Imports the key of another tool's keystore under the same passphrase. The parameters are at
/// least as strong as those of a new keystore. The other file stays as it is.
///
/// # Errors
/// As [`Keystore::read`] and [`Keystore::unlock`] for the other file, and as [`create`]. On an
/// error nothing is written.
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
    encrypt_and_store(&key, to, foreign.encrypted.cost_at_least(STRONG), passphrase, entropy)
}

fn encrypt_and_store(
    key: &WalletKey,
    path: &Path,
    cost: Scrypt,
    passphrase: &Secret,
    entropy: &dyn Entropy,
) -> Result<Address, KeystoreError> {
    let json = EncryptedKeystore::new(key, passphrase, cost, entropy)
        .and_then(|encrypted| encrypted.to_json())
        .map_err(|source| KeystoreError::Unfit { path: path.to_owned(), source })?;
    write_new_file(path, &json)?;
    Ok(key.address())
}

/// Writes a draft to disk and renames it to its path. Fails if the path exists.
fn write_new_file(path: &Path, json: &[u8]) -> Result<(), KeystoreError> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".new-{}", std::process::id()));
    let draft = PathBuf::from(draft);
    // silent-ok: it exists only if a process with the same id died here.
    fs::remove_file(&draft).ok();
    let write = || -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&draft)?;
        file.write_all(json)?;
        file.sync_all()
    };
    let stored = write().and_then(|()| place_new(&draft, path));
    // silent-ok: a leftover draft is encrypted and disturbs nothing.
    fs::remove_file(&draft).ok();
    stored.map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => KeystoreError::Exists { path: path.to_owned() },
        _ => failed("write", path, source),
    })
}

fn failed(verb: &'static str, path: &Path, source: io::Error) -> KeystoreError {
    KeystoreError::File { verb, path: path.to_owned(), source }
}

/// A keystore whose derivation cost is within bounds.
#[derive(Debug)]
pub struct Keystore {
    path: PathBuf,
    encrypted: EncryptedKeystore,
}

impl Keystore {
    /// Reads the file. Derives nothing yet.
    ///
    /// # Errors
    /// Fails if the file is missing, unreadable, not a keystore of version 3, or asks for too
    /// much memory or time.
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

    /// Returns the address in the file, if there is one.
    #[must_use]
    pub fn address(&self) -> Option<Address> {
        self.encrypted.address()
    }

    /// Decrypts the key. Takes as long as the file's parameters require.
    ///
    /// # Errors
    /// Fails if the passphrase is wrong, or if the content is not a key or not the key of the
    /// file's address.
    pub fn unlock(&self, passphrase: &Secret) -> Result<WalletKey, KeystoreError> {
        let derived = self.derive(passphrase)?;
        let mut secret = LockedBytes::zeroed()?;
        self.encrypted.decrypt(&derived, secret.get_mut());
        let key = WalletKey::new(secret).ok_or_else(|| self.unfit(KeystoreDefect::NoKey))?;
        self.encrypted.check_address(key.address()).map_err(|it| self.unfit(it))?;
        Ok(key)
    }

    /// Checks the passphrase. Decrypts nothing.
    pub(crate) fn check(&self, passphrase: &Secret) -> Result<(), KeystoreError> {
        self.derive(passphrase).map(drop)
    }

    fn derive(&self, passphrase: &Secret) -> Result<DerivedKey, KeystoreError> {
        let derived = self.encrypted.derive(passphrase).map_err(|it| self.unfit(it))?;
        if self.encrypted.is_opened_by(&derived) {
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

//! Pure: the keystore's file format, and the arithmetic that opens it.
//!
//! A file is checked completely before anything is derived: names, lengths, and the cost of the
//! derivation. Derived bytes are wiped when dropped.

use aes::Aes128;
use aes::cipher::{KeyIvInit as _, StreamCipher as _};
use alloy_primitives::{Address, keccak256};
use automaton_core::entropy::Entropy;
use automaton_core::file_text::{self, TextDefect};
use automaton_core::secret::Secret;
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::key::{KEY_BYTES, WalletKey};

/// The only supported version.
const VERSION: u32 = 3;

/// The length of a derived key: 16 bytes for the cipher, 16 for the MAC.
const DERIVED_BYTES: u32 = 32;

/// The most memory that scrypt may ask for: `128 · n · r` bytes, twice that of a new keystore.
const SCRYPT_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// The most work that scrypt may ask for: `n · r · p`, eight times that of a new keystore.
const SCRYPT_WORK_MAX: u64 = 1 << 24;

/// The most rounds of pbkdf2. Common tools write up to 262,144.
const PBKDF2_ROUNDS_MAX: u32 = 10_000_000;

/// The reason why a file cannot be opened as a keystore.
#[derive(Debug, thiserror::Error)]
pub enum KeystoreDefect {
    /// It is larger than any keystore.
    #[error("it is larger than a keystore can be")]
    TooLarge,
    /// It is not text.
    #[error("it is not a keystore of version 3")]
    Text(#[source] TextDefect),
    /// It is not JSON of the right form.
    #[error("it is not a keystore of version 3")]
    Form(#[source] serde_json::Error),
    /// A field has an unsupported value.
    #[error("{field} is not {expected}")]
    Value {
        /// The field.
        field: &'static str,
        /// The expected value.
        expected: &'static str,
    },
    /// Deriving its key would cost too much memory or time.
    #[error("{field} asks for more memory or time than a keystore may")]
    Cost {
        /// The field.
        field: &'static str,
    },
    /// The decrypted bytes are not a private key.
    #[error("what it encrypts is no private key")]
    NoKey,
    /// The decrypted key belongs to another address.
    #[error("it encrypts the key of {found}, not of the address that it names")]
    OtherAddress {
        /// The key's address.
        found: Address,
    },
}

/// A keystore as it is written to its file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct EncryptedKeystore {
    /// The address without `0x`, as other tools write it. Some tools leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(alias = "Crypto")]
    crypto: Crypto,
    #[serde(default)]
    id: String,
    version: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct Crypto {
    cipher: Cipher,
    cipherparams: CipherParams,
    #[serde(with = "hex::serde")]
    ciphertext: [u8; KEY_BYTES],
    #[serde(flatten)]
    kdf: Kdf,
    #[serde(with = "hex::serde")]
    mac: [u8; 32],
}

#[derive(Debug, Serialize, Deserialize)]
enum Cipher {
    #[serde(rename = "aes-128-ctr")]
    Aes128Ctr,
}

#[derive(Debug, Serialize, Deserialize)]
struct CipherParams {
    #[serde(with = "hex::serde")]
    iv: [u8; 16],
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kdf", content = "kdfparams", rename_all = "lowercase")]
enum Kdf {
    Scrypt(Scrypt),
    Pbkdf2(Pbkdf2),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Scrypt {
    dklen: u32,
    n: u64,
    r: u32,
    p: u32,
    #[serde(with = "hex::serde")]
    salt: Vec<u8>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Pbkdf2 {
    dklen: u32,
    c: u32,
    prf: Prf,
    #[serde(with = "hex::serde")]
    salt: Vec<u8>,
}

#[derive(Debug, Serialize, Deserialize)]
enum Prf {
    #[serde(rename = "hmac-sha256")]
    HmacSha256,
}

/// A derived key: 16 bytes for the cipher, then 16 for the MAC.
pub(super) type DerivedKey = Zeroizing<[u8; 32]>;

impl Scrypt {
    /// Creates parameters with an empty salt.
    pub(crate) const fn new(n: u64, r: u32, p: u32) -> Self {
        Self { dklen: DERIVED_BYTES, n, r, p, salt: Vec::new() }
    }

    /// Returns the memory in units of 128 bytes. The parameters must have been checked.
    const fn memory(&self) -> u64 {
        self.n * self.r as u64
    }

    pub(crate) fn params(&self) -> Result<scrypt::Params, KeystoreDefect> {
        let Self { n, r, p, .. } = *self;
        if n < 2 || !n.is_power_of_two() || r == 0 || p == 0 {
            let expected = "n of a power of two, r and p above zero";
            return Err(KeystoreDefect::Value { field: "kdfparams", expected });
        }
        let work = n.checked_mul(r.into());
        let bytes = work.and_then(|work| work.checked_mul(128));
        let total = work.and_then(|work| work.checked_mul(p.into()));
        let bearable = bytes.is_some_and(|bytes| bytes <= SCRYPT_BYTES_MAX)
            && total.is_some_and(|total| total <= SCRYPT_WORK_MAX);
        let log_n = u8::try_from(n.trailing_zeros()).ok().filter(|_| bearable);
        // Called last, since the library's own checks overflow on extreme values.
        log_n
            .and_then(|log_n| scrypt::Params::new(log_n, r, p).ok())
            .ok_or(KeystoreDefect::Cost { field: "kdfparams" })
    }
}

impl EncryptedKeystore {
    /// Encrypts a key with these parameters and a fresh salt and initial vector.
    pub(super) fn new(
        key: &WalletKey,
        passphrase: &Secret,
        mut cost: Scrypt,
        entropy: &dyn Entropy,
    ) -> Result<Self, KeystoreDefect> {
        let mut iv = [0; 16];
        let mut id = [0; 16];
        cost.salt = vec![0; 32];
        entropy.fill(&mut cost.salt);
        entropy.fill(&mut iv);
        entropy.fill(&mut id);
        let mut encrypted = Self {
            address: Some(hex::encode(key.address())),
            crypto: Crypto {
                cipher: Cipher::Aes128Ctr,
                cipherparams: CipherParams { iv },
                ciphertext: [0; KEY_BYTES],
                kdf: Kdf::Scrypt(cost),
                mac: [0; 32],
            },
            id: uuid(id),
            version: VERSION,
        };
        let derived = encrypted.derive(passphrase)?;
        let mut secret = Zeroizing::new(*key.secret());
        encrypted.apply_stream(&derived, &mut secret);
        encrypted.crypto.ciphertext = *secret;
        encrypted.crypto.mac = encrypted.mac_under(&derived);
        Ok(encrypted)
    }

    pub(super) fn from_json(bytes: &[u8]) -> Result<Self, KeystoreDefect> {
        let text = file_text::decode(bytes).map_err(KeystoreDefect::Text)?;
        let encrypted: Self = serde_json::from_str(text).map_err(KeystoreDefect::Form)?;
        if encrypted.version != VERSION {
            return Err(KeystoreDefect::Value { field: "version", expected: "3" });
        }
        let dklen = match &encrypted.crypto.kdf {
            Kdf::Scrypt(scrypt) => {
                scrypt.params()?;
                scrypt.dklen
            }
            Kdf::Pbkdf2(pbkdf2) if !(1..=PBKDF2_ROUNDS_MAX).contains(&pbkdf2.c) => {
                return Err(KeystoreDefect::Cost { field: "c" });
            }
            Kdf::Pbkdf2(pbkdf2) => pbkdf2.dklen,
        };
        if dklen != DERIVED_BYTES {
            return Err(KeystoreDefect::Value { field: "dklen", expected: "32" });
        }
        Ok(encrypted)
    }

    /// Returns this file's parameters without the salt, if they cost at least as much memory and
    /// work as `least`. Otherwise returns `least`.
    pub(super) fn cost_at_least(&self, least: Scrypt) -> Scrypt {
        match &self.crypto.kdf {
            Kdf::Scrypt(own)
                if own.memory() >= least.memory()
                    && own.memory() * u64::from(own.p) >= least.memory() * u64::from(least.p) =>
            {
                Scrypt::new(own.n, own.r, own.p)
            }
            Kdf::Scrypt(_) | Kdf::Pbkdf2(_) => least,
        }
    }

    pub(super) fn to_json(&self) -> Result<Vec<u8>, KeystoreDefect> {
        serde_json::to_vec(self).map_err(KeystoreDefect::Form)
    }

    /// Derives the key from a passphrase with this file's parameters.
    pub(super) fn derive(&self, passphrase: &Secret) -> Result<DerivedKey, KeystoreDefect> {
        let mut derived = DerivedKey::default();
        let passphrase = passphrase.reveal().as_bytes();
        match &self.crypto.kdf {
            Kdf::Scrypt(cost) => {
                scrypt::scrypt(passphrase, &cost.salt, &cost.params()?, derived.as_mut())
                    .map_err(|_| KeystoreDefect::Cost { field: "kdfparams" })?;
            }
            Kdf::Pbkdf2(Pbkdf2 { c, prf: Prf::HmacSha256, salt, .. }) => {
                pbkdf2::pbkdf2_hmac::<Sha256>(passphrase, salt, *c, derived.as_mut());
            }
        }
        Ok(derived)
    }

    /// Returns true if the derived key is the one that this file was written with.
    pub(super) fn is_opened_by(&self, derived: &DerivedKey) -> bool {
        self.mac_under(derived) == self.crypto.mac
    }

    fn mac_under(&self, derived: &DerivedKey) -> [u8; 32] {
        let message = Zeroizing::new([&derived[16..], &self.crypto.ciphertext].concat());
        keccak256(&*message).0
    }

    /// Decrypts the private key into the caller's memory.
    pub(super) fn decrypt(&self, derived: &DerivedKey, into: &mut [u8; KEY_BYTES]) {
        *into = self.crypto.ciphertext;
        self.apply_stream(derived, into);
    }

    /// Encrypts or decrypts `bytes`: in counter mode both are the same operation.
    fn apply_stream(&self, derived: &DerivedKey, bytes: &mut [u8; KEY_BYTES]) {
        let mut key = Zeroizing::new([0; 16]);
        key.copy_from_slice(&derived[..16]);
        let iv = &self.crypto.cipherparams.iv;
        ctr::Ctr128BE::<Aes128>::new((&*key).into(), iv.into()).apply_keystream(bytes);
    }

    pub(super) fn address(&self) -> Option<Address> {
        // silent-ok: an invalid address is treated as a missing one.
        self.address.as_deref()?.parse().ok()
    }

    pub(super) fn check_address(&self, found: Address) -> Result<(), KeystoreDefect> {
        let Some(named) = &self.address else { return Ok(()) };
        let named = named.strip_prefix("0x").unwrap_or(named);
        if named.eq_ignore_ascii_case(&hex::encode(found)) {
            return Ok(());
        }
        Err(KeystoreDefect::OtherAddress { found })
    }
}

/// Returns a random UUID (RFC 9562, version 4) from 16 random bytes. Tools expect one as the
/// file's id.
fn uuid(mut bytes: [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let digits = hex::encode(bytes);
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    parts.join("-")
}

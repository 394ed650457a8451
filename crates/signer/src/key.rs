//! The decrypted key, which signs a [`Payload`] and nothing else.
//!
//! The key is in locked pages. A copy is on the stack only while a signature is computed, and is
//! wiped afterwards. The key must never be cloned, printed or sent.

use std::fmt;

use alloy_primitives::{Address, B256, FixedBytes};
use automaton_core::secret::Secret;
use automaton_sandbox::LockedBytes;
use k256::ecdsa::SigningKey;

use crate::payload::Payload;

/// The length of a private key in bytes.
pub(crate) const KEY_BYTES: usize = 32;

/// A recoverable ECDSA signature: `r`, `s`, and `v` of 27 or 28.
pub type Signature = FixedBytes<65>;

/// The key of one wallet.
pub struct WalletKey {
    secret: LockedBytes<KEY_BYTES>,
    address: Address,
}

impl WalletKey {
    /// Creates the key from its bytes. Returns `None` if the number is not a valid secp256k1 key.
    pub(crate) fn new(secret: LockedBytes<KEY_BYTES>) -> Option<Self> {
        // silent-ok: the error says no more than the `None`.
        let signing = SigningKey::from_slice(secret.get()).ok()?;
        let public = signing.verifying_key().to_encoded_point(false);
        // The first byte only says that the point is not compressed.
        let address = Address::from_raw_public_key(public.as_bytes().get(1..)?);
        Some(Self { secret, address })
    }

    /// Returns the wallet's address.
    #[must_use]
    pub const fn address(&self) -> Address {
        self.address
    }

    /// Returns the key as hexadecimal digits, for the command that exports it.
    #[must_use]
    pub fn export(&self) -> Secret {
        Secret::new(hex::encode(self.secret.get()))
    }

    pub(crate) fn secret(&self) -> &[u8; KEY_BYTES] {
        self.secret.get()
    }

    /// Signs a payload. The same payload gets the same signature (RFC 6979).
    ///
    /// # Errors
    /// Fails if the arithmetic fails, with a probability of about 2⁻¹²⁷.
    pub(crate) fn sign(&self, payload: &Payload<'_>) -> Result<Signature, k256::ecdsa::Error> {
        self.sign_digest(&payload.digest())
    }

    fn sign_digest(&self, digest: &B256) -> Result<Signature, k256::ecdsa::Error> {
        let signing = SigningKey::from_slice(self.secret.get())?;
        let (signature, recovery) = signing.sign_prehash_recoverable(digest.as_slice())?;
        if recovery.is_x_reduced() {
            // `v` cannot represent this case.
            return Err(k256::ecdsa::Error::new());
        }
        let mut bytes = [0; 65];
        bytes[..64].copy_from_slice(&signature.to_bytes());
        bytes[64] = 27 + u8::from(recovery.is_y_odd());
        Ok(Signature::new(bytes))
    }
}

impl fmt::Debug for WalletKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.address)
    }
}

/// The key of the golden vectors. It is public: never fund it.
#[cfg(test)]
pub(crate) fn golden() -> WalletKey {
    let mut secret = LockedBytes::zeroed().unwrap();
    hex::decode_to_slice(
        "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
        secret.get_mut(),
    )
    .unwrap();
    WalletKey::new(secret).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_that_of_the_key() {
        assert_eq!(golden().address().to_string(), "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
        assert_eq!(format!("{:?}", golden()), "Key(0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266)");
    }

    #[test]
    fn numbers_that_are_no_key_are_refused() {
        assert!(WalletKey::new(LockedBytes::zeroed().unwrap()).is_none());
        let mut order = LockedBytes::zeroed().unwrap();
        hex::decode_to_slice(
            "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141",
            order.get_mut(),
        )
        .unwrap();
        assert!(WalletKey::new(order).is_none());
    }
}

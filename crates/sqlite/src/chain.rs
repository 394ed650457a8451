//! Pure: a chain of SHA-256 hashes over rows, which detects silent changes.
//!
//! Each link hashes its predecessor and the rows that one write added, so an edited, removed or
//! inserted row breaks every later link. An attacker who can rewrite the whole chain *and* the
//! stored head can still cut its tail. Only a head that is anchored elsewhere detects that. The
//! encoding may never change: old chains must stay verifiable.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// A SHA-256 hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
#[display("{}", hex::encode(_0))]
pub struct Hash([u8; 32]);

/// The predecessor of the first link.
pub const GENESIS: Hash = Hash([0; 32]);

impl Hash {
    /// Returns the hash of some bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Returns the bytes of the hash.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Creates a hash from its 32 bytes. Returns `None` for any other length.
    #[must_use]
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        // silent-ok: `None` tells the caller that the length is wrong.
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({self})")
    }
}

/// A text is not the 64 hexadecimal digits of a hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no SHA-256 hash (64 hexadecimal digits)")]
pub struct HashError(String);

impl FromStr for Hash {
    type Err = HashError;

    fn from_str(text: &str) -> Result<Self, HashError> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes)
            .map_err(|_| HashError(text.chars().take(64).collect()))?;
        Ok(Self(bytes))
    }
}

/// A row that a link covers.
#[derive(Debug, Clone, Copy)]
pub struct Covered<'a> {
    /// The kind of the row.
    pub kind: &'a str,
    /// The id of the row's subject.
    pub subject: &'a str,
    /// The hash of the row.
    pub digest: &'a Hash,
}

/// Returns the link that follows `prev`. `at` is its time in milliseconds since 1970, and `rows`
/// are the covered rows in order.
#[must_use]
pub fn link<'a>(prev: &Hash, at: i64, rows: impl IntoIterator<Item = Covered<'a>>) -> Hash {
    let head = CanonicalRow::new("automaton chain v2").bytes(prev.as_bytes()).int(at);
    let covered = rows
        .into_iter()
        .fold(head, |body, row| body.text(row.kind).text(row.subject).bytes(row.digest.as_bytes()));
    covered.hash()
}

/// The canonical encoding of a row: each field with its type and length, so that different rows
/// never have the same bytes.
#[derive(Debug, Clone)]
pub struct CanonicalRow(Vec<u8>);

impl CanonicalRow {
    /// Creates an encoding that begins with a name, so that rows of different tables differ.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(Vec::new()).text(name)
    }

    /// Adds a text.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        self.field(b't', text.as_bytes())
    }

    /// Adds an optional text. A missing one differs from an empty one.
    #[must_use]
    pub fn maybe(self, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.text(text),
            None => self.field(b'n', &[]),
        }
    }

    /// Adds bytes.
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        self.field(b'b', bytes)
    }

    /// Adds a number.
    #[must_use]
    pub fn int(self, number: i64) -> Self {
        self.field(b'i', &number.to_be_bytes())
    }

    /// Returns the hash of all fields.
    #[must_use]
    pub fn hash(&self) -> Hash {
        Hash::of(&self.0)
    }

    fn field(mut self, tag: u8, bytes: &[u8]) -> Self {
        self.0.push(tag);
        self.0.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
        self.0.extend_from_slice(bytes);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_never_changes() {
        // Computed by another program. A different value would invalidate every old chain.
        let body =
            CanonicalRow::new("decision").text("a").maybe(None).int(-1).bytes(&[0, 1]).hash();
        let row = Covered { kind: "decision", subject: "x", digest: &body };
        let first = link(&GENESIS, 7, [row]);
        assert_eq!(first.to_string().parse(), Ok(first));
        assert_eq!(
            first.to_string(),
            "fddacb26af3e96d6611cebeb90b5ed3d12337c254c88e33b6cb3cfbdaa60d0a4"
        );
    }

    #[test]
    fn every_part_of_a_link_counts() {
        let one = Hash::of(b"one");
        let two = Hash::of(b"two");
        let row = Covered { kind: "decision", subject: "x", digest: &two };
        let base = link(&one, 7, [row]);
        assert_ne!(base, link(&GENESIS, 7, [row]));
        assert_ne!(base, link(&one, 8, [row]));
        assert_ne!(base, link(&one, 7, [Covered { kind: "outcome", ..row }]));
        assert_ne!(base, link(&one, 7, [Covered { subject: "y", ..row }]));
        assert_ne!(base, link(&one, 7, [Covered { digest: &one, ..row }]));
        assert_ne!(base, link(&one, 7, [row, row]));
        assert_ne!(base, link(&one, 7, []));
    }

    #[test]
    fn moving_a_border_between_fields_changes_the_hash() {
        let ab_c = CanonicalRow::new("t").text("ab").text("c").hash();
        let a_bc = CanonicalRow::new("t").text("a").text("bc").hash();
        assert_ne!(ab_c, a_bc);
        assert_ne!(
            CanonicalRow::new("t").text("").hash(),
            CanonicalRow::new("t").maybe(None).hash()
        );
        assert_ne!(CanonicalRow::new("t").text("").hash(), CanonicalRow::new("t").hash());
    }

    #[test]
    fn reads_only_64_digits() {
        for bad in ["", "abc", &"g".repeat(64), &"0".repeat(63), &"0".repeat(66)] {
            assert!(bad.parse::<Hash>().is_err(), "{bad}");
        }
        assert_eq!(Hash::from_slice(&[0; 31]), None);
        assert_eq!(Hash::from_slice(&[0; 32]), Some(GENESIS));
    }
}

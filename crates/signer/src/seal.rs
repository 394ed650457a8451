//! A file that is encrypted under a passphrase, written and read in pieces.
//!
//! ```text
//! "automaton-sealed" version(1) log₂n(1) r(1) p(1) salt(32)   the head, in plain text
//! tag(16)                      checks the passphrase against this head
//! sum(16)                      SHA-256 of all above, truncated: detects damage
//! pieces of 65,536 bytes, each with a tag(16); the last one is shorter, or empty
//! ```
//!
//! The cipher is ChaCha20-Poly1305 with a key that scrypt derives, one for each file. A nonce
//! contains the piece's number and whether it is the last one. So no piece can be changed, moved
//! or cut off unnoticed. No byte of a piece may be given out before the piece was verified.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use automaton_core::entropy::Entropy;
use automaton_core::error::Classified;
use automaton_core::secret::Secret;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::keystore::Scrypt;

const MAGIC: &[u8; 16] = b"automaton-sealed";
const VERSION: u8 = 1;
const SALT_BYTES: usize = 32;
const HEAD_BYTES: usize = MAGIC.len() + 4 + SALT_BYTES;
const TAG_BYTES: usize = 16;
const SUM_BYTES: usize = 16;
const PIECE_BYTES: usize = 64 * 1024;

/// log₂n, r and p of new files, equal to those of a new keystore.
const COST: (u8, u8, u8) = (18, 8, 1);

/// A sealed file cannot be written or read.
#[derive(Debug, thiserror::Error, Classified)]
pub enum SealError {
    /// The file is not a sealed file.
    #[error("{} is no backup of an automaton", path.display())]
    #[class(User, hint = "Name a file that `automaton backup` wrote.")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file has a newer format version.
    #[error("{} is a backup of form {version}, and this program knows form {VERSION}", path.display())]
    #[class(User, hint = "Use the automaton that wrote it, or a newer one.")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u8,
    },
    /// The passphrase is wrong.
    #[error("the passphrase does not open {}", path.display())]
    #[class(User, hint = "Give the one that the backup was made with. Nothing was written.")]
    WrongPassphrase {
        /// The file.
        path: PathBuf,
    },
    /// The content differs from the one that was written.
    #[error("{} is damaged or cut off: what follows byte {at} is not what was written", path.display())]
    #[class(User, hint = "Use another copy of it, or another backup. Nothing was written.")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The offset where the damage begins.
        at: u64,
    },
    /// A system call failed.
    #[error("cannot {verb} {}", path.display())]
    #[class(Internal)]
    File {
        /// The action that failed.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// The purpose of a nonce. The discriminant is part of the format.
#[derive(Clone, Copy)]
enum PieceKind {
    Inner = 0,
    Last = 1,
    Head = 2,
}

fn nonce(kind: PieceKind, number: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[3] = kind as u8;
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// Derives the key of a head. Returns `None` if its parameters are out of bounds.
fn derive_key(head: &[u8; HEAD_BYTES], passphrase: &Secret) -> Option<LessSafeKey> {
    let [log_n, r, p] = [17, 18, 19].map(|place| head[place]);
    let n = 1_u64.checked_shl(log_n.into())?;
    // silent-ok: parameters that are out of bounds give no key. The caller reports that.
    let params = Scrypt::new(n, r.into(), p.into()).params().ok()?;
    let mut key = Zeroizing::new([0; 32]);
    let salt = &head[HEAD_BYTES - SALT_BYTES..];
    // silent-ok: as above.
    scrypt::scrypt(passphrase.reveal().as_bytes(), salt, &params, key.as_mut()).ok()?;
    // silent-ok: 32 bytes are always a valid key.
    Some(LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, &*key).ok()?))
}

fn head_tag(key: &LessSafeKey, head: &[u8]) -> Option<[u8; TAG_BYTES]> {
    let tag = key.seal_in_place_separate_tag(nonce(PieceKind::Head, 0), Aad::from(head), &mut []);
    // silent-ok: the input is never too long.
    tag.ok()?.as_ref().try_into().ok()
}

/// A writer of sealed files.
pub struct SealedWriter {
    file: File,
    path: PathBuf,
    key: LessSafeKey,
    piece: Zeroizing<Vec<u8>>,
    number: u64,
}

impl SealedWriter {
    /// Begins a file with a fresh key. Takes about a second and 256 MiB.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn new(
        file: File,
        path: &Path,
        passphrase: &Secret,
        entropy: &dyn Entropy,
    ) -> Result<Self, SealError> {
        Self::with_cost(file, path, passphrase, entropy, COST)
    }

    fn with_cost(
        mut file: File,
        path: &Path,
        passphrase: &Secret,
        entropy: &dyn Entropy,
        (log_n, r, p): (u8, u8, u8),
    ) -> Result<Self, SealError> {
        let mut head = [0; HEAD_BYTES];
        head[..16].copy_from_slice(MAGIC);
        head[16..20].copy_from_slice(&[VERSION, log_n, r, p]);
        entropy.fill(&mut head[20..]);
        let unsealable = || failed("seal", path)(io::ErrorKind::InvalidInput.into());
        let key = derive_key(&head, passphrase).ok_or_else(unsealable)?;
        let tag = head_tag(&key, &head).ok_or_else(unsealable)?;
        let mut all = [&head[..], &tag].concat();
        all.extend_from_slice(&Sha256::digest(&all)[..SUM_BYTES]);
        file.write_all(&all).map_err(failed("write", path))?;
        let piece = Zeroizing::new(Vec::with_capacity(PIECE_BYTES + TAG_BYTES));
        Ok(Self { file, path: path.to_owned(), key, piece, number: 0 })
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write_all(&mut self, mut bytes: &[u8]) -> Result<(), SealError> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(PIECE_BYTES - self.piece.len()));
            self.piece.extend_from_slice(now);
            bytes = later;
            if self.piece.len() == PIECE_BYTES {
                self.seal(PieceKind::Inner)?;
            }
        }
        Ok(())
    }

    /// Writes the end and syncs the file to disk.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn finish(mut self) -> Result<(), SealError> {
        self.seal(PieceKind::Last)?;
        self.file.sync_all().map_err(failed("write", &self.path))
    }

    fn seal(&mut self, kind: PieceKind) -> Result<(), SealError> {
        let nonce = nonce(kind, self.number);
        self.key
            .seal_in_place_append_tag(nonce, Aad::empty(), &mut *self.piece)
            .map_err(|_| failed("seal", &self.path)(io::ErrorKind::InvalidInput.into()))?;
        self.file.write_all(&self.piece).map_err(failed("write", &self.path))?;
        self.piece.clear();
        self.number += 1;
        Ok(())
    }
}

/// A reader of sealed files.
pub struct SealedReader {
    file: File,
    path: PathBuf,
    key: LessSafeKey,
    piece: Zeroizing<Vec<u8>>,
    /// The number of bytes of the piece that were given out.
    given: usize,
    number: u64,
    ended: bool,
}

impl SealedReader {
    /// Opens a file with its passphrase.
    ///
    /// # Errors
    /// Fails if it is not a sealed file, its head is damaged, or the passphrase is wrong.
    pub fn new(file: File, path: &Path, passphrase: &Secret) -> Result<Self, SealError> {
        let path = path.to_owned();
        let mut all = Vec::new();
        let bytes = HEAD_BYTES + TAG_BYTES + SUM_BYTES;
        (&file).take(bytes as u64).read_to_end(&mut all).map_err(failed("read", &path))?;
        if !all.starts_with(MAGIC) {
            return Err(SealError::Foreign { path });
        }
        if let Some(version) = all.get(16).filter(|version| **version > VERSION) {
            return Err(SealError::Newer { path, version: *version });
        }
        let Some((signed, sum)) = all.split_at_checked(HEAD_BYTES + TAG_BYTES) else {
            return Err(SealError::Damaged { path, at: 0 });
        };
        let head = signed.first_chunk::<HEAD_BYTES>();
        let whole = *sum == Sha256::digest(signed)[..SUM_BYTES];
        let (true, Some(head)) = (whole, head) else {
            return Err(SealError::Damaged { path, at: 0 });
        };
        let Some(key) = derive_key(head, passphrase) else {
            return Err(SealError::Damaged { path, at: 0 });
        };
        if head_tag(&key, head).as_ref().map(<[u8; TAG_BYTES]>::as_slice)
            != signed.get(HEAD_BYTES..)
        {
            return Err(SealError::WrongPassphrase { path });
        }
        let piece = Zeroizing::new(Vec::with_capacity(PIECE_BYTES + TAG_BYTES));
        Ok(Self { file, path, key, piece, given: 0, number: 0, ended: false })
    }

    /// Fills the buffer.
    ///
    /// # Errors
    /// Fails if the file is damaged or ends too early.
    pub fn read_exact(&mut self, mut into: &mut [u8]) -> Result<(), SealError> {
        while !into.is_empty() {
            if self.given == self.piece.len() {
                self.open_next()?;
            }
            let there = &self.piece[self.given..];
            let count = there.len().min(into.len());
            into[..count].copy_from_slice(&there[..count]);
            self.given += count;
            into = &mut into[count..];
        }
        Ok(())
    }

    /// Checks that the file ends here.
    ///
    /// # Errors
    /// Fails if more bytes follow or the end was cut off.
    pub fn finish(mut self) -> Result<(), SealError> {
        if self.given == self.piece.len() && !self.ended {
            self.open_next()?;
        }
        if self.ended && self.given == self.piece.len() { Ok(()) } else { Err(self.damage()) }
    }

    /// Returns the error for damage at the current position.
    #[must_use]
    pub fn damage(&self) -> SealError {
        let before = self.number.saturating_sub(1) * (PIECE_BYTES + TAG_BYTES) as u64;
        let at = (HEAD_BYTES + TAG_BYTES + SUM_BYTES) as u64 + before;
        SealError::Damaged { path: self.path.clone(), at }
    }

    fn open_next(&mut self) -> Result<(), SealError> {
        self.piece.clear();
        self.given = 0;
        let number = self.number;
        self.number += 1;
        if self.ended {
            return Err(self.damage());
        }
        let bytes = (PIECE_BYTES + TAG_BYTES) as u64;
        let read = (&self.file).take(bytes).read_to_end(&mut self.piece);
        let read = read.map_err(failed("read", &self.path))?;
        self.ended = (read as u64) < bytes;
        let kind = if self.ended { PieceKind::Last } else { PieceKind::Inner };
        let opened = self.key.open_in_place(nonce(kind, number), Aad::empty(), &mut self.piece);
        let Ok(length) = opened.map(|plain| plain.len()) else {
            self.piece.clear();
            return Err(self.damage());
        };
        self.piece.truncate(length);
        Ok(())
    }
}

fn failed(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> SealError {
    let path = path.to_owned();
    move |source| SealError::File { verb, path, source }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use automaton_core::entropy::SystemEntropy;
    use proptest::prelude::*;

    use super::*;

    const LIGHT: (u8, u8, u8) = (4, 8, 1);

    fn secret(text: &str) -> Secret {
        Secret::new(text.to_owned())
    }

    fn sealed(content: &[u8], step: usize) -> Vec<u8> {
        let file = tempfile::NamedTempFile::new().unwrap();
        let words = secret("words");
        let open = file.reopen().unwrap();
        let mut writer =
            SealedWriter::with_cost(open, file.path(), &words, &SystemEntropy, LIGHT).unwrap();
        content.chunks(step.max(1)).for_each(|bytes| writer.write_all(bytes).unwrap());
        writer.finish().unwrap();
        fs::read(file.path()).unwrap()
    }

    /// Returns the first `length` bytes of a sealed file.
    fn opened(bytes: &[u8], length: usize, words: &str) -> Result<Vec<u8>, SealError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), bytes).unwrap();
        let mut reader = SealedReader::new(file.reopen().unwrap(), file.path(), &secret(words))?;
        let mut content = vec![0; length];
        reader.read_exact(&mut content)?;
        reader.finish()?;
        Ok(content)
    }

    fn content(length: usize) -> Vec<u8> {
        (0..251_u8).cycle().take(length).collect()
    }

    #[test]
    fn what_is_sealed_is_opened_whatever_its_length() {
        for length in [0, 1, 1000, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES] {
            let plain = content(length);
            let bytes = sealed(&plain, 1 + length / 3);
            assert_eq!(opened(&bytes, length, "words").unwrap(), plain, "{length}");
            assert!(opened(&bytes, length + 1, "words").is_err(), "{length}");
            assert!(length == 0 || opened(&bytes, length - 1, "words").is_err(), "{length}");
        }
    }

    #[test]
    fn a_wrong_passphrase_a_foreign_and_a_newer_file_are_told_apart() {
        let bytes = sealed(b"content", 7);
        let told = |bytes: &[u8], words| opened(bytes, 7, words).unwrap_err().to_string();
        assert!(told(&bytes, "other").starts_with("the passphrase does not open "));
        assert!(told(b"PK", "words").ends_with(" is no backup of an automaton"));
        let newer = [&bytes[..16], &[2], &bytes[17..]].concat();
        assert!(told(&newer, "words").contains("is a backup of form 2"));
        let costly = [&bytes[..17], &[40], &bytes[18..]].concat();
        assert!(told(&costly, "words").contains("is damaged or cut off"), "before it is derived");
    }

    #[test]
    fn pieces_cannot_be_moved_dropped_or_repeated() {
        let length = 3 * PIECE_BYTES + 5;
        let piece = PIECE_BYTES + TAG_BYTES;
        let bytes = sealed(&content(length), 5000);
        let (head, pieces) = bytes.split_at(HEAD_BYTES + TAG_BYTES + SUM_BYTES);
        let parts: Vec<&[u8]> = pieces.chunks(piece).collect();
        for order in [&[1, 0, 2, 3][..], &[0, 2, 3], &[0, 1, 2], &[0, 1, 2, 3, 3], &[0, 1, 1, 3]] {
            let moved: Vec<&[u8]> = order.iter().map(|place| parts[*place]).collect();
            let error = opened(&[head, &moved.concat()].concat(), length, "words").unwrap_err();
            assert!(matches!(error, SealError::Damaged { .. }), "{order:?}: {error}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn no_byte_can_be_changed_cut_or_added(
            length in 0_usize..70_000, place in any::<prop::sample::Index>(), flip in 1_u8..,
        ) {
            let bytes = sealed(&content(length), 4096);
            let at = place.index(bytes.len());
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            prop_assert!(opened(&changed, length, "words").is_err(), "{at} of {}", bytes.len());
            prop_assert!(opened(&bytes[..at], length, "words").is_err(), "cut at {at}");
            let longer = [&bytes[..], &[flip]].concat();
            prop_assert!(opened(&longer, length, "words").is_err());
        }
    }
}

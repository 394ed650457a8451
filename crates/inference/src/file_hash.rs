//! SHA-256 of files of models, which may be larger than memory.

use std::io::{self, Read};

use sha2::{Digest, Sha256};

/// Bytes that are read at once.
const PIECE_BYTES: usize = 1 << 20;

/// SHA-256 of all that is left to be read.
///
/// # Errors
/// When it cannot be read.
pub fn sha256_of(mut file: impl Read) -> io::Result<[u8; 32]> {
    let mut hash = Sha256::new();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hash.finalize().into()),
            read => hash.update(&piece[..read]),
        }
    }
}

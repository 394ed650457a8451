//! Pure: a cheap check of a GGUF file's header, before the C++ parser sees it.
//!
//! GGUF is little endian: magic, version, tensor count, key count, the keys with
//! typed values, the tensors' names, shapes and offsets, then the data. The check
//! walks over all of that but the data, and holds each length and count against
//! the size of the file, so that a file that is cut off or lies about a size is
//! refused with a sentence. It must never allocate by what the file claims, and it
//! must never be taken for proof that a file is harmless: the sandbox is for that.

use std::collections::BTreeMap;
use std::io::{self, Read};

use thiserror::Error;

/// Most keys and most tensors that a header may claim.
const COUNT_MAX: u64 = 1 << 16;
/// Most items of an array; vocabularies are the long ones.
const ITEMS_MAX: u64 = 1 << 24;
/// Longest name of a key or a tensor, in bytes.
const NAME_BYTES_MAX: u64 = 1 << 10;
/// Longest single string value, in bytes; chat templates are the long ones.
const STRING_BYTES_MAX: u64 = 1 << 22;
/// Longest text that is kept of a string value, in bytes.
const KEPT_BYTES_MAX: u64 = 256;

/// What is wrong with a file. Offsets and sizes are in bytes.
#[derive(Debug, Error)]
pub enum Flaw {
    /// The file has no bytes.
    #[error("it is empty")]
    Empty,
    /// The first four bytes are not the magic number.
    #[error("it does not begin with the magic number of GGUF")]
    Magic,
    /// A version that is not read.
    #[error("it has GGUF version {0}, and only 2 and 3 are read")]
    Version(u32),
    /// The file ends within the header.
    #[error("it is cut off: the {what} at byte {at} does not fit into {file_bytes} bytes")]
    CutOff {
        /// What was being read.
        what: &'static str,
        /// Where it begins.
        at: u64,
        /// The size of the file.
        file_bytes: u64,
    },
    /// A count or length that no honest file has.
    #[error("it claims an absurd {what} of {claimed}, when {limit} is the most possible here")]
    Absurd {
        /// What is counted.
        what: &'static str,
        /// What the file says.
        claimed: u64,
        /// The most that is accepted.
        limit: u64,
    },
    /// A type number that is not known.
    #[error("it uses the unknown {what} type {number}")]
    UnknownType {
        /// A value's or a tensor's type.
        what: &'static str,
        /// The number in the file.
        number: u32,
    },
    /// The tensors' data ends behind the end of the file.
    #[error("it is cut off: its tensors need {needed} bytes, and the file has {file_bytes}")]
    DataCutOff {
        /// Where the last tensor ends.
        needed: u64,
        /// The size of the file.
        file_bytes: u64,
    },
    /// Reading failed.
    #[error("it could not be read")]
    Read(#[from] io::Error),
}

/// What a header tells about its model.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Header {
    texts: BTreeMap<String, String>,
    numbers: BTreeMap<String, u64>,
}

impl Header {
    /// A string value of the metadata, cut after 256 bytes.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        self.texts.get(key).map(String::as_str)
    }

    /// The model's name; its architecture when it has none.
    #[must_use]
    pub fn name(&self) -> &str {
        let name = self.text("general.name").filter(|name| !name.is_empty());
        name.or_else(|| self.text("general.architecture")).unwrap_or("unnamed")
    }

    /// A number of the model's architecture, such as `context_length`.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<u64> {
        let architecture = self.text("general.architecture")?;
        self.numbers.get(&format!("{architecture}.{key}")).copied()
    }

    /// Bytes of the key-value cache for one token with 16-bit entries: two vectors
    /// a layer of `head_count_kv` heads each. None when the metadata does not tell.
    #[must_use]
    pub fn cache_bytes_per_token(&self) -> Option<u64> {
        let heads = self.number("attention.head_count").filter(|heads| *heads > 0)?;
        let heads_kv = self.number("attention.head_count_kv").unwrap_or(heads);
        let width = self.number("embedding_length")? / heads;
        let key = self.number("attention.key_length").unwrap_or(width);
        let value = self.number("attention.value_length").unwrap_or(width);
        let entries = heads_kv.checked_mul(key.checked_add(value)?)?;
        self.number("block_count")?.checked_mul(entries)?.checked_mul(2)
    }
}

/// Checks the header that `source` begins with, of a file of `file_bytes` bytes.
///
/// # Errors
/// The first [`Flaw`] found.
pub fn check(source: impl Read, file_bytes: u64) -> Result<Header, Flaw> {
    let mut cursor = Cursor { source, at: 0, file_bytes };
    if file_bytes == 0 {
        return Err(Flaw::Empty);
    }
    if &cursor.take::<4>("magic number")? != b"GGUF" {
        return Err(Flaw::Magic);
    }
    let version = cursor.u32("version")?;
    if !(2..=3).contains(&version) {
        return Err(Flaw::Version(version));
    }
    // A tensor takes at least 24 bytes of header and a key 13.
    let tensors = cursor.count("number of tensors", 24)?;
    let keys = cursor.count("number of keys", 13)?;
    let mut header = Header::default();
    for _ in 0..keys {
        read_key(&mut cursor, &mut header)?;
    }
    let mut data_bytes = 0;
    for _ in 0..tensors {
        data_bytes = data_bytes.max(tensor_end(&mut cursor)?);
    }
    let alignment = header.numbers.get("general.alignment").copied().unwrap_or(32);
    if !alignment.is_power_of_two() || alignment > COUNT_MAX {
        return Err(Flaw::Absurd { what: "alignment", claimed: alignment, limit: COUNT_MAX });
    }
    let needed = cursor.at.next_multiple_of(alignment).saturating_add(data_bytes);
    if tensors > 0 && needed > file_bytes {
        return Err(Flaw::DataCutOff { needed, file_bytes });
    }
    Ok(header)
}

/// Reads one key with its value, and keeps it when it is a number or a string.
fn read_key(cursor: &mut Cursor<impl Read>, header: &mut Header) -> Result<(), Flaw> {
    let key = cursor.name("key")?;
    match cursor.u32("type of a value")? {
        8 => {
            let text = cursor.string("string", STRING_BYTES_MAX)?;
            header.texts.insert(key, text);
        }
        9 => skip_array(cursor)?,
        kind => {
            let number = cursor.scalar(kind)?;
            header.numbers.insert(key, number);
        }
    }
    Ok(())
}

/// Steps over an array. Arrays within arrays do not occur and are refused.
fn skip_array(cursor: &mut Cursor<impl Read>) -> Result<(), Flaw> {
    let kind = cursor.u32("type of an array")?;
    let length = cursor.u64("length of an array")?;
    let each = if kind == 8 { 8 } else { scalar_bytes(kind)? };
    if length > ITEMS_MAX {
        return Err(Flaw::Absurd { what: "length of an array", claimed: length, limit: ITEMS_MAX });
    }
    cursor.fits("array", length * each)?;
    if kind != 8 {
        return cursor.skip("array", length * each);
    }
    for _ in 0..length {
        let bytes = cursor.length("string", STRING_BYTES_MAX)?;
        cursor.skip("string", bytes)?;
    }
    Ok(())
}

/// Reads one tensor's entry; where its data ends, from the start of the data.
fn tensor_end(cursor: &mut Cursor<impl Read>) -> Result<u64, Flaw> {
    cursor.name("name of a tensor")?;
    let dimensions = cursor.u32("number of dimensions")?;
    if dimensions > 4 {
        let claimed = u64::from(dimensions);
        return Err(Flaw::Absurd { what: "number of dimensions", claimed, limit: 4 });
    }
    let mut elements = 1_u64;
    for _ in 0..dimensions {
        elements = elements.saturating_mul(cursor.u64("dimension")?);
    }
    let (block, block_bytes) = tensor_block(cursor.u32("type of a tensor")?)?;
    let offset = cursor.u64("offset of a tensor")?;
    let bytes = elements.div_ceil(block).saturating_mul(block_bytes);
    Ok(offset.saturating_add(bytes))
}

/// Bytes of a scalar value by the number of its type.
fn scalar_bytes(kind: u32) -> Result<u64, Flaw> {
    match kind {
        0 | 1 | 7 => Ok(1),
        2 | 3 => Ok(2),
        4..=6 => Ok(4),
        10..=12 => Ok(8),
        number => Err(Flaw::UnknownType { what: "value", number }),
    }
}

/// Elements in a block and the bytes it takes, by the number of a tensor's type;
/// from `ggml_type` and the block structs of the llama.cpp that is linked.
fn tensor_block(kind: u32) -> Result<(u64, u64), Flaw> {
    Ok(match kind {
        24 => (1, 1),
        1 | 25 | 30 => (1, 2),
        0 | 26 => (1, 4),
        27 | 28 => (1, 8),
        2 | 20 => (32, 18),
        3 => (32, 20),
        6 => (32, 22),
        7 => (32, 24),
        8 => (32, 34),
        9 => (32, 36),
        10 => (256, 84),
        11 | 21 => (256, 110),
        12 => (256, 144),
        13 => (256, 176),
        14 => (256, 210),
        15 => (256, 292),
        16 | 35 => (256, 66),
        17 => (256, 74),
        18 => (256, 98),
        19 => (256, 50),
        22 => (256, 82),
        23 => (256, 136),
        29 => (256, 56),
        34 => (256, 54),
        39 => (32, 17),
        40 => (64, 36),
        41 => (128, 18),
        42 => (64, 18),
        number => return Err(Flaw::UnknownType { what: "tensor", number }),
    })
}

/// A reader that knows where it is and how much there can be.
struct Cursor<R> {
    source: R,
    at: u64,
    file_bytes: u64,
}

impl<R: Read> Cursor<R> {
    fn left(&self) -> u64 {
        self.file_bytes.saturating_sub(self.at)
    }

    /// Refuses what does not fit into the rest of the file.
    fn fits(&self, what: &'static str, bytes: u64) -> Result<(), Flaw> {
        let (at, file_bytes) = (self.at, self.file_bytes);
        if bytes <= self.left() { Ok(()) } else { Err(Flaw::CutOff { what, at, file_bytes }) }
    }

    fn take<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Flaw> {
        self.fits(what, N as u64)?;
        let mut bytes = [0; N];
        self.source.read_exact(&mut bytes)?;
        self.at += N as u64;
        Ok(bytes)
    }

    fn u32(&mut self, what: &'static str) -> Result<u32, Flaw> {
        Ok(u32::from_le_bytes(self.take(what)?))
    }

    fn u64(&mut self, what: &'static str) -> Result<u64, Flaw> {
        Ok(u64::from_le_bytes(self.take(what)?))
    }

    /// A count of things that take `least` bytes each.
    fn count(&mut self, what: &'static str, least: u64) -> Result<u64, Flaw> {
        let claimed = self.u64(what)?;
        if claimed > COUNT_MAX {
            return Err(Flaw::Absurd { what, claimed, limit: COUNT_MAX });
        }
        self.fits(what, claimed * least)?;
        Ok(claimed)
    }

    /// The length of a string that follows.
    fn length(&mut self, what: &'static str, limit: u64) -> Result<u64, Flaw> {
        let claimed = self.u64(what)?;
        if claimed > limit {
            return Err(Flaw::Absurd { what, claimed, limit });
        }
        self.fits(what, claimed)?;
        Ok(claimed)
    }

    fn name(&mut self, what: &'static str) -> Result<String, Flaw> {
        self.string(what, NAME_BYTES_MAX)
    }

    /// A string, of which the beginning is kept.
    fn string(&mut self, what: &'static str, limit: u64) -> Result<String, Flaw> {
        let bytes = self.length(what, limit)?;
        let kept = bytes.min(if limit == NAME_BYTES_MAX { limit } else { KEPT_BYTES_MAX });
        let mut text = Vec::new();
        (&mut self.source).take(kept).read_to_end(&mut text)?;
        self.at += kept;
        self.skip(what, bytes - kept)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    fn skip(&mut self, what: &'static str, bytes: u64) -> Result<(), Flaw> {
        self.fits(what, bytes)?;
        let skipped = io::copy(&mut (&mut self.source).take(bytes), &mut io::sink())?;
        if skipped < bytes {
            return Err(Flaw::Read(io::ErrorKind::UnexpectedEof.into()));
        }
        self.at += bytes;
        Ok(())
    }

    /// A scalar as a number: a negative one or a float is kept as its bits.
    fn scalar(&mut self, kind: u32) -> Result<u64, Flaw> {
        Ok(match scalar_bytes(kind)? {
            1 => u64::from(u8::from_le_bytes(self.take("value")?)),
            2 => u64::from(u16::from_le_bytes(self.take("value")?)),
            4 => u64::from(self.u32("value")?),
            _ => self.u64("value")?,
        })
    }
}

#[cfg(test)]
mod tests;

//! The chain's log: one line for each operation, on disk before anybody is answered.
//!
//! ```text
//! CHECKSUM {"version":1,"chain_id":31337,"time":1763780000}
//! CHECKSUM {"act":{"transaction":{"raw":"0x…","time":1763780012}},"head":"0x…"}
//! ```
//!
//! A checksum covers its line and the checksum before it, so no line can be
//! changed, moved or removed unnoticed. Only an unterminated last line may be cut off,
//! since nobody was told of it. Any other defect is an error: this code must never repair it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use alloy_primitives::{B256, Keccak256, hex};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::chain::{ChainOperation, ChainRefusal, token_digest};
use crate::error::DevnetError;

/// The log's name in its folder.
const FILE_NAME: &str = "chain.log";

/// The version of the format above.
const VERSION: u32 = 1;

/// The longest line, in bytes: twice the largest request.
const LINE_MAX: u64 = 2 * crate::rpc::REQUEST_BYTES_MAX as u64;

/// The free space that must exist before a full log is written again, in bytes.
const PROBE_BYTES: usize = 64 << 10;

/// The hexadecimal digits of a checksum, followed by a space.
const SUM_DIGITS: usize = 64;

/// The first line of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GenesisRecord {
    version: u32,
    /// The chain's id.
    pub(crate) chain_id: u64,
    /// The time of block 0, in seconds since the Unix epoch.
    pub(crate) time: u64,
    /// The digest of the token's creation code. Chains of older versions lack it.
    #[serde(default)]
    pub(crate) token: Option<B256>,
}

impl GenesisRecord {
    /// Creates the first line of a new chain.
    ///
    /// # Errors
    /// Fails if the embedded token is unreadable.
    pub(crate) fn new(chain_id: u64, time: u64) -> Result<Self, ChainRefusal> {
        Ok(Self { version: VERSION, chain_id, time, token: Some(token_digest()?) })
    }
}

/// An operation, and the head after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JournalEntry {
    /// The operation.
    pub(crate) act: ChainOperation,
    /// The hash of the last block after it.
    pub(crate) head: B256,
}

/// The log. It is first read to its end, and only then written.
#[derive(Debug)]
pub(crate) struct Journal {
    file: BufReader<File>,
    path: PathBuf,
    sum: B256,
    /// The number of the line that was read last, from 1.
    line: u64,
    /// The bytes of all complete lines.
    whole: u64,
}

impl Journal {
    /// Opens the log of a folder. Creates the folder if it is missing. An empty log begins with
    /// `birth`. Returns the first line in the log.
    ///
    /// # Errors
    /// Fails if the log is in use, unreadable or damaged.
    pub(crate) fn open(
        folder: &Path,
        birth: GenesisRecord,
    ) -> Result<(Self, GenesisRecord), DevnetError> {
        let path = folder.join(FILE_NAME);
        let failed = |source| DevnetError::Log { path: path.clone(), source };
        fs::create_dir_all(folder).map_err(failed)?;
        let options = OpenOptions::new().read(true).append(true).create(true).clone();
        let file = options.open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(DevnetError::InUse { path }),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        // The file's name must be as durable as its content.
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
        let file = BufReader::new(file);
        let mut journal = Self { file, path: path.clone(), sum: B256::ZERO, line: 0, whole: 0 };
        match journal.next_line::<GenesisRecord>()? {
            Some(found) if found.version == VERSION => Ok((journal, found)),
            Some(_) => Err(journal.damaged("there is a version that this program does not know")),
            None => {
                journal.cut_torn_line()?;
                journal.append(&birth).map_err(failed)?;
                Ok((journal, birth))
            }
        }
    }

    /// Returns the next operation, or `None` after the last complete line.
    ///
    /// # Errors
    /// Fails if a line is damaged.
    pub(crate) fn next_record(&mut self) -> Result<Option<JournalEntry>, DevnetError> {
        self.next_line()
    }

    fn next_line<T: DeserializeOwned>(&mut self) -> Result<Option<T>, DevnetError> {
        let mut text = Vec::new();
        let read = self.file.by_ref().take(LINE_MAX).read_until(b'\n', &mut text);
        let bytes = read.map_err(|source| self.failed(source))? as u64;
        self.line += 1;
        if text.pop_if(|last| *last == b'\n').is_none() {
            // The end, or a line that was being written when the power failed.
            let torn = bytes < LINE_MAX;
            return if torn {
                Ok(None)
            } else {
                Err(self.damaged("there is more than a line may have"))
            };
        }
        let (sum, json) = text
            .split_at_checked(SUM_DIGITS)
            .and_then(|(sum, rest)| Some((sum, rest.strip_prefix(b" ")?)))
            .ok_or_else(|| self.damaged("there is no checksum"))?;
        let expected = checksum(self.sum, json);
        if hex::encode(expected).as_bytes() != sum {
            return Err(self.damaged("the checksum does not fit"));
        }
        let value = serde_json::from_slice(json).map_err(|_| {
            self.damaged("there is something that this program does not understand")
        })?;
        self.sum = expected;
        self.whole += bytes;
        Ok(Some(value))
    }

    /// Cuts off everything after the last complete line. Call it at the end of reading, before
    /// anything is written.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub(crate) fn cut_torn_line(&mut self) -> Result<(), DevnetError> {
        let file = self.file.get_ref();
        let cut = file.set_len(self.whole).and_then(|()| file.sync_all());
        cut.map_err(|source| self.failed(source))
    }

    /// Writes a line and waits until it is on disk.
    ///
    /// # Errors
    /// After an error the line may be on disk, in whole or in part, so nothing may be appended.
    pub(crate) fn append<T: Serialize>(&mut self, value: &T) -> io::Result<()> {
        let json = serde_json::to_string(value)?;
        let sum = checksum(self.sum, json.as_bytes());
        let line = format!("{} {json}\n", hex::encode(sum));
        self.file.get_mut().write_all(line.as_bytes())?;
        self.file.get_ref().sync_data()?;
        self.sum = sum;
        self.whole += line.len() as u64;
        Ok(())
    }

    /// Returns true if lines can be written again after a failure. The failed line is cut off, as
    /// its sender was told.
    pub(crate) fn has_room_again(&mut self) -> bool {
        let whole = self.whole;
        let file = self.file.get_mut();
        // Without a line break. If the power fails meanwhile, it is an unterminated line.
        let tried = file
            .set_len(whole)
            .and_then(|()| file.write_all(&[b' '; PROBE_BYTES]))
            .and_then(|()| file.sync_data());
        let cut = file.set_len(whole).and_then(|()| file.sync_all());
        tried.and(cut).is_ok()
    }

    /// Returns the error for the line that was read last.
    pub(crate) fn damaged(&self, why: &'static str) -> DevnetError {
        DevnetError::Damaged { path: self.path.clone(), line: self.line, why }
    }

    fn failed(&self, source: io::Error) -> DevnetError {
        DevnetError::Log { path: self.path.clone(), source }
    }
}

fn checksum(before: B256, json: &[u8]) -> B256 {
    let mut hasher = Keccak256::new();
    hasher.update(before);
    hasher.update(json);
    hasher.finalize()
}

#[cfg(test)]
impl Journal {
    /// Returns the log as if the disk were full.
    pub(crate) fn without_room(self) -> Self {
        let full = OpenOptions::new().write(true).open("/dev/full");
        Self { file: BufReader::new(full.unwrap()), ..self }
    }
}

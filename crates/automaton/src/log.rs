//! `events.jsonl`: what happened, one event a line, for `automaton logs`.
//!
//! The file has a limit: when it is reached, the file becomes `events.jsonl.1`
//! in the place of the one before it. The log is a view; the record is the
//! database. A log that cannot be written must never stop the automaton.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use automaton_core::event::StampedEvent;

use crate::config::file::LogLevel;

/// The name of the log in the home.
pub(crate) const FILE_NAME: &str = "events.jsonl";

/// The size at which a new file is begun, in bytes.
const BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Writes the log of one home.
#[derive(Debug)]
pub(crate) struct EventLog {
    path: PathBuf,
    file: Option<File>,
    bytes: u64,
    level: LogLevel,
}

impl EventLog {
    /// Opens the log of a home; one that cannot be opened writes nothing.
    pub(crate) fn open(home: &Path, level: LogLevel) -> Self {
        let path = home.join(FILE_NAME);
        let (file, bytes) = open(&path).map_or((None, 0), |(file, bytes)| (Some(file), bytes));
        Self { path, file, bytes, level }
    }

    /// Writes one event.
    pub(crate) fn write(&mut self, stamped: &StampedEvent) {
        if stamped.event.report().level < self.level.into() {
            return;
        }
        // silent-ok: an event is plain data, which always has a JSON form.
        let Ok(mut line) = serde_json::to_vec(stamped) else { return };
        line.push(b'\n');
        if self.bytes.saturating_add(line.len() as u64) > BYTES_MAX {
            self.rotate();
        }
        let Some(file) = &mut self.file else { return };
        match file.write_all(&line) {
            Ok(()) => self.bytes = self.bytes.saturating_add(line.len() as u64),
            // silent-ok: a full disk must not stop the automaton, and the
            // record in the database tells of it by itself.
            Err(_) => self.file = None,
        }
    }

    fn rotate(&mut self) {
        self.file = None;
        // silent-ok: the next line is then lost, and only that.
        if fs::rename(&self.path, older(&self.path)).is_err() {
            return;
        }
        if let Ok((file, bytes)) = open(&self.path) {
            (self.file, self.bytes) = (Some(file), bytes);
        }
    }
}

/// The file that holds what came before.
pub(crate) fn older(path: &Path) -> PathBuf {
    path.with_extension("jsonl.1")
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    let bytes = file.metadata()?.len();
    Ok((file, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use automaton_core::event::Event;
    use automaton_core::time::Timestamp;

    #[test]
    fn the_level_decides_and_a_full_file_makes_way() {
        let home = tempfile::tempdir().unwrap();
        let mut log = EventLog::open(home.path(), LogLevel::Warn);
        let quiet = Event::AgentStopped { reason: "x".to_owned() };
        let loud = Event::AgentRestarted { death: "x".to_owned(), restarts: 1 };
        log.write(&StampedEvent { at: Timestamp::EPOCH, event: quiet });
        log.write(&StampedEvent { at: Timestamp::EPOCH, event: loud.clone() });
        let path = home.path().join(FILE_NAME);
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1);
        log.bytes = BYTES_MAX;
        log.write(&StampedEvent { at: Timestamp::EPOCH, event: loud });
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1);
        assert_eq!(fs::read_to_string(older(&path)).unwrap().lines().count(), 1);
    }
}

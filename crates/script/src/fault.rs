//! Crashes on demand: the process kills itself at the n-th arrival at a fault point, or waits
//! there as on a slow disk.
//!
//! Only a home that was created for rehearsal takes part: [`mark_home`] puts a marker into a new
//! home, and [`ArmedFaults::arm`] refuses every other. A crash happens once: a process that is
//! restarted on the same home reads from [`FIRED`] that it has happened. Code here may never mark
//! a home that already contains something.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use automaton_core::error::Classified;
use automaton_core::faults::{FaultPoint, Faults, UnknownFaultPoint};

/// The file that marks a home for rehearsal.
pub const MARKER: &str = ".rehearsal";

/// The file of a home that lists every arrival at a fault point, one a line.
pub const ARRIVALS: &str = ".rehearsal-arrivals";

/// The file of a home that shows that its crash has happened.
pub const FIRED: &str = ".rehearsal-fired";

/// A rehearsal that cannot be set up.
#[derive(Debug, thiserror::Error, Classified)]
pub enum FaultError {
    /// A fault was armed on a home that is not marked for rehearsal.
    #[error("'{home}' was not made for rehearsal, so no crash is rehearsed on it")]
    #[class(Denied, hint = "Rehearse on a home of its own, made by the test harness.")]
    Unmarked {
        /// The home.
        home: PathBuf,
    },
    /// A home to be marked already contains something.
    #[error("'{home}' is not empty, so it cannot become a home for rehearsal")]
    #[class(Denied, hint = "Rehearse on a home of its own, made by the test harness.")]
    NotEmpty {
        /// The home.
        home: PathBuf,
    },
    /// The home could not be created or marked.
    #[error("cannot make '{path}' for rehearsal")]
    #[class(Internal)]
    Mark {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A record of the rehearsal could not be read or opened.
    #[error("cannot keep the record '{path}' of the rehearsal")]
    #[class(Internal)]
    Record {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Creates a home for rehearsal. The directory must be missing or empty.
///
/// # Errors
/// Fails if the home is not empty or cannot be created.
pub fn mark_home(home: &Path) -> Result<(), FaultError> {
    let failed = |source| FaultError::Mark { path: home.to_owned(), source };
    fs::create_dir_all(home).map_err(failed)?;
    if fs::read_dir(home).map_err(failed)?.next().is_some() {
        return Err(FaultError::NotEmpty { home: home.to_owned() });
    }
    let marker = home.join(MARKER);
    let sentence = "This home was made for rehearsal: crashes may be injected into it.\n";
    fs::write(&marker, sentence).map_err(|source| FaultError::Mark { path: marker, source })
}

/// Returns true if a home is marked for rehearsal. A marker that is a link does not count.
#[must_use]
pub fn is_marked(home: &Path) -> bool {
    home.join(MARKER).symlink_metadata().is_ok_and(|found| found.is_file())
}

/// Returns the arrivals recorded in a home, in order. Empty if there is no record.
#[must_use]
pub fn arrivals(home: &Path) -> Vec<FaultPoint> {
    let text = fs::read_to_string(home.join(ARRIVALS)).unwrap_or_default();
    // silent-ok: the last line may be cut off, since the process died.
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// A fault at a point. Written `POINT` or `POINT:N` for a crash, `POINT+Nms` for a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultSpec {
    /// The point.
    pub point: FaultPoint,
    /// The action.
    pub act: FaultAction,
}

/// The action at a fault point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultAction {
    /// Kills the process at this arrival, counted from 1 over all processes of the home.
    Die(NonZeroU32),
    /// Waits this long at every arrival.
    Wait(Duration),
}

/// A text is not a valid [`FaultSpec`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultSpecError {
    /// There is no such point.
    #[error(transparent)]
    Point(#[from] UnknownFaultPoint),
    /// The text after the colon is not a count.
    #[error("'{0}' is no number of arrivals (1 to 4294967295)")]
    Arrival(String),
    /// The text after the plus is not a duration.
    #[error("'{0}' is no time such as 200ms (at most 65535ms)")]
    Wait(String),
}

impl FromStr for FaultSpec {
    type Err = FaultSpecError;

    fn from_str(text: &str) -> Result<Self, FaultSpecError> {
        if let Some((point, wait)) = text.split_once('+') {
            // silent-ok: the error contains the text.
            let millis = wait.strip_suffix("ms").and_then(|digits| digits.parse::<u16>().ok());
            let millis =
                millis.ok_or_else(|| FaultSpecError::Wait(wait.chars().take(40).collect()))?;
            let act = FaultAction::Wait(Duration::from_millis(millis.into()));
            return Ok(Self { point: point.parse()?, act });
        }
        let (point, arrival) = text.split_once(':').unwrap_or((text, "1"));
        let number = |_| FaultSpecError::Arrival(arrival.chars().take(40).collect());
        let act = FaultAction::Die(arrival.parse().map_err(number)?);
        Ok(Self { point: point.parse()?, act })
    }
}

/// An armed fault: the process dies at the chosen arrival.
#[derive(Debug)]
pub struct ArmedFaults {
    charge: FaultSpec,
    fired: PathBuf,
    record: Mutex<FaultLog>,
    kill: fn(),
}

/// The number of arrivals at the chosen point, and the file that lists all.
#[derive(Debug)]
struct FaultLog {
    arrived: u32,
    file: File,
}

impl ArmedFaults {
    /// Arms a fault on a home for rehearsal. `kill` must end the process at once, without
    /// unwinding and without running destructors.
    ///
    /// # Errors
    /// Fails if the home is not marked for rehearsal, or its record cannot be opened.
    pub fn arm(charge: FaultSpec, home: &Path, kill: fn()) -> Result<Self, FaultError> {
        if !is_marked(home) {
            return Err(FaultError::Unmarked { home: home.to_owned() });
        }
        let before = arrivals(home).into_iter().filter(|point| *point == charge.point);
        let arrived = u32::try_from(before.count()).unwrap_or(u32::MAX);
        let path = home.join(ARRIVALS);
        let opened = OpenOptions::new().append(true).create(true).open(&path);
        let file = opened.map_err(|source| FaultError::Record { path, source })?;
        let record = Mutex::new(FaultLog { arrived, file });
        Ok(Self { charge, fired: home.join(FIRED), record, kill })
    }
}

impl Faults for ArmedFaults {
    fn reach(&self, point: FaultPoint) {
        // A poisoned lock still holds a valid number and file.
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        // silent-ok: a full disk must not change the behaviour of the rehearsed code.
        drop(record.file.write_all(format!("{point}\n").as_bytes()));
        if point != self.charge.point {
            return;
        }
        let arrival = match self.charge.act {
            FaultAction::Die(arrival) => arrival,
            FaultAction::Wait(wait) => {
                drop(record);
                std::thread::sleep(wait);
                return;
            }
        };
        record.arrived = record.arrived.saturating_add(1);
        if record.arrived != arrival.get() || self.fired.exists() {
            return;
        }
        // Without this record every next process would die here too. So a crash that cannot be
        // recorded does not happen.
        if fs::write(&self.fired, format!("{point}\n")).is_ok() {
            (self.kill)();
        }
    }
}

#[cfg(test)]
mod tests;

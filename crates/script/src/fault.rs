//! A crash on demand: the process kills itself at the n-th arrival at a point; or
//! it is slow there, as on a bad disk.
//!
//! Only a home that was made for it takes part: [`mark_home`] puts a marker
//! into a home at its creation, and [`ArmedFaults::arm`] refuses every other. A crash
//! comes once: a process that is started again on the same home reads from
//! [`FIRED`] that it has already happened. Nothing here may ever mark a home
//! that already holds something.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use automaton_core::error::Classified;
use automaton_core::faults::{FaultPoint, Faults, UnknownFaultPoint};

/// The file that makes a home one for rehearsal.
pub const MARKER: &str = ".rehearsal";

/// The file of a home that lists every arrival at a fault point, one a line.
pub const ARRIVALS: &str = ".rehearsal-arrivals";

/// The file of a home that says that its crash has happened.
pub const FIRED: &str = ".rehearsal-fired";

/// A rehearsal that cannot be set up.
#[derive(Debug, thiserror::Error, Classified)]
pub enum FaultError {
    /// A fault was armed on a home that was not made for it.
    #[error("'{home}' was not made for rehearsal, so no crash is rehearsed on it")]
    #[class(Denied, hint = "Rehearse on a home of its own, made by the test harness.")]
    Unmarked {
        /// The home.
        home: PathBuf,
    },
    /// A home that already holds something was to be marked.
    #[error("'{home}' is not empty, so it cannot become a home for rehearsal")]
    #[class(Denied, hint = "Rehearse on a home of its own, made by the test harness.")]
    NotEmpty {
        /// The home.
        home: PathBuf,
    },
    /// The home could not be made or marked.
    #[error("cannot make '{path}' for rehearsal")]
    #[class(Internal)]
    Mark {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A record of the rehearsal could not be read or opened.
    #[error("cannot keep the record '{path}' of the rehearsal")]
    #[class(Internal)]
    Record {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Makes a home for rehearsal. The directory must not exist or be empty.
///
/// # Errors
/// The home holds something already, or cannot be made.
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

/// Whether a home was made for rehearsal. A marker that is a link does not count.
#[must_use]
pub fn is_marked(home: &Path) -> bool {
    home.join(MARKER).symlink_metadata().is_ok_and(|found| found.is_file())
}

/// The arrivals recorded in a home, in order; empty when there is no record.
#[must_use]
pub fn arrivals(home: &Path) -> Vec<FaultPoint> {
    let text = fs::read_to_string(home.join(ARRIVALS)).unwrap_or_default();
    // silent-ok: the last line may be cut off, since the process died.
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// What happens at a point. Written `POINT` or `POINT:N` for a crash, `POINT+Nms` for
/// a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultSpec {
    /// Where.
    pub point: FaultPoint,
    /// What.
    pub act: FaultAction,
}

/// What is rehearsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultAction {
    /// The process dies at this arrival, counted from 1 over all processes of the home.
    Die(NonZeroU32),
    /// Every arrival takes so long.
    Wait(Duration),
}

/// A text is no [`FaultSpec`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultSpecError {
    /// There is no such point.
    #[error(transparent)]
    Point(#[from] UnknownFaultPoint),
    /// What follows the colon counts nothing.
    #[error("'{0}' is no number of arrivals (1 to 4294967295)")]
    Arrival(String),
    /// What follows the plus is no time.
    #[error("'{0}' is no time such as 200ms (at most 65535ms)")]
    Wait(String),
}

impl FromStr for FaultSpec {
    type Err = FaultSpecError;

    fn from_str(text: &str) -> Result<Self, FaultSpecError> {
        if let Some((point, wait)) = text.split_once('+') {
            // silent-ok: why it is no number is said by its text.
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

/// Faults that are armed: the process dies at the arrival that was chosen.
#[derive(Debug)]
pub struct ArmedFaults {
    charge: FaultSpec,
    fired: PathBuf,
    record: Mutex<FaultLog>,
    kill: fn(),
}

/// The arrivals at the chosen point so far, and the file that lists all.
#[derive(Debug)]
struct FaultLog {
    arrived: u32,
    file: File,
}

impl ArmedFaults {
    /// Arms a charge on a home made for rehearsal. `kill` must end the process
    /// at once, without unwinding and without running destructors.
    ///
    /// # Errors
    /// The home was not made for rehearsal, or its record cannot be opened.
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
        // A poisoned lock still holds a number and a file: nothing can be half done.
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        // silent-ok: a full disk must not change what the rehearsed code does.
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
        // Without the note the next process would die here too, and the one
        // after it, so a crash that cannot be noted does not come.
        if fs::write(&self.fired, format!("{point}\n")).is_ok() {
            (self.kill)();
        }
    }
}

#[cfg(test)]
mod tests;

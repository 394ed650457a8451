//! The schedule as it is configured: the defaults, and the creator's file over them.
//!
//! The file is read at the start, where an error ends it, and looked at with each
//! tick, where an error changes nothing. What the automaton set itself is in the
//! store alone.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::PathBuf;

use automaton_core::time::{Span, Timestamp};
use automaton_store::{Task, Times};

use super::error::HeartbeatError;
use super::file::{self, Settled};
use super::rhythm::{NEVER, Schedule};

/// The largest file, in bytes.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// What a look at the file has found.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Missing,
    /// A text, right or wrong.
    Text(String),
    Unreadable,
}

/// The configured schedule.
#[derive(Debug)]
pub(crate) struct Plan {
    path: PathBuf,
    /// What was read last.
    seen: Seen,
    /// Every task that the program has, as it runs when nobody says otherwise.
    defaults: Vec<Task>,
    /// The tasks of which this automaton has what they look after.
    offered: Vec<String>,
    settled: Settled,
}

impl Plan {
    /// Reads the file, if there is one.
    ///
    /// # Errors
    /// [`HeartbeatError`], with the line.
    pub(crate) fn load(
        path: PathBuf,
        defaults: Vec<Task>,
        offered: Vec<String>,
    ) -> Result<Self, HeartbeatError> {
        let settled = file::settle(&defaults);
        let mut plan = Self { path, seen: Seen::Missing, defaults, offered, settled };
        plan.reload()?;
        Ok(plan)
    }

    /// Reads the file again; whether it has changed.
    ///
    /// # Errors
    /// [`HeartbeatError`], once for each text that cannot be used. The schedule stays
    /// as it was then.
    pub(crate) fn reload(&mut self) -> Result<bool, HeartbeatError> {
        let (seen, error) = match self.look() {
            Ok(seen) => (seen, None),
            Err(error) => (Seen::Unreadable, Some(error)),
        };
        if seen == self.seen {
            return Ok(false);
        }
        self.seen = seen;
        self.settled = match (&self.seen, error) {
            (_, Some(error)) => return Err(error),
            (Seen::Text(text), None) => file::read(&self.path, text, &self.defaults)?,
            (Seen::Missing | Seen::Unreadable, None) => file::settle(&self.defaults),
        };
        Ok(true)
    }

    fn look(&self) -> Result<Seen, HeartbeatError> {
        let failed = |source| HeartbeatError::Read { path: self.path.clone(), source };
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Seen::Missing),
            Err(error) => return Err(failed(error)),
        };
        let mut text = String::new();
        let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
        if u64::try_from(read).is_ok_and(|read| read > FILE_BYTES_MAX) {
            let reason = format!("it is larger than {FILE_BYTES_MAX} bytes");
            return Err(HeartbeatError::Yaml { path: self.path.clone(), reason });
        }
        Ok(Seen::Text(text))
    }

    /// The entries that can run here, each with where it stands if it begins now.
    pub(crate) fn begin(&self, now: Timestamp) -> Vec<(Task, Times)> {
        let offered = |task: &&Task| self.offered.contains(&task.task);
        let stands = |task: &Task| {
            let begin = |schedule: Schedule| schedule.begin(now);
            let never = |_| Times { anchor: now, next: NEVER };
            (task.clone(), Schedule::new(&task.rhythm).map_or_else(never, begin))
        };
        self.settled.tasks.iter().filter(offered).map(stands).collect()
    }

    /// The longest time between two ticks.
    pub(crate) const fn tick(&self) -> Span {
        self.settled.tick
    }

    /// Of the times of what is not essential, every so-manieth counts for the poor.
    pub(crate) const fn stretch(&self) -> u32 {
        self.settled.stretch
    }
}

//! The schedule as it is configured: the defaults, and the creator's file over them.
//!
//! The file is read at the start, where an error ends it, and looked at with each
//! tick, where an error changes nothing. What the automaton set itself is in the
//! store alone.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::PathBuf;

use automaton_core::file_text;
use automaton_core::time::{Span, Timestamp};
use automaton_store::{ScheduleTimes, TaskConfig};

use super::error::HeartbeatError;
use super::file::{self, ScheduleConfig};
use super::schedule::{NEVER, ScheduleIter};

/// The largest file, in bytes.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// State of the file.
#[derive(Debug, PartialEq, Eq)]
enum ScheduleFileState {
    Missing,
    /// A text, right or wrong.
    Text(String),
    Unreadable,
}

/// The configured schedule.
#[derive(Debug)]
pub(crate) struct ConfiguredSchedule {
    path: PathBuf,
    /// State that was read last.
    seen: ScheduleFileState,
    /// Every task that the program has, as it runs when nobody says otherwise.
    defaults: Vec<TaskConfig>,
    /// The tasks of which this automaton has what they look after.
    offered: Vec<String>,
    config: ScheduleConfig,
}

impl ConfiguredSchedule {
    /// Reads the file, if there is one.
    ///
    /// # Errors
    /// [`HeartbeatError`], with the line.
    pub(crate) fn load(
        path: PathBuf,
        defaults: Vec<TaskConfig>,
        offered: Vec<String>,
    ) -> Result<Self, HeartbeatError> {
        let settled = file::settle(&defaults);
        let mut plan =
            Self { path, seen: ScheduleFileState::Missing, defaults, offered, config: settled };
        plan.reload()?;
        Ok(plan)
    }

    /// Reads the file again; whether it has changed.
    ///
    /// # Errors
    /// [`HeartbeatError`], once for each text that cannot be used. The schedule stays
    /// as it was then.
    pub(crate) fn reload(&mut self) -> Result<bool, HeartbeatError> {
        let (seen, error) = match self.read_state() {
            Ok(seen) => (seen, None),
            Err(error) => (ScheduleFileState::Unreadable, Some(error)),
        };
        if seen == self.seen {
            return Ok(false);
        }
        self.seen = seen;
        self.config = match (&self.seen, error) {
            (_, Some(error)) => return Err(error),
            (ScheduleFileState::Text(text), None) => file::read(&self.path, text, &self.defaults)?,
            (ScheduleFileState::Missing | ScheduleFileState::Unreadable, None) => {
                file::settle(&self.defaults)
            }
        };
        Ok(true)
    }

    fn read_state(&self) -> Result<ScheduleFileState, HeartbeatError> {
        let failed = |source| HeartbeatError::Read { path: self.path.clone(), source };
        let file = match File::open(&self.path) {
            Ok(file) => file,
            // A link whose target is gone is there, and is not a missing file.
            Err(error) if error.kind() == ErrorKind::NotFound && !self.is_entry() => {
                return Ok(ScheduleFileState::Missing);
            }
            Err(error) => return Err(failed(error)),
        };
        let mut bytes = Vec::new();
        let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
        let unfit = |reason| HeartbeatError::Yaml { path: self.path.clone(), reason };
        if u64::try_from(read).is_ok_and(|read| read > FILE_BYTES_MAX) {
            return Err(unfit(format!("it is larger than {FILE_BYTES_MAX} bytes")));
        }
        let text = file_text::decode_owned(&bytes).map_err(|defect| unfit(defect.to_string()))?;
        Ok(ScheduleFileState::Text(text))
    }

    /// Returns true if there is an entry of the file's name, also a link without a target.
    fn is_entry(&self) -> bool {
        self.path.symlink_metadata().is_ok()
    }

    /// The tasks of the file that have no effect here.
    pub(crate) fn without_effect(&self) -> &[String] {
        &self.config.without_effect
    }

    /// The entries that can run here, each with where it stands if it begins now.
    pub(crate) fn begin(&self, now: Timestamp) -> Vec<(TaskConfig, ScheduleTimes)> {
        let offered = |task: &&TaskConfig| self.offered.contains(&task.task);
        let stands = |task: &TaskConfig| {
            let begin = |schedule: ScheduleIter| schedule.begin(now);
            let never = |_| ScheduleTimes { anchor: now, next: NEVER };
            (task.clone(), ScheduleIter::new(&task.schedule).map_or_else(never, begin))
        };
        self.config.tasks.iter().filter(offered).map(stands).collect()
    }

    /// The longest time between two ticks.
    pub(crate) const fn tick(&self) -> Span {
        self.config.tick
    }

    /// Returns n, where tasks that are not essential run at every n-th time in the low tiers.
    pub(crate) const fn interval_multiplier(&self) -> u32 {
        self.config.interval_multiplier
    }
}

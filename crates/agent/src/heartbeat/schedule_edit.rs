//! Pure: what the automaton may do to its own schedule.
//!
//! It may add entries and change them, but never what its creator's file sets, never
//! more than once a minute, and never so that what keeps it alive stops.

use automaton_core::error::Classified;
use automaton_core::time::{Span, Timestamp};
use automaton_store::{ScheduleRule, ScheduleTimes, ScheduledTask, TaskConfig, TaskOrigin};
use automaton_tools::context::ScheduleChange;

use super::due::Need;
use super::file::is_name;
use super::schedule::{ScheduleError, ScheduleIter};
use super::tasks::TaskSpec;

/// The shortest time between two runs of an entry that it has set.
const SPACING_MIN: Span = Span::from_secs(60);

/// The longest time that what keeps it alive may wait.
const ESSENTIAL_MAX: Span = Span::from_secs(3600);

/// The longest time that what keeps its record small and its payments in order may
/// wait.
const KEPT_MAX: Span = Span::from_secs(24 * 3600);

/// It may not change its schedule so.
#[derive(Debug, thiserror::Error, Classified)]
pub(crate) enum ScheduleEditError {
    #[error("'{0}' is no name of an entry; use 1 to 64 letters, digits, '_' and '-'")]
    #[class(User)]
    Name(String),
    #[error("your creator has set '{0}' in heartbeat.yml, and only that file changes it")]
    #[class(Denied)]
    Creators(String),
    #[error("there is no task '{task}'; there are {known}")]
    #[class(User)]
    Task { task: String, known: String },
    #[error("'{0}' runs another task already; give the new entry another name")]
    #[class(User)]
    Taken(String),
    #[error("give either a schedule or an interval, not both")]
    #[class(User)]
    Both,
    #[error("'{0}' cannot run so")]
    #[class(User)]
    Schedule(String, #[source] ScheduleError),
    #[error("'{name}' would run every {gap}; an entry runs at most once in {SPACING_MIN}")]
    #[class(Denied)]
    Tight { name: String, gap: Span },
    #[error("'{0}' keeps you alive or your record whole, and cannot be turned off")]
    #[class(Denied)]
    Essential(String),
    #[error("'{name}' would wait {gap}; it must run at least once in {most}")]
    #[class(Denied)]
    Seldom { name: String, gap: Span, most: Span },
}

/// What becomes of an entry: the row as it is, and the tasks that there are with how
/// each runs when nobody says otherwise.
///
/// # Errors
/// [`ScheduleEditError`]; then nothing changes.
pub(crate) fn change(
    row: Option<&ScheduledTask>,
    offered: &[(&TaskSpec, TaskConfig)],
    asked: ScheduleChange,
    now: Timestamp,
) -> Result<(TaskConfig, ScheduleTimes), ScheduleEditError> {
    let ScheduleChange { name, task, cron, interval, enabled } = asked;
    if !is_name(&name) {
        return Err(ScheduleEditError::Name(name));
    }
    if row.is_some_and(|row| row.task.origin == TaskOrigin::File) {
        return Err(ScheduleEditError::Creators(name));
    }
    let named = row.map(|row| row.task.task.clone());
    if task.as_ref().zip(named.as_ref()).is_some_and(|(asked, named)| asked != named) {
        return Err(ScheduleEditError::Taken(name));
    }
    let task = named.or(task).unwrap_or_else(|| name.clone());
    let Some((spec, default)) = offered.iter().find(|(spec, _)| spec.name == task) else {
        let known: Vec<&str> = offered.iter().map(|(spec, _)| spec.name).collect();
        return Err(ScheduleEditError::Task { task, known: known.join(", ") });
    };
    let before = row.map_or(default, |row| &row.task);
    let schedule = match (cron, interval) {
        (Some(_), Some(_)) => return Err(ScheduleEditError::Both),
        (Some(expression), None) => ScheduleRule::Cron { expression, zone: zone_of(before) },
        (None, Some(interval)) => ScheduleRule::Every(interval),
        (None, None) => before.schedule.clone(),
    };
    let enabled = enabled.unwrap_or(before.enabled);
    let iter = ScheduleIter::new(&schedule)
        .map_err(|source| ScheduleEditError::Schedule(name.clone(), source))?;
    let (shortest, longest) = iter.gaps(now);
    if shortest < SPACING_MIN {
        return Err(ScheduleEditError::Tight { name, gap: shortest });
    }
    // What it adds beside the default of a task may be as seldom as it likes.
    if name == spec.name && spec.essential {
        let most = if spec.need == Need::Essential { ESSENTIAL_MAX } else { KEPT_MAX };
        if !enabled {
            return Err(ScheduleEditError::Essential(name));
        }
        if longest > most {
            return Err(ScheduleEditError::Seldom { name, gap: longest, most });
        }
    }
    let times = match row {
        Some(row) if row.task.schedule == schedule => row.times,
        _ => iter.begin(now),
    };
    let entry =
        TaskConfig { name, task, schedule, enabled, origin: TaskOrigin::Agent, ..before.clone() };
    Ok((entry, times))
}

/// The zone of an entry's cron.
fn zone_of(task: &TaskConfig) -> String {
    match &task.schedule {
        ScheduleRule::Cron { zone, .. } => zone.clone(),
        ScheduleRule::Every(_) => "UTC".to_owned(),
    }
}

#[cfg(test)]
mod tests;

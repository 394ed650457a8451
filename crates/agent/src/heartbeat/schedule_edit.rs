//! Pure: what the automaton may do to its own schedule.
//!
//! It may add entries, change them and remove its own, but never what its creator's file sets, never
//! more than once a minute, and never so that what keeps it alive stops.

use automaton_core::error::Classified;
use automaton_core::time::{Span, Timestamp};
use automaton_store::{ScheduleRule, ScheduleTimes, ScheduledTask, TaskConfig, TaskOrigin};
use automaton_tools::context::{ScheduleAction, ScheduleChange};

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
    #[error("there is an entry '{0}' already; change it with the action 'update'")]
    #[class(User)]
    There(String),
    #[error("there is no entry '{name}'; there are {known}")]
    #[class(User)]
    Missing { name: String, known: String },
    #[error("'{0}' cannot be enabled and disabled at once; leave out `enabled` or `action`")]
    #[class(User)]
    Contradiction(String),
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

/// Result of an edit.
#[derive(Debug)]
pub(crate) enum ScheduleEdit {
    /// It is so from now on.
    Kept(TaskConfig, ScheduleTimes),
    /// It goes, by its name.
    Removed(String),
}

/// Returns the result of an edit, given the current row and the program's tasks with their
/// defaults.
///
/// # Errors
/// [`ScheduleEditError`]; then nothing changes.
pub(crate) fn change(
    row: Option<&ScheduledTask>,
    offered: &[(&TaskSpec, TaskConfig)],
    mut asked: ScheduleChange,
    now: Timestamp,
) -> Result<ScheduleEdit, ScheduleEditError> {
    if !is_name(&asked.name) {
        return Err(ScheduleEditError::Name(asked.name));
    }
    if row.is_some_and(|row| row.task.origin == TaskOrigin::File) {
        return Err(ScheduleEditError::Creators(asked.name));
    }
    let wanted = match asked.action {
        None => asked.enabled,
        Some(ScheduleAction::Add) if row.is_some() => {
            return Err(ScheduleEditError::There(asked.name));
        }
        Some(ScheduleAction::Add) => asked.enabled,
        Some(_) if row.is_none() => {
            let known: Vec<&str> = offered.iter().map(|(spec, _)| spec.name).collect();
            let known = format!("{} and what was added", known.join(", "));
            return Err(ScheduleEditError::Missing { name: asked.name, known });
        }
        Some(ScheduleAction::Update) => asked.enabled,
        Some(ScheduleAction::Enable) => Some(true),
        Some(ScheduleAction::Disable) => Some(false),
        Some(ScheduleAction::Remove) => return Ok(remove(offered, asked.name, now)),
    };
    if asked.enabled.is_some() && asked.enabled != wanted {
        return Err(ScheduleEditError::Contradiction(asked.name));
    }
    asked.enabled = wanted;
    let (entry, times) = set(row, offered, asked, now)?;
    Ok(ScheduleEdit::Kept(entry, times))
}

/// An entry of its own goes; one that everybody has is again as everybody has it.
fn remove(offered: &[(&TaskSpec, TaskConfig)], name: String, now: Timestamp) -> ScheduleEdit {
    let default = offered.iter().find(|(spec, _)| spec.name == name);
    // silent-ok: the defaults have schedules that a test reads.
    let iter = default.and_then(|(_, task)| ScheduleIter::new(&task.schedule).ok());
    match default.zip(iter) {
        Some(((_, task), iter)) => ScheduleEdit::Kept(task.clone(), iter.begin(now)),
        None => ScheduleEdit::Removed(name),
    }
}

/// An entry with what is asked of it.
fn set(
    row: Option<&ScheduledTask>,
    offered: &[(&TaskSpec, TaskConfig)],
    asked: ScheduleChange,
    now: Timestamp,
) -> Result<(TaskConfig, ScheduleTimes), ScheduleEditError> {
    let ScheduleChange { name, task, cron, interval, enabled, action: _ } = asked;
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

//! Pure: what `heartbeat.yml` says, and what comes of it over the defaults.
//!
//! Everything in it is checked when it is read: what cannot run is refused with its
//! line, never left out in silence.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use automaton_core::file_text;
use automaton_core::tier::SurvivalTier;
use automaton_core::time::Span;
use automaton_store::{ScheduleRule, TaskConfig, TaskOrigin};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_saphyr::Spanned;

use super::error::HeartbeatError;
use super::schedule::ScheduleIter;

/// Entries that a file may have.
const ENTRIES_MAX: usize = 64;

/// The longest name of an entry, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 64;

/// The longest that a run may be allowed to take.
const TIMEOUT_MAX_MS: i64 = 600_000;

/// The most tries after the first.
const RETRIES_MAX: u32 = 10;

/// Tasks of other runtimes that this program does not have. Homes that are brought along have
/// entries for them, which are passed over.
const ELSEWHERE: [&str; 8] = [
    "check_for_updates",
    "check_child_health",
    "prune_dead_children",
    "colony_health_check",
    "colony_financial_report",
    "agent_pool_optimize",
    "knowledge_store_prune",
    "dead_agent_cleanup",
];

/// Content of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScheduleConfig {
    /// The longest time between two ticks.
    pub(crate) tick: Span,
    /// In the low tiers other tasks run at every n-th of their times.
    pub(crate) interval_multiplier: u32,
    /// The zone of cron expressions.
    pub(crate) zone: String,
    /// The entries.
    pub(crate) tasks: Vec<TaskConfig>,
    /// Tasks of entries that were passed over, since only other runtimes have them.
    pub(crate) without_effect: Vec<String>,
}

/// The file as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct ScheduleFile {
    timezone: Option<Spanned<String>>,
    default_interval_ms: Option<Spanned<i64>>,
    low_compute_multiplier: Option<Spanned<String>>,
    /// Empty where all that stood below it is commented out.
    entries: Option<Vec<ScheduleFileEntry>>,
}

/// An entry as it is written. What is missing comes from the entry of its name among
/// the defaults, or from the default of its task.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ScheduleFileEntry {
    name: Spanned<String>,
    task: Option<String>,
    schedule: Option<String>,
    interval_ms: Option<i64>,
    enabled: Option<bool>,
    timeout_ms: Option<i64>,
    max_retries: Option<u32>,
    tier_minimum: Option<SurvivalTier>,
    priority: Option<u32>,
    /// Files in the field have it empty; no task takes any.
    params: Option<BTreeMap<String, IgnoredAny>>,
}

/// Position in a file.
#[derive(Clone, Copy)]
struct FilePosition<'a> {
    path: &'a Path,
    line: u64,
}

impl FilePosition<'_> {
    fn wrong(
        self,
        key: &'static str,
        value: impl Display,
        rule: impl Into<String>,
    ) -> HeartbeatError {
        let rule = rule.into();
        let path = self.path.to_owned();
        let line = self.line;
        let value = format!("'{value}'");
        HeartbeatError::Value { path, line, key, value, rule }
    }

    fn number_within<T: PartialOrd + Display + Copy>(
        self,
        key: &'static str,
        value: T,
        least: T,
        most: T,
        rule: &'static str,
    ) -> Result<T, HeartbeatError> {
        if value < least || value > most {
            return Err(self.wrong(key, value, rule));
        }
        Ok(value)
    }
}

/// Returns the schedule of the defaults alone.
pub(crate) fn settle(defaults: &[TaskConfig]) -> ScheduleConfig {
    let tick = Span::from_secs(60);
    let zone = "UTC".to_owned();
    let tasks = defaults.to_vec();
    let without_effect = Vec::new();
    ScheduleConfig { tick, interval_multiplier: 4, zone, tasks, without_effect }
}

/// Reads a file over the defaults, which name every task that there is.
///
/// # Errors
/// [`HeartbeatError`] with the line of the first thing that is wrong.
pub(crate) fn read(
    path: &Path,
    text: &str,
    defaults: &[TaskConfig],
) -> Result<ScheduleConfig, HeartbeatError> {
    let mut settled = settle(defaults);
    let yaml = |error: serde_saphyr::Error| HeartbeatError::Yaml {
        path: path.to_owned(),
        reason: file_text::with_correction(&error.without_snippet().to_string()),
    };
    let written: ScheduleFile =
        serde_saphyr::from_str::<Option<ScheduleFile>>(text).map_err(yaml)?.unwrap_or_default();
    if let Some(value) = written.default_interval_ms {
        let rule = "1000 to 3600000 milliseconds";
        let place = at(path, &value);
        let ms = place.number_within("defaultIntervalMs", value.value, 1000, 3_600_000, rule)?;
        settled.tick = Span::from_millis(ms);
    }
    if let Some(value) = written.low_compute_multiplier {
        let key = "lowComputeMultiplier";
        let rule = "a whole number of 1 to 100";
        let place = at(path, &value);
        let text = value.value.strip_suffix(".0").unwrap_or(&value.value);
        let parsed = text.parse().map_err(|_| place.wrong(key, text, rule))?;
        settled.interval_multiplier = place.number_within(key, parsed, 1, 100, rule)?;
    }
    if let Some(zone) = written.timezone {
        let name = zone.value.clone();
        let probe = ScheduleRule::Cron { expression: "* * * * *".to_owned(), zone: name.clone() };
        let rule = "a name of the IANA database, as 'UTC' or 'Europe/Berlin'";
        let place = at(path, &zone);
        ScheduleIter::new(&probe).map_err(|_| place.wrong("timezone", &name, rule))?;
        settled.zone = name;
    }
    for task in &mut settled.tasks {
        if let ScheduleRule::Cron { zone, .. } = &mut task.schedule {
            zone.clone_from(&settled.zone);
        }
    }
    let defaults = settled.tasks.clone();
    for (index, entry) in written.entries.into_iter().flatten().enumerate() {
        let place = at(path, &entry.name);
        if index >= ENTRIES_MAX {
            return Err(place.wrong("the number of entries", index + 1, "64 at most"));
        }
        let task = named_task(&entry, &defaults);
        if ELSEWHERE.contains(&task.as_str()) {
            settled.without_effect.push(task);
            continue;
        }
        let task = entry_over(place, entry, task, &defaults, &settled.zone)?;
        match settled.tasks.iter_mut().find(|other| other.name == task.name) {
            Some(other) if other.origin == TaskOrigin::File => {
                return Err(place.wrong("the name of an entry", &task.name, "there once"));
            }
            Some(other) => *other = task,
            None => settled.tasks.push(task),
        }
    }
    Ok(settled)
}

fn at<'a, T>(path: &'a Path, value: &Spanned<T>) -> FilePosition<'a> {
    FilePosition { path, line: value.referenced.line() }
}

/// The text of a field; a blank one is left out.
fn filled(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

/// Returns the task that an entry is for: the named one, else that of the default of its name.
fn named_task(entry: &ScheduleFileEntry, defaults: &[TaskConfig]) -> String {
    let name = &entry.name.value;
    let default = defaults.iter().find(|task| task.name == *name);
    filled(entry.task.clone())
        .or_else(|| default.map(|default| default.task.clone()))
        .unwrap_or_else(|| name.clone())
}

/// An entry over what it leaves out.
fn entry_over(
    place: FilePosition<'_>,
    entry: ScheduleFileEntry,
    task: String,
    defaults: &[TaskConfig],
    zone: &str,
) -> Result<TaskConfig, HeartbeatError> {
    let name = entry.name.value;
    if !is_name(&name) {
        let rule = "1 to 64 letters, digits, '_' and '-'";
        return Err(place.wrong("the name of an entry", name, rule));
    }
    let Some(base) = defaults.iter().find(|known| known.name == task) else {
        let nearest = file_text::nearest_name(&task, defaults.iter().map(|it| it.name.as_str()));
        let rule = match nearest {
            Some(nearest) => format!("one that docs/heartbeat.md lists, such as '{nearest}'"),
            None => "one that docs/heartbeat.md lists".to_owned(),
        };
        return Err(place.wrong("the task of an entry", task, rule));
    };
    if let Some(param) = entry.params.iter().flat_map(BTreeMap::keys).next() {
        return Err(place.wrong("a param of an entry", param, "left out: no task takes any"));
    }
    let schedule = match (filled(entry.schedule), entry.interval_ms) {
        (Some(expression), None) => ScheduleRule::Cron { expression, zone: zone.to_owned() },
        (None, Some(ms)) => ScheduleRule::Every(Span::from_millis(ms)),
        (None, None) => base.schedule.clone(),
        (Some(_), Some(_)) => {
            let rule = "either a schedule or an intervalMs";
            return Err(place.wrong("the entry", name, rule));
        }
    };
    if let Err(source) = ScheduleIter::new(&schedule) {
        let path = place.path.to_owned();
        let line = place.line;
        return Err(HeartbeatError::Entry { path, line, name, source });
    }
    let timeout = entry.timeout_ms.unwrap_or_else(|| base.timeout.as_millis());
    let timeout =
        place.number_within("timeoutMs", timeout, 100, TIMEOUT_MAX_MS, "100 to 600000")?;
    let retries = entry.max_retries.unwrap_or(base.max_retries);
    Ok(TaskConfig {
        name,
        task,
        schedule,
        enabled: entry.enabled.unwrap_or(true),
        origin: TaskOrigin::File,
        priority: entry.priority.unwrap_or(base.priority),
        tier_minimum: entry.tier_minimum.unwrap_or(base.tier_minimum),
        timeout: Span::from_millis(timeout),
        max_retries: place.number_within("maxRetries", retries, 0, RETRIES_MAX, "0 to 10")?,
    })
}

/// Returns true if a text can name an entry.
pub(crate) fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(fits)
}

#[cfg(test)]
mod tests;

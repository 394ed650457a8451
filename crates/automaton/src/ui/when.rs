//! Times as a person reads them: by the clock on the wall, or how long ago.
//!
//! The zone is the system's, or UTC where `--utc` asks for it or none is known. It is for
//! people alone: `--json` has times in UTC.

use std::fs;
use std::path::Path;

use automaton_core::time::{Clock, Span, SystemClock, Timestamp};
use jiff::tz::TimeZone;

use super::units;

/// File in which the system keeps its zone.
const LOCAL: &str = "/etc/localtime";
/// Folder before the name of a zone in the path that [`LOCAL`] leads to.
const ZONES: &str = "zoneinfo/";
/// The largest file that is read as a zone, in bytes.
const ZONE_BYTES_MAX: u64 = 1 << 20;

/// Display of times.
#[derive(Debug, Clone)]
pub(crate) struct WallClock {
    zone: TimeZone,
}

impl WallClock {
    /// In UTC.
    pub(crate) const fn utc() -> Self {
        Self { zone: TimeZone::UTC }
    }

    /// In the system's zone, unless the environment's `TZ` names another.
    pub(crate) fn local(tz: Option<&str>) -> Self {
        let zone = tz.map_or_else(system, |tz| find_zone(tz.strip_prefix(':').unwrap_or(tz)));
        Self { zone: zone.unwrap_or(TimeZone::UTC) }
    }

    /// A time with its date: `2026-11-22 09:04:58`, with `UTC` where it is that.
    pub(crate) fn at(&self, at: Timestamp) -> String {
        self.format(at, "%Y-%m-%d %H:%M:%S")
    }

    /// The same without the date where that is today's.
    pub(crate) fn near(&self, at: Timestamp, now: Timestamp) -> String {
        let day = |at| self.zoned(at).map(|zoned| zoned.date());
        let same = day(at).is_some() && day(at) == day(now);
        self.format(at, if same { "%H:%M:%S" } else { "%Y-%m-%d %H:%M" })
    }

    /// Formats a time with its age.
    pub(crate) fn with_age(&self, at: Timestamp) -> String {
        let now = SystemClock.now();
        format!("{} ({})", self.near(at, now), ago(at, now))
    }

    fn zoned(&self, at: Timestamp) -> Option<jiff::Zoned> {
        // silent-ok: a time that no calendar has is shown by its number.
        let at = jiff::Timestamp::from_millisecond(at.as_millis()).ok()?;
        Some(at.to_zoned(self.zone.clone()))
    }

    fn format(&self, at: Timestamp, form: &str) -> String {
        let Some(zoned) = self.zoned(at) else { return at.to_string() };
        let suffix = if self.zone == TimeZone::UTC { " UTC" } else { "" };
        format!("{}{suffix}", zoned.strftime(form))
    }
}

/// Formats the distance of a time: `just now`, `2 min ago`, `in 3 h`.
pub(crate) fn ago(at: Timestamp, now: Timestamp) -> String {
    let past = now.since(at);
    let future = at.since(now);
    let rough = |span: Span| {
        let secs = span.as_millis() / 1000;
        units::span(Span::from_secs(match secs {
            0..60 => secs,
            60..3600 => secs - secs % 60,
            3600..86_400 => secs - secs % 3600,
            _ => secs - secs % 86_400,
        }))
    };
    match (past.as_millis() / 1000, future.as_millis() / 1000) {
        (0, 0) => "just now".to_owned(),
        (_, 0) => format!("{} ago", rough(past)),
        _ => format!("in {}", rough(future)),
    }
}

fn system() -> Option<TimeZone> {
    let leads_to = fs::canonicalize(LOCAL).ok()?;
    // silent-ok: a zone that has no known name is read from its file.
    let by_name = leads_to.to_str()?.split_once(ZONES).and_then(|(_, name)| find_zone(name));
    by_name.or_else(|| in_file(&leads_to))
}

/// A zone by its name, the path of its file, or the rule of POSIX.
fn find_zone(name: &str) -> Option<TimeZone> {
    if name.starts_with('/') {
        return in_file(Path::new(name));
    }
    // silent-ok: what names no zone is shown in UTC, and said to be.
    TimeZone::get(name).or_else(|_| TimeZone::posix(name)).ok()
}

fn in_file(path: &Path) -> Option<TimeZone> {
    // silent-ok: as above.
    let fits = fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= ZONE_BYTES_MAX);
    TimeZone::tzif("local", &fs::read(path).ok().filter(|_| fits)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp::from_millis(1_771_509_802_123);

    #[test]
    fn times_are_those_of_the_zone() {
        assert_eq!(WallClock::utc().at(NOON), "2026-02-19 14:03:22 UTC");
        assert_eq!(WallClock::local(Some("Europe/Berlin")).at(NOON), "2026-02-19 15:03:22");
        assert_eq!(WallClock::local(Some(":Asia/Kolkata")).at(NOON), "2026-02-19 19:33:22");
        assert_eq!(
            WallClock::local(Some("EST5EDT,M3.2.0,M11.1.0")).at(NOON),
            "2026-02-19 09:03:22"
        );
        assert_eq!(WallClock::local(Some("No/Where")).at(NOON), "2026-02-19 14:03:22 UTC");
        assert_eq!(WallClock::local(Some("/etc/passwd")).at(NOON), "2026-02-19 14:03:22 UTC");
    }

    #[test]
    fn the_date_is_left_out_today() {
        let berlin = WallClock::local(Some("Europe/Berlin"));
        let later = |hours: i64| NOON.after(Span::from_secs(hours * 3600));
        assert_eq!(berlin.near(NOON, later(8)), "15:03:22");
        assert_eq!(berlin.near(NOON, later(9)), "2026-02-19 15:03");
    }

    #[test]
    fn what_is_long_ago_is_told_roughly() {
        let at = |secs: i64| ago(NOON, NOON.after(Span::from_secs(secs)));
        assert_eq!(
            [0, 12, 95, 7300, 200_000].map(at).join(", "),
            "just now, 12 s ago, 1 min ago, 2 h ago, 2 days ago"
        );
        assert_eq!(ago(NOON.after(Span::from_secs(300)), NOON), "in 5 min");
        let never = Timestamp::from_millis(i64::MAX);
        assert!(!WallClock::utc().at(never).is_empty());
    }
}

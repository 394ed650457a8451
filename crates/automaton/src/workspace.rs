//! Result of a run: new and changed files of the workspace, and commands to continue.
//!
//! The workspace is the automaton's, and it may put there what it likes: no link is
//! followed, the number of files that are looked at has a limit, and names are shown
//! without their control characters.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use automaton_core::record::TurnRecord;
use automaton_core::time::Timestamp;
use automaton_store::Reader;
use automaton_tools::list;

use crate::ui::text::{plain, short};
use crate::ui::units::{many, size};

/// Files that are looked at.
const FILES_MAX: usize = 5000;
/// Folders below each other that are looked into.
const DEPTH_MAX: usize = 12;
/// Files that are named.
const NAMED_MAX: usize = 8;
/// Folders that programs fill by the way: nobody asked for what is in them.
const MADE_BY_THE_WAY: [&str; 3] = ["__pycache__", "node_modules", "target"];
/// Turns that are looked at, newest first.
const TURNS_MAX: u32 = 1000;
/// Characters of a name that are shown.
const NAME_CHARS_MAX: usize = 80;

/// One file: its size in bytes, and when it was changed last, in nanoseconds.
type FileStamp = (u64, i128);

/// The files of a workspace at one moment, by their paths in it.
#[derive(Debug, Default)]
pub(crate) struct WorkspaceFiles(BTreeMap<PathBuf, FileStamp>);

/// Changes of a workspace.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct WorkspaceSummary {
    /// The newest files with their sizes in bytes, newest first.
    newest: Vec<(PathBuf, u64)>,
    /// Number of further files.
    more: usize,
    /// True if one of them existed before.
    changed: bool,
}

/// The times at which an automaton can have changed files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WorkingTimes {
    /// At any time: a command went on beside its turns, or its record cannot be read.
    Always,
    /// From and until these moments, in nanoseconds.
    Turns(Vec<(i128, i128)>),
}

/// Nanoseconds by which a file system may round a time, or be late with it.
const ROUNDING_NANOS: i128 = 1_000_000_000;

/// Returns whether a tool leaves a command running after the turn that called it.
fn leaves_command_running(tool: &str) -> bool {
    list::find(tool).is_some_and(|tool| tool.profile().leaves_command_running)
}

impl WorkingTimes {
    /// Reads the times of the newest turns from the record of a home.
    pub(crate) fn read(database: &Path) -> Self {
        // silent-ok: without a record all that is new is shown.
        let turns = Reader::open(database).and_then(|reader| reader.turns(TURNS_MAX));
        turns.map_or(Self::Always, |turns| Self::from_turns(&turns))
    }

    fn from_turns(turns: &[TurnRecord]) -> Self {
        let mut calls = turns.iter().flat_map(|turn| &turn.calls);
        if calls.any(|call| leaves_command_running(&call.tool)) {
            return Self::Always;
        }
        let nanos = |at: Timestamp| i128::from(at.as_millis()) * 1_000_000;
        let time = |turn: &TurnRecord| {
            let until = turn.committed_at.map_or(i128::MAX, |at| nanos(at) + ROUNDING_NANOS);
            (nanos(turn.opened_at) - ROUNDING_NANOS, until)
        };
        Self::Turns(turns.iter().map(time).collect())
    }

    fn contain(&self, at: i128) -> bool {
        match self {
            Self::Always => true,
            Self::Turns(turns) => turns.iter().any(|(from, until)| (*from..=*until).contains(&at)),
        }
    }
}

impl WorkspaceFiles {
    /// Looks at a workspace; what cannot be read is not there.
    pub(crate) fn read(workspace: &Path) -> Self {
        let mut files = Self::default();
        files.visit_folder(workspace, Path::new(""), DEPTH_MAX);
        files
    }

    fn visit_folder(&mut self, workspace: &Path, folder: &Path, depth: usize) {
        // silent-ok: a folder that cannot be read holds nothing that could be shown.
        let Ok(entries) = fs::read_dir(workspace.join(folder)) else { return };
        for entry in entries.flatten() {
            let name = folder.join(entry.file_name());
            let hidden = entry.file_name().as_encoded_bytes().starts_with(b".")
                || MADE_BY_THE_WAY.iter().any(|made| entry.file_name() == *made);
            // silent-ok: as above. A link is neither a file nor a folder here.
            let Ok(found) = entry.metadata() else { continue };
            match () {
                () if self.0.len() >= FILES_MAX => return,
                () if hidden => {}
                () if found.is_dir() && depth > 0 => self.visit_folder(workspace, &name, depth - 1),
                () if found.is_file() => {
                    let changed =
                        i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec());
                    self.0.insert(name, (found.len(), changed));
                }
                () => {}
            }
        }
    }

    /// Returns the files that are new or changed since an earlier look and that were changed
    /// at its working times. What was put there at other times is somebody else's.
    pub(crate) fn since(self, before: &Self, times: &WorkingTimes) -> WorkspaceSummary {
        let mut changed = false;
        let mut newest: Vec<(PathBuf, FileStamp)> = Vec::new();
        for (path, seen) in self.0 {
            let was = before.0.get(&path);
            if was != Some(&seen) && times.contain(seen.1) {
                changed |= was.is_some();
                newest.push((path, seen));
            }
        }
        newest.sort_by_key(|(_, (_, at))| std::cmp::Reverse(*at));
        let more = newest.len().saturating_sub(NAMED_MAX);
        let named = newest.into_iter().take(NAMED_MAX);
        WorkspaceSummary {
            newest: named.map(|(path, (bytes, _))| (path, bytes)).collect(),
            more,
            changed,
        }
    }
}

impl WorkspaceSummary {
    /// Describes the made files and their place; `None` if there are none. Without a place they
    /// cannot be looked at.
    pub(crate) fn describe(&self, place: Option<&str>) -> Option<String> {
        let name = |path: &Path| short(&path.display().to_string(), NAME_CHARS_MAX);
        let made = if self.changed { "Made or changed" } else { "Made" };
        match self.newest.as_slice() {
            [] => None,
            [(path, bytes)] => {
                let name = name(path);
                let size = size(*bytes);
                Some(match place {
                    Some(place) => format!("{made} {place}/{name} ({size})"),
                    None => format!("{made} {name} ({size}) in its workspace"),
                })
            }
            files => {
                let mut told = format!("{made} in {}:", place.unwrap_or("its workspace"));
                for (path, bytes) in files {
                    told.push_str(&format!("\n  {} ({})", name(path), size(*bytes)));
                }
                if self.more > 0 {
                    // silent-ok: more files than a number can count are not looked at.
                    let more = u64::try_from(self.more).unwrap_or_default();
                    told.push_str(&format!("\n  and {} more", many(more, "file")));
                }
                Some(told)
            }
        }
    }
}

/// Lists commands to continue after a run. `again` is the one that starts it.
pub(crate) fn next_steps(program: &str, again: &str, home: Option<&Path>) -> String {
    let home = home.map_or_else(String::new, |home| format!(" --home {}", quoted(home)));
    let commands = [
        ("send", " \"…\"", "leaves it a message"),
        (again, "", "starts it again"),
        ("turns", "", "shows what it did"),
    ];
    let lines: Vec<(String, &str)> = commands
        .map(|(command, rest, what)| (format!("{program} {command}{home}{rest}"), what))
        .into();
    let widest = lines.iter().map(|(line, _)| line.chars().count()).max().unwrap_or_default();
    let told = lines.iter().map(|(line, what)| format!("  {line:<widest$}  {what}"));
    format!("Next:\n{}", told.collect::<Vec<_>>().join("\n"))
}

/// A path as a shell takes it.
pub(crate) fn quoted(path: &Path) -> String {
    let text = plain(&path.display().to_string());
    let harmless = |c: char| c.is_alphanumeric() || "/._-+~,:@%".contains(c);
    if text.chars().all(harmless) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// The program as it was typed, or by its path from here where that is shorter.
pub(crate) fn program(typed: Option<&Path>, here: Option<&Path>) -> String {
    let typed = typed.unwrap_or(Path::new("automaton"));
    match here.and_then(|here| typed.strip_prefix(here).ok()) {
        Some(below) if below.components().count() > 1 => quoted(below),
        Some(below) => format!("./{}", quoted(below)),
        None => quoted(typed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_is_told_newest_first_and_no_link_is_followed() {
        let world = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(world.path().join(name), text).unwrap();
        write("old.txt", "old");
        let before = WorkspaceFiles::read(world.path());
        let nothing = WorkspaceFiles::read(world.path()).since(&before, &WorkingTimes::Always);
        assert_eq!((nothing.describe(None), nothing), (None, WorkspaceSummary::default()));
        fs::create_dir(world.path().join("notes")).unwrap();
        write("notes/a\u{1b}[2J.txt", "seven c");
        std::os::unix::fs::symlink("/etc", world.path().join("etc")).unwrap();
        write(".hidden", "x");
        let one = WorkspaceFiles::read(world.path()).since(&before, &WorkingTimes::Always);
        assert_eq!(one.describe(Some("~/w")).unwrap(), "Made ~/w/notes/a[2J.txt (7 bytes)");
        assert_eq!(one.describe(None).unwrap(), "Made notes/a[2J.txt (7 bytes) in its workspace");
        write("old.txt", "other");
        (0..10).for_each(|at| write(&format!("{at}"), "x"));
        fs::create_dir(world.path().join("__pycache__")).unwrap();
        write("__pycache__/a.pyc", "x");
        let many = WorkspaceFiles::read(world.path()).since(&before, &WorkingTimes::Always);
        let told = many.describe(Some("~/w")).unwrap();
        assert!(
            told.starts_with("Made or changed in ~/w:\n  ")
                && told.ends_with("\n  and 4 files more"),
            "{told}"
        );
        assert_eq!(told.lines().count(), 10, "{told}");
    }

    #[test]
    fn what_was_put_there_while_it_did_nothing_is_not_its_own() {
        let world = tempfile::tempdir().unwrap();
        let before = WorkspaceFiles::read(world.path());
        let write = |name: &str, secs: u64| {
            let file = fs::File::create(world.path().join(name)).unwrap();
            file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(secs))
                .unwrap();
        };
        write("report.md", 1_000);
        write("sales.csv", 2_000);
        let second = 1_000_000_000;
        let times = WorkingTimes::Turns(vec![(999 * second, 1_010 * second), (1, 2)]);
        let made = WorkspaceFiles::read(world.path()).since(&before, &times);
        assert_eq!(made.describe(Some("~/w")).unwrap(), "Made ~/w/report.md (0 bytes)");
        let idle = WorkspaceFiles::read(world.path()).since(&before, &WorkingTimes::Turns(vec![]));
        assert_eq!(idle, WorkspaceSummary::default());
    }

    #[test]
    fn the_next_steps_can_be_typed() {
        let told = next_steps("automaton", "run", Some(Path::new("/tmp/a b")));
        assert!(
            told.contains("\n  automaton send --home '/tmp/a b' \"…\"  leaves it a message"),
            "{told}"
        );
        let check = |typed: &str, shown: &str| {
            assert_eq!(program(Some(Path::new(typed)), Some(Path::new("/src/x"))), shown);
        };
        check("automaton", "automaton");
        check("/src/x/target/release/automaton", "target/release/automaton");
        check("/src/x/automaton", "./automaton");
        check("/usr/bin/automaton", "/usr/bin/automaton");
    }
}

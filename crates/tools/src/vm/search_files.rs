//! `search_files`: lines of the workspace's files that match a pattern.
//!
//! Patterns are matched in time linear in the text. Files whose names say that they hold
//! keys are passed over, as `read_file` would refuse them; what the lines are is labelled
//! as the least trusted file that one of them is from.

use std::fmt::Write as _;

use automaton_core::error::ErrorClass;
use automaton_core::intent::Intent;
use automaton_core::record::CallRecord;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_core::trust::Label;
use automaton_memory::tokens::estimate;
use automaton_policy::{Permit, may_be_read};
use automaton_sandbox::{Listing, WorkspacePath};
use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;

use super::list_files::{is_runtimes, listed, looking};
use crate::context::ToolContext;
use crate::digest::{CallDigest, CallKind, argument, path};
use crate::error::ToolError;
use crate::profile::{ToolAudience, ToolFamily, ToolProfile};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

/// Levels of folders that are searched.
const DEPTH: u32 = 16;
/// Names that are looked at.
const ENTRIES_MAX: usize = 5_000;
/// Bytes of one file, and of all, that are searched.
const FILE_BYTES_MAX: u64 = 16 << 20;
const BYTES_MAX: u64 = 32 << 20;
/// Matches of one page.
const PAGE: usize = 100;
/// Characters of a line that are told.
const LINE_CHARS_MAX: usize = 240;
/// Tokens of what is told about the search itself.
const FOOTER_TOKENS: u32 = 60;
/// Largest compiled pattern, in bytes. Its size is a factor of the cost of each byte of text.
const PATTERN_BYTES_MAX: usize = 32 << 10;
/// Largest cache that reduces that factor, in bytes.
const DFA_BYTES_MAX: usize = 4 << 20;
/// The longest line that is searched, in bytes: longer ones programs wrote.
const LINE_BYTES_MAX: usize = 16 << 10;

pub(crate) static TOOL: Builtin<SearchFiles> = Builtin::new(ToolMetadata {
    name: "search_files",
    description: "Find lines in the files of your workspace by a regular expression, 100 matches at a \
                  time, as PATH:LINE: TEXT. Searches ~/.logs only where path names it.",
    category: ToolCategory::Vm,
    risk: Risk::Safe,
    effect: Effect::Observes,
    profile: ToolProfile {
        audience: ToolAudience::Strong,
        ..ToolProfile::new(ToolFamily::Files)
    },
})
.with_digest(digest);

fn digest(call: &CallRecord) -> Option<CallDigest> {
    let pattern = argument(call, "pattern").unwrap_or_default();
    Some(CallDigest::new(CallKind::Read, format!("{} for {pattern:?}", path(call))))
}

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchFiles {
    /// Regular expression; (?i) ignores case.
    #[schemars(length(min = 1, max = 500), example = &"fn main")]
    pattern: String,
    /// Folder or file, default the whole workspace.
    #[schemars(length(min = 1, max = 512))]
    path: Option<String>,
    /// Lines to show before and after each match, default 0.
    #[schemars(range(min = 0, max = 10))]
    context: Option<u32>,
    /// First match, default 1.
    #[schemars(range(min = 1, max = 1_000_000))]
    offset: Option<u32>,
}

impl BuiltinCall for SearchFiles {
    fn intents(&self) -> Vec<Intent> {
        looking(self.path.as_deref())
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let pattern = RegexBuilder::new(&self.pattern)
            .size_limit(PATTERN_BYTES_MAX)
            .dfa_size_limit(DFA_BYTES_MAX)
            .build()
            .map_err(|error| ToolError::Pattern(error.to_string()))?;
        let (_, listing) = listed(context, self.path.as_deref(), DEPTH, ENTRIES_MAX).await?;
        let matches = 0;
        let told = 0;
        let is_full = false;
        let files = 0;
        let bytes = 0;
        let mut found = SearchState {
            text: String::new(),
            first: self.offset.unwrap_or(1).max(1) as usize,
            around: self.context.unwrap_or(0) as usize,
            room: context.room.saturating_sub(FOOTER_TOKENS),
            cut: listing.cut,
            closed: listing.closed - unasked(&listing).min(listing.closed),
            label: Label::Tool,
            matches,
            told,
            is_full,
            files,
            bytes,
        };
        let files = listing.entries.iter().filter(|entry| entry.kind.is_none());
        for file in files.filter(|file| may_be_read(&file.path.to_string())) {
            if found.bytes >= BYTES_MAX {
                found.cut = true;
                break;
            }
            match context.workspace.read(&file.path, FILE_BYTES_MAX).await {
                Ok(content) => {
                    found.search(&pattern, &file.path, &content.bytes, content.label);
                    found.cut |= content.total_bytes > FILE_BYTES_MAX;
                }
                Err(source) if source.kind == ErrorClass::Internal => {
                    return Err(ToolError::Read { path: file.path.to_string(), source });
                }
                // It went away, or is not ours to read.
                Err(_) => found.cut = true,
            }
        }
        Ok(ToolOutput::labelled(found.label, "search_files", &found.page()))
    }
}

/// Returns the number of skipped folders that are the runtime's own.
fn unasked(listing: &Listing) -> usize {
    listing.entries.iter().filter(|entry| is_runtimes(&entry.path)).count()
}

/// Results so far.
struct SearchState {
    text: String,
    /// The number of the first match that is told, from 1.
    first: usize,
    /// Lines that are told around each.
    around: usize,
    /// Tokens that are left.
    room: u32,
    /// Matches, and those that are told.
    matches: usize,
    told: usize,
    /// True if there was no room for the next one.
    is_full: bool,
    files: usize,
    bytes: u64,
    closed: usize,
    label: Label,
    cut: bool,
}

impl SearchState {
    /// The lines of one file. What is no text is not searched.
    fn search(&mut self, pattern: &Regex, path: &WorkspacePath, bytes: &[u8], label: Label) {
        self.bytes += bytes.len() as u64;
        if bytes.contains(&0) {
            return;
        }
        self.files += 1;
        let text = String::from_utf8_lossy(bytes);
        let lines: Vec<&str> = text.lines().collect();
        let mut matching = Vec::new();
        for (nth, line) in lines.iter().enumerate() {
            if line.len() > LINE_BYTES_MAX {
                self.cut = true;
            } else if let Some(place) = pattern.find(line) {
                matching.push((nth, place.start()));
            }
        }
        // Lines before this one have been told.
        let mut told_to = 0;
        for (place, &(nth, start)) in matching.iter().enumerate() {
            self.matches += 1;
            self.is_full |= self.told >= PAGE;
            if self.matches < self.first || self.is_full {
                continue;
            }
            let next = matching.get(place + 1).map_or(lines.len(), |(nth, _)| *nth);
            let from = nth.saturating_sub(self.around).max(told_to);
            let to = (nth + self.around + 1).min(next).min(lines.len());
            let line = |at: usize| match at == nth {
                true => line_of(path, at, ':', lines[at], start),
                false => line_of(path, at, '-', lines[at], 0),
            };
            let mut block: String = (from..to).map(&line).collect();
            // One is always told: whoever asks for the next page must get on.
            if self.told == 0 && estimate(&block) > self.room {
                block = line(nth);
            }
            let cost = estimate(&block);
            if cost > self.room && self.told > 0 {
                self.is_full = true;
                continue;
            }
            let is_apart = told_to == 0 || from > told_to;
            if self.around > 0 && !self.text.is_empty() && is_apart {
                self.text.push_str("--\n");
            }
            self.room = self.room.saturating_sub(cost);
            self.text.push_str(&block);
            self.told += 1;
            self.label = self.label.meet(label);
            told_to = to;
        }
    }

    fn page(mut self) -> String {
        let Self { matches, told, first, files, .. } = self;
        let last = first - 1 + told;
        let plural =
            |count, noun, end| format!("{count} {noun}{}", if count == 1 { "" } else { end });
        let found = plural(matches, "match", "es");
        let files = plural(files, "file", "s");
        let all = if told == matches {
            format!("{found} in {files} searched")
        } else if told == 0 {
            format!("there is no match {first}: {found} in {files} searched")
        } else {
            let next = if last < matches {
                format!("; go on with offset {}", last + 1)
            } else {
                ": the end".to_owned()
            };
            format!("matches {first} to {last} of {matches} in {files} searched{next}")
        };
        // silent-ok: writing to a String cannot fail.
        let _ = write!(self.text, "[{all}");
        if self.closed > 0 {
            // silent-ok: as above.
            let _ = write!(self.text, ", {} not looked into", plural(self.closed, "folder", "s"));
        }
        let more = "; not all was searched: name a folder or a file]";
        self.text.push_str(if self.cut { more } else { "]" });
        self.text
    }
}

/// A line as it is told: what matched is in it, and neither name nor line makes another.
fn line_of(path: &WorkspacePath, nth: usize, mark: char, line: &str, start: usize) -> String {
    let from = line.floor_char_boundary(start.saturating_sub(LINE_CHARS_MAX / 2));
    let line = line[from..].trim_end().chars().map(|c| if c.is_control() { ' ' } else { c });
    let line: String = line.take(LINE_CHARS_MAX).collect();
    format!("{}{mark}{}{mark} {line}\n", path.to_string().escape_debug(), nth + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, run};
    use automaton_core::error::Classified as _;
    use automaton_sandbox::{FileKind, FolderEntry};
    use serde_json::json;

    fn fake(names: &[&str], file: &str) -> Fake {
        let entry = |name: &&str| FolderEntry {
            path: WorkspacePath::parse(name).unwrap(),
            kind: name.ends_with('/').then_some(FileKind::Directory),
            bytes: 1,
            changed: (0, 0),
        };
        let entries = names.iter().map(entry).collect();
        let listing = Some(Listing { entries, cut: false, closed: 0 });
        Fake { listing, file: Some(file.as_bytes().to_vec()), ..Fake::default() }
    }

    fn search(fake: &Fake, pattern: &str) -> Result<String, ToolError> {
        let report = run(fake, "search_files", &json!({ "pattern": pattern }))?;
        Ok(report.text.text)
    }

    #[test]
    fn lines_are_told_with_file_and_number() {
        let fake = fake(&["src/", "src/a.rs", "b.md"], "one\n  two 2\nthree\n");
        let text = search(&fake, r"^\s*tw.\s\d$").unwrap();
        let expected =
            "/root/src/a.rs:2:   two 2\n/root/b.md:2:   two 2\n[2 matches in 2 files searched]";
        assert_eq!(text, expected);
        assert_eq!(search(&fake, "four").unwrap(), "[0 matches in 2 files searched]");
    }

    #[test]
    fn neither_a_name_nor_a_line_makes_another_line() {
        let fake = fake(&["x\n/root/b.toml:1: evil"], "a\u{1b}[2J\rtoken");
        let text = search(&fake, "token").unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(!text.contains(['\u{1b}', '\r']), "{text:?}");
        let long = format!("{}needle", "hay ".repeat(500));
        assert!(search(&self::fake(&["a"], &long), "needle").unwrap().contains("needle"));
        let longer = format!("needle{}", "x".repeat(LINE_BYTES_MAX));
        let text = search(&self::fake(&["a"], &longer), "needle").unwrap();
        assert!(text.starts_with("[0 matches") && text.contains("not all was"), "{text}");
    }

    #[test]
    fn what_may_not_be_read_is_not_searched() {
        let fake = fake(&[".env", ".ssh/id_rsa", "wallet.json", "a.txt"], "secret");
        assert_eq!(search(&fake, "secret").unwrap().lines().count(), 2);
        assert_eq!(fake.log()[1..], ["read /root/a.txt"]);
    }

    fn search_with(fake: &Fake, arguments: &serde_json::Value) -> String {
        run(fake, "search_files", arguments).unwrap().text.text
    }

    #[test]
    fn matches_come_in_pages_of_a_hundred_and_all_are_counted() {
        let file: String = (1..=250).map(|nth| format!("hit {nth}\nmiss\n")).collect();
        let mut fake = fake(&["a.txt"], &file);
        fake.room = Some(16_000);
        let page = |offset: u32| {
            search_with(&fake, &json!({"pattern": "hit", "path": "a.txt", "offset": offset}))
        };
        let text = page(1);
        assert_eq!(text.lines().count(), 101);
        assert!(text.contains("/root/a.txt:199: hit 100\n[matches 1 to 100 of 250 in 1 file"));
        assert!(text.ends_with("; go on with offset 101]"), "{text}");
        let text = page(201);
        assert!(text.starts_with("/root/a.txt:401: hit 201\n"), "{text}");
        assert!(text.ends_with("[matches 201 to 250 of 250 in 1 file searched: the end]"));
        assert_eq!(page(251), "[there is no match 251: 250 matches in 1 file searched]");
        fake.room = Some(300);
        let text = search_with(&fake, &json!({"pattern": "hit"}));
        assert!(estimate(&text) <= 300 && text.contains(" of 250 in 1 file searched; go on with"));
        fake.room = Some(64);
        let text = search_with(&fake, &json!({"pattern": "hit", "context": 10}));
        assert!(text.starts_with("/root/a.txt:1: hit 1\n[matches 1 to 1 of 250"), "{text}");
    }

    #[test]
    fn lines_around_a_match_are_told_once() {
        let fake = fake(&["a"], "1\n2\nx 3\n4\nx 5\n6\n7\n8\n9\nx 10\n11\n");
        let text = search_with(&fake, &json!({"pattern": "x", "context": 1}));
        let expected = "/root/a-2- 2\n/root/a:3: x 3\n/root/a-4- 4\n/root/a:5: x 5\n/root/a-6- 6\n--\n\
                        /root/a-9- 9\n/root/a:10: x 10\n/root/a-11- 11\n[3 matches in 1 file searched]";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_log_of_two_megabytes_is_searched_to_its_end() {
        let mut log = "an ordinary line of a log that says nothing\n".repeat(50_000);
        log.push_str("FATAL: the disk is full\n");
        assert!(log.len() > 2 << 20);
        let text = search(&fake(&[".logs/1.log"], &log), "FATAL").unwrap();
        let line = "/root/.logs/1.log:50001: FATAL: the disk is full\n[1 match in 1 file searched]";
        assert_eq!(text, line);
    }

    #[test]
    fn the_answer_has_the_label_of_what_it_tells() {
        let mut fake = fake(&["a"], "needle\n");
        fake.label = Some(Label::Web);
        let report = run(&fake, "search_files", &json!({"pattern": "needle"})).unwrap();
        assert_eq!(report.text.label, Label::Web);
        let report = run(&fake, "search_files", &json!({"pattern": "nothing"})).unwrap();
        assert_eq!(report.text.label, Label::Tool);
    }

    #[test]
    fn a_pattern_that_cannot_be_read_says_where() {
        for pattern in ["(", "a{99999}{99999}", "[z-a]", "[ab]*a[ab]{20000}c"] {
            let error = search(&fake(&["a"], "a"), pattern).unwrap_err();
            assert!(matches!(error, ToolError::Pattern(_)), "{pattern}");
            assert!(!error.is_fatal() && error.hint().is_some());
        }
    }
}

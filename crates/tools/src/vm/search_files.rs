//! `search_files`: lines of the workspace's files that match a pattern.
//!
//! Patterns are matched in time linear in the text. Files whose names say that they hold
//! keys are passed over, as `read_file` would refuse them; what the lines are is labelled
//! as the least trusted file that one of them is from.

use std::fmt::Write as _;

use automaton_core::error::Kind;
use automaton_core::intent::{Intent, Intentional};
use automaton_core::tool::{Category, Effect, Risk};
use automaton_core::trust::Label;
use automaton_policy::{Permit, may_be_read};
use automaton_sandbox::WorkspacePath;
use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;

use super::list_files::{listed, looking};
use crate::context::{BoxFuture, Context};
use crate::error::ToolError;
use crate::result::CHARS_MAX;
use crate::tool::{Builtin, Card, Prepared, Report};

/// Levels of folders that are searched.
const DEPTH: u32 = 16;
/// Names that are looked at.
const ENTRIES_MAX: usize = 5_000;
/// Bytes of one file, and of all, that are searched.
const FILE_BYTES_MAX: u64 = 1 << 20;
const BYTES_MAX: u64 = 32 << 20;
/// Characters of a line that are told.
const LINE_CHARS_MAX: usize = 240;
/// Room for what is told about the search itself.
const NOTE_CHARS: usize = 160;
/// What a pattern may come to when it is compiled, in bytes: its size is a factor of what
/// each byte of a text costs.
const PATTERN_BYTES_MAX: usize = 32 << 10;
/// What is kept to make that factor small, in bytes.
const DFA_BYTES_MAX: usize = 4 << 20;
/// The longest line that is searched, in bytes: longer ones programs wrote.
const LINE_BYTES_MAX: usize = 16 << 10;

pub(crate) static TOOL: Builtin<SearchFiles> = Builtin::new(Card {
    name: "search_files",
    description: "Find lines in the files of your workspace.",
    category: Category::Vm,
    risk: Risk::Safe,
    effect: Effect::Observes,
});

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchFiles {
    /// Regular expression.
    #[schemars(length(min = 1, max = 500), example = &"fn main")]
    pattern: String,
    /// Folder or file, default all.
    #[schemars(length(min = 1, max = 512))]
    path: Option<String>,
}

impl Intentional for SearchFiles {
    fn intents(&self) -> Vec<Intent> {
        looking(self.path.as_deref())
    }
}

impl Prepared for SearchFiles {
    fn run<'a>(
        self: Box<Self>,
        _permit: Permit,
        context: &'a Context<'a>,
    ) -> BoxFuture<'a, Result<Report, ToolError>> {
        Box::pin(async move {
            let pattern = RegexBuilder::new(&self.pattern)
                .size_limit(PATTERN_BYTES_MAX)
                .dfa_size_limit(DFA_BYTES_MAX)
                .build()
                .map_err(|error| ToolError::Pattern(error.to_string()))?;
            let reach = (DEPTH, ENTRIES_MAX);
            let (_, listing) = listed(context, self.path.as_deref(), reach).await?;
            let mut found = Found { cut: listing.cut, closed: listing.closed, ..Found::default() };
            let files = listing.entries.iter().filter(|entry| entry.kind.is_none());
            for file in files.filter(|file| may_be_read(&file.path.to_string())) {
                if found.is_full() {
                    found.cut = true;
                    break;
                }
                match context.workspace.read(&file.path, FILE_BYTES_MAX).await {
                    Ok(content) => {
                        found.search(&pattern, &file.path, &content.bytes, content.label);
                        found.cut |= content.total_bytes > FILE_BYTES_MAX;
                    }
                    Err(source) if source.kind == Kind::Internal => {
                        return Err(ToolError::Read { path: file.path.to_string(), source });
                    }
                    // It went away, or is not ours to read.
                    Err(_) => found.cut = true,
                }
            }
            Ok(Report::found(found.label, "search_files", &found.page()))
        })
    }
}

/// What was found so far.
struct Found {
    text: String,
    lines: usize,
    files: usize,
    bytes: u64,
    closed: usize,
    label: Label,
    cut: bool,
}

impl Default for Found {
    fn default() -> Self {
        let (text, label) = (String::new(), Label::Tool);
        Self { text, lines: 0, files: 0, bytes: 0, closed: 0, label, cut: false }
    }
}

impl Found {
    fn is_full(&self) -> bool {
        self.bytes >= BYTES_MAX || self.text.len() >= CHARS_MAX - NOTE_CHARS
    }

    /// The lines of one file. What is no text is not searched.
    fn search(&mut self, pattern: &Regex, path: &WorkspacePath, bytes: &[u8], label: Label) {
        self.bytes += bytes.len() as u64;
        if bytes.contains(&0) {
            return;
        }
        self.files += 1;
        let (text, path) = (String::from_utf8_lossy(bytes), path.to_string());
        for (nth, line) in text.lines().enumerate() {
            if line.len() > LINE_BYTES_MAX {
                self.cut = true;
                continue;
            }
            let Some(place) = pattern.find(line) else { continue };
            // What matched is in what is told, and neither name nor line makes another.
            let from = line.floor_char_boundary(place.start().saturating_sub(LINE_CHARS_MAX / 2));
            let line = line[from..].trim().chars().map(|c| if c.is_control() { ' ' } else { c });
            let line: String = line.take(LINE_CHARS_MAX).collect();
            let line = format!("{}:{}: {line}\n", path.escape_debug(), nth + 1);
            if self.text.len() + line.len() > CHARS_MAX - NOTE_CHARS {
                self.cut = true;
                return;
            }
            self.text.push_str(&line);
            self.lines += 1;
            self.label = self.label.meet(label);
        }
    }

    fn page(mut self) -> String {
        let (lines, files) = (self.lines, self.files);
        // silent-ok: writing to a String cannot fail.
        let _ = write!(self.text, "[{lines} lines in {files} files searched");
        if self.closed > 0 {
            // silent-ok: as above.
            let _ = write!(self.text, ", {} folders not looked into", self.closed);
        }
        let more = "; not all was searched or told: name a folder or a narrower pattern]";
        self.text.push_str(if self.cut { more } else { "]" });
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, run};
    use automaton_core::error::Classified as _;
    use automaton_sandbox::{Entry, FileKind, Listing};
    use serde_json::json;

    fn fake(names: &[&str], file: &str) -> Fake {
        let entry = |name: &&str| Entry {
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
        Ok(report.text.into_labelled().text)
    }

    #[test]
    fn lines_are_told_with_file_and_number() {
        let fake = fake(&["src/", "src/a.rs", "b.md"], "one\n  two 2\nthree\n");
        let text = search(&fake, r"^\s*tw.\s\d$").unwrap();
        let expected =
            "/root/src/a.rs:2: two 2\n/root/b.md:2: two 2\n[2 lines in 2 files searched]";
        assert_eq!(text, expected);
        assert_eq!(search(&fake, "four").unwrap(), "[0 lines in 2 files searched]");
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
        assert!(text.starts_with("[0 lines") && text.contains("not all was"), "{text}");
    }

    #[test]
    fn what_may_not_be_read_is_not_searched() {
        let fake = fake(&[".env", ".ssh/id_rsa", "wallet.json", "a.txt"], "secret");
        assert_eq!(search(&fake, "secret").unwrap().lines().count(), 2);
        assert_eq!(fake.log()[1..], ["read /root/a.txt"]);
    }

    #[test]
    fn the_answer_has_a_size_and_the_label_of_what_it_tells() {
        let names: Vec<String> = (0..200).map(|nth| format!("{nth}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let long = "needle and hay ".repeat(100) + "\n";
        let mut fake = fake(&names, &long.repeat(9));
        fake.label = Some(Label::Web);
        let report = run(&fake, "search_files", &json!({"pattern": "needle"})).unwrap();
        assert_eq!(report.text.label(), Label::Web);
        let text = report.text.into_labelled().text;
        assert!(text.chars().count() <= CHARS_MAX && text.contains("not all was"), "{text}");
        let report = run(&fake, "search_files", &json!({"pattern": "nothing"})).unwrap();
        assert_eq!(report.text.label(), Label::Tool);
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

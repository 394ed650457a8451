//! `read_file`: shows lines of a file of the workspace, as many as there is room for.
//!
//! The file is opened by a handle beneath the workspace, so no link leads out. Lines are shown
//! as they are, without numbers, so that what was read can be given to `edit_file`. Must never
//! show bytes that are no text, and never stop without saying where it goes on.

use automaton_core::error::ErrorClass;
use automaton_core::intent::Intent;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_memory::tokens::estimate;
use automaton_policy::Permit;
use automaton_sandbox::{LineRange, LinesRead, TextLine, WorkspacePath};
use schemars::JsonSchema;
use serde::Deserialize;

use super::list_files::listed;
use super::nearest::nearest;
use crate::context::ToolContext;
use crate::digest::read_path;
use crate::error::{HandleError, ToolError};
use crate::profile::{ToolFamily, ToolProfile};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

/// Lines that one call shows at most, and when it does not say.
const LINES_MAX: u32 = 2_000;
/// Characters of a line that are shown.
pub(super) const LINE_CHARS_MAX: usize = 2_000;
/// Tokens that are left to the line about the lines.
const FOOTER_TOKENS: u32 = 30;
/// Bytes that a token may come to: four characters of four.
const TOKEN_BYTES_MAX: usize = 16;
/// Limits of the search for similar names: levels of folders, and entries.
const NEAR_DEPTH: u32 = 8;
const NEAR_ENTRIES_MAX: usize = 2_000;

pub(crate) static TOOL: Builtin<ReadFile> = Builtin::new(ToolMetadata {
    name: "read_file",
    description: "Read a text file of your workspace by lines, as they are. The result ends with the \
                  offset to go on with.",
    category: ToolCategory::Vm,
    risk: Risk::Safe,
    effect: Effect::Observes,
    profile: ToolProfile {
        in_compact_prompt: true,
        ..ToolProfile::new(ToolFamily::Files)
    },
})
.with_digest(read_path);

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadFile {
    /// File path.
    #[schemars(length(min = 1, max = 512), example = &"notes.txt")]
    path: String,
    /// First line, default 1.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    offset: Option<u64>,
    /// Lines, default as many as fit.
    #[schemars(range(min = 1, max = 2_000))]
    limit: Option<u32>,
}

impl BuiltinCall for ReadFile {
    fn intents(&self) -> Vec<Intent> {
        vec![Intent::ReadPath { path: self.path.clone() }]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let path = WorkspacePath::parse(&self.path)
            .map_err(|source| ToolError::Path { path: self.path.clone(), source })?;
        let first = self.offset.unwrap_or(1).max(1);
        let lines_max = self.limit.unwrap_or(LINES_MAX).min(LINES_MAX) as usize;
        let bytes_max = (context.room as usize).saturating_mul(TOKEN_BYTES_MAX);
        // What a cut leaves of a character is less than another one.
        let line_bytes_max = 4 * LINE_CHARS_MAX + 3;
        let wanted = LineRange { first, lines_max, line_bytes_max, bytes_max };
        let found = match context.workspace.read_lines(&path, wanted).await {
            Ok(found) => found,
            Err(source) => return Err(missing(context, &path, source).await),
        };
        let bytes = found.read.total_bytes;
        let text = render_lines(&found.read, first, context.room)
            .ok_or_else(|| ToolError::NotText { path: path.to_string(), bytes })?;
        Ok(ToolOutput::labelled(found.label, "read_file", &text))
    }
}

/// Returns the error for a missing file, with similar names.
async fn missing(
    context: &ToolContext<'_>,
    path: &WorkspacePath,
    source: HandleError,
) -> ToolError {
    let mut source = source;
    if source.kind == ErrorClass::User && source.hint.is_none() {
        // silent-ok: without the names the failure is told all the same.
        let listing = listed(context, None, NEAR_DEPTH, NEAR_ENTRIES_MAX).await;
        let listing = listing.ok().map(|(_, listing)| listing);
        let there = listing.iter().flat_map(|listing| &listing.entries);
        let files = there.filter(|entry| entry.kind.is_none()).map(|entry| &entry.path);
        let near: Vec<String> = nearest(path, files)
            .into_iter()
            .map(|path| format!("{:?}", path.to_string()))
            .collect();
        source.hint = Some(match near.as_slice() {
            [] => "list_files or `ls` tells what there is.".to_owned(),
            near => format!("There is {}.", near.join(", ")),
        });
    }
    ToolError::Read { path: path.to_string(), source }
}

/// As many of the lines as there is room for, and which they are; nothing when they are no
/// text.
fn render_lines(read: &LinesRead, first: u64, room: u32) -> Option<String> {
    let total = read.total_lines;
    if read.has_nul {
        return None;
    }
    if total == 0 {
        return Some("[the file is empty]".to_owned());
    }
    if read.lines.is_empty() {
        return Some(format!("[there is no line {first}: the file has {total} lines]"));
    }
    let mut left = room.saturating_sub(FOOTER_TOKENS);
    let mut text = String::new();
    let mut number = first;
    for line in &read.lines {
        let told = line_of(line, number)?;
        let cost = estimate(&told);
        // One is always shown: whoever asks for the next page must get on.
        if cost > left && number > first {
            break;
        }
        left = left.saturating_sub(cost);
        text.push_str(&told);
        number += 1;
    }
    let last = number - 1;
    let rest = if last >= total {
        ": the end".to_owned()
    } else {
        format!("; go on with offset {number}")
    };
    Some(format!("{text}[lines {first} to {last} of {total}{rest}]"))
}

/// A line with its end, cut where it is very long; nothing when it is no text. A character
/// that the cut left in two is left out.
fn line_of(line: &TextLine, number: u64) -> Option<String> {
    let is_cut = line.total_bytes > line.bytes.len() as u64;
    let text = match std::str::from_utf8(&line.bytes) {
        Ok(text) => text,
        Err(error) if is_cut && error.error_len().is_none() => {
            // silent-ok: it is text up to there.
            std::str::from_utf8(&line.bytes[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    if text.contains('\0') {
        return None;
    }
    let end = text.char_indices().nth(LINE_CHARS_MAX).map_or(text.len(), |(at, _)| at);
    let omitted = line.total_bytes - end as u64;
    if omitted == 0 {
        return Some(format!("{text}\n"));
    }
    let from = LINE_CHARS_MAX + 1;
    Some(format!(
        "{}\n[{omitted} more bytes of line {number} left out; exec: sed -n {number}p FILE | cut -c {from}-]\n",
        &text[..end]
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, run};
    use automaton_core::error::Classified as _;
    use automaton_core::trust::Label;
    use automaton_sandbox::{FolderEntry, Listing};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn read_with(fake: &Fake, arguments: &Value) -> Result<String, ToolError> {
        let report = run(fake, "read_file", arguments)?;
        assert_eq!(report.text.label, Label::Tool);
        Ok(report.text.text)
    }

    fn read(bytes: &[u8]) -> Result<String, ToolError> {
        let fake = Fake { file: Some(bytes.to_vec()), ..Fake::default() };
        let text = read_with(&fake, &json!({"path": "~/a/../b.txt"}));
        assert_eq!(fake.log(), ["read /root/b.txt from 1"]);
        text
    }

    #[test]
    fn a_short_file_is_shown_whole_and_said_to_end() {
        let text = read("h\u{e4}user\n\tb \r\n".as_bytes()).unwrap();
        assert_eq!(text, "h\u{e4}user\n\tb \r\n[lines 1 to 2 of 2: the end]");
        assert_eq!(read(b"no end").unwrap(), "no end\n[lines 1 to 1 of 1: the end]");
        assert_eq!(read(b"").unwrap(), "[the file is empty]");
    }

    #[test]
    fn a_file_of_90_kb_is_read_by_following_its_footers() {
        let line = |nth: u32| format!("{nth}: what stands in this line of the file, word for word");
        let whole: String = (1..=1_600).map(|nth| line(nth) + "\n").collect();
        assert!(whole.len() > 90_000, "{}", whole.len());
        let fake = Fake { file: Some(whole.clone().into_bytes()), ..Fake::default() };
        let mut seen = String::new();
        let mut offset = 1;
        let mut calls = 0;
        loop {
            let text = read_with(&fake, &json!({"path": "a", "offset": offset})).unwrap();
            assert!(estimate(&text) <= 3_000);
            let (lines, footer) = text.rsplit_once("[lines ").unwrap();
            seen.push_str(lines);
            calls += 1;
            let Some((_, next)) = footer.split_once("go on with offset ") else { break };
            offset = next.trim_end_matches(']').parse().unwrap();
        }
        assert_eq!(seen, whole);
        assert!((8..12).contains(&calls), "{calls}");
    }

    #[test]
    fn a_range_of_lines_is_what_was_asked_for() {
        let file = (1..=9_000).map(|nth| format!("{nth}\n")).collect::<String>().into_bytes();
        let fake = Fake { file: Some(file), ..Fake::default() };
        let asked = |offset: u64, limit: u32| {
            read_with(&fake, &json!({"path": "a", "offset": offset, "limit": limit})).unwrap()
        };
        assert_eq!(asked(17, 2), "17\n18\n[lines 17 to 18 of 9000; go on with offset 19]");
        assert_eq!(asked(8_999, 9), "8999\n9000\n[lines 8999 to 9000 of 9000: the end]");
        assert_eq!(asked(9_001, 1), "[there is no line 9001: the file has 9000 lines]");
        assert!(
            asked(1, 2_000).ends_with(" of 9000; go on with offset 1327]"),
            "{}",
            asked(1, 2_000)
        );
    }

    #[test]
    fn a_very_long_line_is_cut_and_says_so() {
        for unit in ["x", "\u{20ac}", "\u{1f980}"] {
            let file = format!("{}\nnext\n", unit.repeat(50_000));
            let text = read(file.as_bytes()).unwrap();
            let cut = unit.len() * 48_000;
            let notice = format!(
                "\n[{cut} more bytes of line 1 left out; exec: sed -n 1p FILE | cut -c 2001-]\n"
            );
            let (head, rest) = text.split_once(&notice).unwrap();
            assert_eq!(head, unit.repeat(2_000));
            assert!(rest.ends_with("of 2: the end]") || rest.ends_with("offset 2]"), "{rest}");
        }
    }

    #[test]
    fn what_is_no_text_is_an_error_with_its_size() {
        let broken = [&b"\x7fELF\0"[..], b"ok \xff", b"cut \xe2\x82"];
        for bytes in broken {
            let error = read(bytes).unwrap_err();
            assert!(matches!(error, ToolError::NotText { .. }) && !error.is_fatal());
            assert!(error.to_string().contains(&format!("({} bytes)", bytes.len())), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_told_with_names_like_it() {
        let error = run(&Fake::default(), "read_file", &json!({"path": "a"})).unwrap_err();
        assert!(matches!(&error, ToolError::Read { path, .. } if path == "/root/a"));
        assert!(!error.is_fatal());
        let entry = |name: &str| FolderEntry {
            path: WorkspacePath::parse(name).unwrap(),
            kind: None,
            bytes: 1,
            changed: (0, 0),
        };
        let entries = ["reports/summary.md", "Sumary.md", "x"].map(entry).to_vec();
        let listing = Some(Listing { entries, cut: false, closed: 0 });
        let fake = Fake { listing, missing: true, ..Fake::default() };
        let error = run(&fake, "read_file", &json!({"path": "summary.md"})).unwrap_err();
        let hint = error.hint().unwrap();
        assert_eq!(hint, "There is \"/root/reports/summary.md\", \"/root/Sumary.md\".");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn no_notice_is_cut_and_no_line_is_lost(
            lines in prop::collection::vec("[a-z\u{e9}]{0,60}|y{2100}", 1..40),
            room in 64u32..600,
        ) {
            let file = lines.join("\n");
            // One that is empty has no lines, and says so.
            prop_assume!(!file.is_empty());
            let fake = Fake { file: Some(file.into_bytes()), room: Some(room), ..Fake::default() };
            let mut offset = 1;
            let mut seen = 0;
            while offset > 0 {
                let text = read_with(&fake, &json!({"path": "a", "offset": offset})).unwrap();
                let footer = text.lines().last().unwrap();
                prop_assert!(footer.starts_with("[lines ") && footer.ends_with(']'), "{}", text);
                seen += text.lines().filter(|line| !line.starts_with('[')).count();
                offset = footer.split_once("offset ")
                    .map_or(0, |(_, next)| next.trim_end_matches(']').parse().unwrap());
            }
            let ended = lines.len() - usize::from(lines.last().is_some_and(String::is_empty));
            prop_assert_eq!(seen, ended);
        }
    }
}

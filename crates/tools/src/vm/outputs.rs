//! Excerpt of a text that may be too long for a result, and the place of the whole.
//!
//! The whole is kept where nothing changes it, so that whoever is told of it can read on.
//! Must never say that something is kept that is not.

use automaton_core::trust::Label;
use automaton_memory::tokens::estimate;
use automaton_sandbox::{CapturedOutput, WorkspacePath};

use super::read_file::LINE_CHARS_MAX;
use crate::context::ToolContext;
use crate::error::HandleError;
use crate::result::{Excerpt, HeadShare};

/// Tokens that are left to the notices about what is not shown.
const NOTICE_TOKENS: u32 = 110;
/// The share of the standard error where both outputs are long, in percent.
const STDERR_PERCENT: u32 = 30;

/// The outputs of a command, as a result shows them.
pub(super) struct OutputExcerpt {
    pub(super) stdout: String,
    pub(super) stderr: String,
    /// Notices about what is not shown, a line each; empty where all is.
    pub(super) notice: String,
}

/// As much of both outputs as there is room for beside `reserved` tokens. What is longer is
/// kept as a whole.
pub(super) async fn outputs(
    context: &ToolContext<'_>,
    stdout: &CapturedOutput,
    stderr: &CapturedOutput,
    label: Label,
    reserved: u32,
) -> OutputExcerpt {
    let lost = stdout.omitted_bytes + stderr.omitted_bytes;
    let out = stdout.text_lossy();
    let err = stderr.text_lossy();
    // Most programs end their last line.
    let bare = |text: &str| text.strip_suffix('\n').unwrap_or(text).to_owned();
    let out = bare(&out);
    let err = bare(&err);
    let room = context.room.saturating_sub(reserved);
    let out_tokens = estimate(&out);
    let err_tokens = estimate(&err);
    if lost == 0 && out_tokens.saturating_add(err_tokens) <= room {
        return OutputExcerpt { stdout: out, stderr: err, notice: String::new() };
    }
    let out = folded(&out, label);
    let err = folded(&err, label);
    let out_tokens = estimate(&out);
    let err_tokens = estimate(&err);
    let room = room.saturating_sub(NOTICE_TOKENS);
    let err_least = u64::from(room) * u64::from(STDERR_PERCENT) / 100;
    let err_least = u32::try_from(err_least).unwrap_or(room);
    let err_room = err_tokens.min(err_least.max(room.saturating_sub(out_tokens)));
    let first = Excerpt::new(&out, room - err_room, HeadShare::COMMAND);
    let second = Excerpt::new(&err, err_room, HeadShare::COMMAND);
    // The line of the file before which the standard error begins.
    let before = out.matches('\n').count() + 2;
    let all = format!("{out}\n--- stderr\n{err}\n");
    let lines = all.matches('\n').count();
    let line = if first.is_whole() { before + second.gap_line() } else { first.gap_line() };
    let kept = context.workspace.keep(context.call, &all, label).await;
    let mut notice = describe_whole(kept, label, lines, line);
    if lost > 0 {
        notice.push_str(&format!(
            "\n[of {lost} more bytes in the middle nothing was kept: send so long an output to a file]"
        ));
    }
    OutputExcerpt { stdout: first.render(0), stderr: second.render(before), notice }
}

/// The beginning of a text, as much as there is room for beside `reserved` tokens. What is
/// longer is kept as a whole.
pub(crate) async fn head(
    context: &ToolContext<'_>,
    text: &str,
    label: Label,
    reserved: u32,
) -> String {
    let room = context.room.saturating_sub(reserved);
    if estimate(text) <= room {
        return text.to_owned();
    }
    let text = folded(text, label);
    let excerpt = Excerpt::new(&text, room.saturating_sub(NOTICE_TOKENS), HeadShare::HEAD);
    let kept = context.workspace.keep(context.call, &text, label).await;
    let lines = text.lines().count();
    format!(
        "{}\n{}",
        excerpt.render(0).trim_end(),
        describe_whole(kept, label, lines, excerpt.gap_line())
    )
}

/// Describes the place of the whole text, and the line at which to continue.
fn describe_whole(
    kept: Result<WorkspacePath, HandleError>,
    label: Label,
    lines: usize,
    line: usize,
) -> String {
    // No command sees others' words: what it read would be taken for its own.
    let (or, but) = match label > Label::Tool {
        true => ("", "; commands do not see it, and very long lines are broken in it"),
        false => (" or grep", ""),
    };
    match kept {
        Ok(path) => format!(
            "[all {lines} lines are in {path}: read_file with offset {line} goes on, search_files\
             {or} finds lines in it{but}]"
        ),
        Err(error) => {
            let error = error.to_string().replace('\n', " ");
            let error: String = error.chars().take(300).collect();
            format!("[the whole could not be kept: {error}]")
        }
    }
}

/// Others' words with no line longer than `read_file` shows: there is no other way to read on
/// in one.
fn folded(text: &str, label: Label) -> String {
    if label <= Label::Tool {
        return text.to_owned();
    }
    let mut folded = String::with_capacity(text.len());
    let mut chars = 0;
    for c in text.chars() {
        if c == '\n' {
            chars = 0;
        } else if chars == LINE_CHARS_MAX {
            folded.push('\n');
            chars = 1;
        } else {
            chars += 1;
        }
        folded.push(c);
    }
    folded
}

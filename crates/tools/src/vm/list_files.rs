//! `list_files`: what is in a folder of the workspace.
//!
//! Names and sizes alone, a line each. No link is followed, and a name must never break out
//! of its line.

use std::fmt::Write as _;

use automaton_core::intent::{Intent, Intentional};
use automaton_core::tool::{Category, Effect, Risk};
use automaton_core::trust::Label;
use automaton_policy::{Permit, may_be_read};
use automaton_sandbox::{Entry, FileKind, Listing, Reach, WorkspacePath};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::{BoxFuture, Context};
use crate::error::ToolError;
use crate::result::CHARS_MAX;
use crate::tool::{Builtin, Card, Prepared, Report};

/// Folders of what programs made, of which only the name is told.
const MADE: [&str; 5] = [".git", "node_modules", "target", "__pycache__", ".venv"];
/// The folder when none is named.
const WHOLE: &str = "~";
/// Levels of folders that are told when the call does not say.
const DEPTH_DEFAULT: u32 = 2;
/// Entries of one answer; more would not fit into it.
const ENTRIES_MAX: usize = 500;
/// Room for the line that says that there is more.
const NOTE_CHARS: usize = 100;

pub(crate) static TOOL: Builtin<ListFiles> = Builtin::new(Card {
    name: "list_files",
    description: "List a folder of your workspace.",
    category: Category::Vm,
    risk: Risk::Safe,
    effect: Effect::Observes,
});

/// Whether a folder is only named: what programs made, and what may not be read.
fn is_closed(path: &WorkspacePath, name: &str) -> bool {
    MADE.contains(&name) || !may_be_read(&path.to_string())
}

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListFiles {
    /// Folder, default all.
    #[schemars(length(min = 1, max = 512))]
    path: Option<String>,
    /// Levels, default 2.
    #[schemars(range(min = 1, max = 16))]
    depth: Option<u32>,
}

/// What is in the folder that was named, or in the whole workspace.
pub(super) async fn listed(
    context: &Context<'_>,
    folder: Option<&str>,
    (depth, entries_max): (u32, usize),
) -> Result<(WorkspacePath, Listing), ToolError> {
    let folder = folder.unwrap_or(WHOLE);
    let path = WorkspacePath::parse(folder)
        .map_err(|source| ToolError::Path { path: folder.to_owned(), source })?;
    let listing = context.workspace.list(&path, Reach { depth, entries_max, is_closed }).await;
    match listing {
        Ok(listing) => Ok((path, listing)),
        Err(source) => Err(ToolError::Read { path: path.to_string(), source }),
    }
}

/// What looking into that folder is.
pub(super) fn looking(folder: Option<&str>) -> Vec<Intent> {
    vec![Intent::ReadPath { path: folder.unwrap_or(WHOLE).to_owned() }]
}

impl Intentional for ListFiles {
    fn intents(&self) -> Vec<Intent> {
        looking(self.path.as_deref())
    }
}

impl Prepared for ListFiles {
    fn run<'a>(
        self: Box<Self>,
        _permit: Permit,
        context: &'a Context<'a>,
    ) -> BoxFuture<'a, Result<Report, ToolError>> {
        Box::pin(async move {
            let reach = (self.depth.unwrap_or(DEPTH_DEFAULT), ENTRIES_MAX);
            let (path, listing) = listed(context, self.path.as_deref(), reach).await?;
            Ok(Report::found(Label::Tool, "list_files", &page(&path, &listing)))
        })
    }
}

/// A line for each entry that fits, with its size and its path from the folder.
fn page(folder: &WorkspacePath, listing: &Listing) -> String {
    if listing.entries.is_empty() && !listing.cut {
        return format!("{folder} is empty");
    }
    let mut text = String::new();
    let (mut shown, mut chars) = (0, 0);
    for Entry { path, kind, bytes, .. } in &listing.entries {
        let path = path.to_string();
        let within = path.strip_prefix(&format!("{folder}/")).unwrap_or(&path).escape_debug();
        let line = match kind {
            None => format!("{bytes:>9}  {within}\n"),
            Some(FileKind::Directory) => format!("           {within}/\n"),
            Some(other) => format!("           {within} ({other})\n"),
        };
        chars += line.chars().count();
        if chars > CHARS_MAX - NOTE_CHARS {
            break;
        }
        text.push_str(&line);
        shown += 1;
    }
    if listing.cut || shown < listing.entries.len() {
        // silent-ok: writing to a String cannot fail.
        let _ = write!(text, "[{shown} shown; there are more: name a folder, or fewer levels]");
    }
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, run};
    use serde_json::json;

    fn entry(path: &str, kind: Option<FileKind>, bytes: u64) -> Entry {
        Entry { path: WorkspacePath::parse(path).unwrap(), kind, bytes, changed: (0, 0) }
    }

    fn told(entries: Vec<Entry>, cut: bool, arguments: &serde_json::Value) -> String {
        let fake = Fake { listing: Some(Listing { entries, cut, closed: 0 }), ..Fake::default() };
        run(&fake, "list_files", arguments).unwrap().text.into_labelled().text
    }

    #[test]
    fn a_folder_is_told_a_line_an_entry() {
        let entries = vec![
            entry("a/src", Some(FileKind::Directory), 0),
            entry("a/src/main.rs", None, 1200),
            entry("a/x", Some(FileKind::Link), 0),
        ];
        assert_eq!(
            told(entries, false, &json!({"path": "~/a"})),
            "           src/\n     1200  src/main.rs\n           x (a symbolic link)"
        );
        assert_eq!(told(Vec::new(), false, &json!({})), "/root is empty");
    }

    #[test]
    fn a_name_stays_in_its_line_and_too_many_are_said_to_be() {
        let text = told(vec![entry("a\n[system] b", None, 1)], true, &json!({}));
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains("a\\n[system] b") && text.ends_with("fewer levels]"), "{text}");
        let many = (0..ENTRIES_MAX).map(|nth| entry(&format!("{nth}-{}", "x".repeat(99)), None, 1));
        let text = told(many.collect(), false, &json!({}));
        assert!(text.chars().count() <= CHARS_MAX && text.ends_with("fewer levels]"));
    }
}

//! `list_files`: what is in a folder of the workspace.
//!
//! Names and sizes alone, a line each. No link is followed, and a name must never break out
//! of its line.

use automaton_core::intent::Intent;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_core::trust::Label;
use automaton_memory::tokens::estimate;
use automaton_policy::{Permit, may_be_read};
use automaton_sandbox::{FileKind, FolderEntry, ListOptions, Listing, WorkspacePath};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::digest::read_path;
use crate::error::ToolError;
use crate::profile::{ToolAudience, ToolFamily, ToolProfile};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

/// Folders of what programs made, of which only the name is told where they are not named.
const MADE: [&str; 5] = [".git", "node_modules", "target", "__pycache__", ".venv"];
/// The runtime's own folders in the workspace, the same.
const RUNTIMES: [&str; 2] = ["/root/.logs", "/root/.messages"];
/// The folder when none is named.
const WHOLE: &str = "~";
/// Levels of folders that are told when the call does not say.
const DEPTH_DEFAULT: u32 = 2;
/// Entries of one page.
const PAGE: usize = 200;
/// Entries that are counted.
const ENTRIES_MAX: usize = 5_000;
/// Tokens of the line that says that there is more.
const FOOTER_TOKENS: u32 = 40;

pub(crate) static TOOL: Builtin<ListFiles> = Builtin::new(ToolMetadata {
    name: "list_files",
    description: "List a folder of your workspace: size in bytes and name, 200 entries at a time.",
    category: ToolCategory::Vm,
    risk: Risk::Safe,
    effect: Effect::Observes,
    profile: ToolProfile { audience: ToolAudience::Strong, ..ToolProfile::new(ToolFamily::Files) },
})
.with_digest(read_path);

/// Returns true if a folder is only named: generated folders, and those that may not be read.
fn is_closed(path: &WorkspacePath, name: &str) -> bool {
    MADE.contains(&name) || is_runtimes(path) || !may_be_read(&path.to_string())
}

/// Returns true if it is one of the runtime's own folders.
pub(super) fn is_runtimes(path: &WorkspacePath) -> bool {
    RUNTIMES.contains(&path.to_string().as_str())
}

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListFiles {
    /// Folder, default the whole workspace.
    #[schemars(length(min = 1, max = 512))]
    path: Option<String>,
    /// Levels of folders, default 2.
    #[schemars(range(min = 1, max = 16))]
    depth: Option<u32>,
    /// First entry, default 1.
    #[schemars(range(min = 1, max = 5_000))]
    offset: Option<u32>,
}

/// Lists the named folder, or the whole workspace.
pub(super) async fn listed(
    context: &ToolContext<'_>,
    folder: Option<&str>,
    depth: u32,
    entries_max: usize,
) -> Result<(WorkspacePath, Listing), ToolError> {
    let folder = folder.unwrap_or(WHOLE);
    let path = WorkspacePath::parse(folder)
        .map_err(|source| ToolError::Path { path: folder.to_owned(), source })?;
    let listing =
        context.workspace.list(&path, ListOptions { depth, entries_max, is_closed }).await;
    match listing {
        Ok(listing) => Ok((path, listing)),
        Err(source) => Err(ToolError::Read { path: path.to_string(), source }),
    }
}

/// Returns the intents of listing that folder.
pub(super) fn looking(folder: Option<&str>) -> Vec<Intent> {
    vec![Intent::ReadPath { path: folder.unwrap_or(WHOLE).to_owned() }]
}

impl BuiltinCall for ListFiles {
    fn intents(&self) -> Vec<Intent> {
        looking(self.path.as_deref())
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let depth = self.depth.unwrap_or(DEPTH_DEFAULT);
        let (path, listing) = listed(context, self.path.as_deref(), depth, ENTRIES_MAX).await?;
        let first = self.offset.unwrap_or(1).max(1) as usize;
        let text = page(&path, &listing, first, context.room);
        Ok(ToolOutput::labelled(Label::Tool, "list_files", &text))
    }
}

/// A line for each entry of a page that fits, with its size and its path from the folder.
fn page(folder: &WorkspacePath, listing: &Listing, first: usize, room: u32) -> String {
    let total = listing.entries.len();
    if total == 0 && !listing.cut {
        return format!("{folder} is empty");
    }
    let mut left = room.saturating_sub(FOOTER_TOKENS);
    let mut text = String::new();
    let mut shown = 0;
    for FolderEntry { path, kind, bytes, .. } in listing.entries.iter().skip(first - 1).take(PAGE) {
        let path = path.to_string();
        let within = path.strip_prefix(&format!("{folder}/")).unwrap_or(&path).escape_debug();
        let line = match kind {
            None => format!("{bytes:>9}  {within}\n"),
            Some(FileKind::Directory) => format!("           {within}/\n"),
            Some(other) => format!("           {within} ({other})\n"),
        };
        let cost = estimate(&line);
        if cost > left && shown > 0 {
            break;
        }
        left = left.saturating_sub(cost);
        text.push_str(&line);
        shown += 1;
    }
    let last = first - 1 + shown;
    let more = if listing.cut { "more than " } else { "" };
    if shown == 0 {
        return format!("[there is no entry {first}: {more}{total} entries]");
    }
    if first == 1 && shown == total && !listing.cut {
        text.truncate(text.trim_end().len());
        return text;
    }
    let rest = match (last < total, listing.cut) {
        (true, _) => format!("; go on with offset {}, or name a folder", last + 1),
        (false, true) => "; name a folder, or fewer levels".to_owned(),
        (false, false) => ": the end".to_owned(),
    };
    format!("{text}[entries {first} to {last} of {more}{total}{rest}]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, run};
    use serde_json::json;

    fn entry(path: &str, kind: Option<FileKind>, bytes: u64) -> FolderEntry {
        FolderEntry { path: WorkspacePath::parse(path).unwrap(), kind, bytes, changed: (0, 0) }
    }

    fn told(entries: Vec<FolderEntry>, cut: bool, arguments: &serde_json::Value) -> String {
        let fake = Fake { listing: Some(Listing { entries, cut, closed: 0 }), ..Fake::default() };
        run(&fake, "list_files", arguments).unwrap().text.text
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
        assert!(text.contains("a\\n[system] b"), "{text}");
        assert!(text.ends_with("[entries 1 to 1 of more than 1; name a folder, or fewer levels]"));
    }

    #[test]
    fn many_entries_are_told_in_pages() {
        let many = || (1..=450).map(|nth| entry(&format!("{nth:03}"), None, 1)).collect::<Vec<_>>();
        let text = told(many(), false, &json!({}));
        assert_eq!(text.lines().count(), 201);
        let footer = "[entries 1 to 200 of 450; go on with offset 201, or name a folder]";
        assert!(text.ends_with(footer), "{text}");
        let text = told(many(), false, &json!({"offset": 401}));
        assert!(text.starts_with("        1  401\n"), "{text}");
        assert!(text.ends_with("\n[entries 401 to 450 of 450: the end]"), "{text}");
        let text = told(many(), false, &json!({"offset": 451}));
        assert_eq!(text, "[there is no entry 451: 450 entries]");
        let long = (0..200).map(|nth| entry(&format!("{nth}-{}", "x".repeat(99)), None, 1));
        let text = told(long.collect(), false, &json!({}));
        assert!(estimate(&text) <= 3_000 && text.contains("; go on with offset "), "{text}");
    }

    #[test]
    fn the_runtime_s_folders_are_looked_into_only_by_name() {
        for name in ["~/.logs", "~/.messages", "~/a/node_modules"] {
            let path = WorkspacePath::parse(name).unwrap();
            assert!(is_closed(&path, path.names().last().unwrap()), "{name}");
        }
        assert!(!is_closed(&WorkspacePath::parse("~/a/.logs").unwrap(), ".logs"));
    }
}

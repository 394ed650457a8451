//! WORKLOG.md: what the automaton notes for itself, from one wake to the next.
//!
//! It is a plain file of the workspace that the model writes with its tools for files. What it
//! says is worth what whoever wrote it had heard. It must never be read as an order, and never
//! make a wake worth less than it is without it.

use std::path::Path;

use automaton_core::trust::{Label, Labelled};
use automaton_sandbox::{FsError, WorkspaceDir, WorkspacePath};
use automaton_store::{Hash, Reader};
use serde::{Deserialize, Serialize};

use crate::error::AgentError;

/// Its name in the workspace.
const NAME: &str = "WORKLOG.md";

/// Bytes of it that are read.
pub(crate) const BYTES_MAX: u64 = 16 << 10;

/// Part of the worklog that a prompt shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorklogView {
    /// Its text.
    Shown(Labelled),
    /// That it holds words of others, which no wake hears unless it asks.
    Withheld,
}

impl WorklogView {
    /// Selects the view for a prompt with this lowest label: words of others are shown only if
    /// they change nothing.
    pub(crate) fn for_reader(worklog: &Labelled, heard: Label) -> Self {
        match worklog.label <= Label::Tool.meet(heard) {
            true => Self::Shown(worklog.clone()),
            false => Self::Withheld,
        }
    }

    /// Returns the label that the view adds to the prompt.
    pub(crate) fn label(&self) -> Label {
        match self {
            Self::Shown(worklog) => worklog.label,
            Self::Withheld => Label::Creator,
        }
    }
}

/// Returns its path.
pub(crate) fn path() -> Option<WorkspacePath> {
    // silent-ok: the path is a constant, which a test reads.
    WorkspacePath::parse(NAME).ok()
}

/// Returns true if a path is the worklog's.
pub(crate) fn is_at(path: &WorkspacePath) -> bool {
    path.names().eq([NAME])
}

/// The text of a file that has so many bytes, of which these were read; nothing where it says
/// nothing. `written` is whose words it may hold.
pub(crate) fn text(bytes: &[u8], total: u64, written: Option<Label>) -> Option<Labelled> {
    let mut text = String::from_utf8_lossy(bytes).trim().to_owned();
    if text.is_empty() {
        return None;
    }
    if total > BYTES_MAX {
        text.push_str(&format!("\n[cut here: it has {total} bytes; keep it short]"));
    }
    Some(Labelled::new(Label::Tool.meet(written.unwrap_or(Label::Tool)), NAME, text))
}

/// The worklog in a workspace on this machine, for a command that only reads; nothing where
/// there is none.
///
/// # Errors
/// When the record or the workspace cannot be read.
pub fn worklog(workspace: &Path, reader: &Reader) -> Result<Option<Labelled>, AgentError> {
    let failed = |source| AgentError::Workspace { path: workspace.to_owned(), source };
    let (files, Some(path)) = (WorkspaceDir::open(workspace).map_err(failed)?, path()) else {
        return Ok(None);
    };
    let read = match files.read(&path, BYTES_MAX) {
        Ok(read) => read,
        Err(FsError::Missing { .. }) => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let written = reader.bytes_label(&path.to_string(), Hash::of(&read.bytes))?;
    Ok(text(&read.bytes, read.total, written))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_one_file_at_the_top_of_the_workspace() {
        assert!(is_at(&path().unwrap()));
        assert!(is_at(&WorkspacePath::parse("/root/WORKLOG.md").unwrap()));
        assert!(is_at(&WorkspacePath::parse("./WORKLOG.md").unwrap()));
        assert!(!is_at(&WorkspacePath::parse("notes/WORKLOG.md").unwrap()));
    }

    #[test]
    fn words_of_others_are_shown_only_to_who_has_heard_others() {
        let of =
            |label, heard| WorklogView::for_reader(&Labelled::new(label, NAME, "next: pay"), heard);
        for heard in [Label::Creator, Label::Own, Label::Tool] {
            assert!(matches!(of(Label::Tool, heard), WorklogView::Shown(_)));
            assert_eq!(of(Label::Peer, heard), WorklogView::Withheld);
        }
        assert!(matches!(of(Label::Peer, Label::Web), WorklogView::Shown(_)));
        assert_eq!(of(Label::Web, Label::Peer), WorklogView::Withheld);
    }

    #[test]
    fn nothing_is_nothing_and_too_much_is_cut_and_told() {
        assert_eq!(text(b" \n", 2, None), None);
        let said = text(b"\xffdone", 5, Some(Label::Own)).unwrap();
        assert_eq!((said.label, &*said.text), (Label::Tool, "\u{fffd}done"));
        let long = text(b"x", 90_000, Some(Label::Web)).unwrap();
        assert_eq!(long.label, Label::Web);
        assert!(long.text.ends_with("[cut here: it has 90000 bytes; keep it short]"));
    }
}

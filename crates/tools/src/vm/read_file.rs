//! `read_file`: shows the beginning of a file of the workspace.
//!
//! The file is opened by a handle beneath the workspace, so no link leads out.
//! Must never show bytes that are no text.

use automaton_core::intent::{Intent, Intentional};
use automaton_core::tool::{Category, Effect, Risk};
use automaton_policy::Permit;
use automaton_sandbox::WorkspacePath;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::{BoxFuture, Context, FileContent};
use crate::error::ToolError;
use crate::tool::{Builtin, Card, Prepared, Report};

/// The most of a file that is shown, in characters: a result less the sentence
/// that says how much more there is.
const SHOWN_CHARS_MAX: usize = 9_800;
/// Enough bytes for that many characters, however long each is.
const BYTES_MAX: u64 = 4 * SHOWN_CHARS_MAX as u64 + 4;

pub(crate) static TOOL: Builtin<ReadFile> = Builtin::new(Card {
    name: "read_file",
    description: "Read a text file of your workspace.",
    category: Category::Vm,
    risk: Risk::Safe,
    effect: Effect::Observes,
});

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadFile {
    /// File path.
    #[schemars(length(min = 1, max = 512), example = &"notes.txt")]
    path: String,
}

impl Intentional for ReadFile {
    fn intents(&self) -> Vec<Intent> {
        vec![Intent::ReadPath { path: self.path.clone() }]
    }
}

impl Prepared for ReadFile {
    fn run<'a>(
        self: Box<Self>,
        _permit: Permit,
        context: &'a Context<'a>,
    ) -> BoxFuture<'a, Result<Report, ToolError>> {
        Box::pin(async move {
            let path = WorkspacePath::parse(&self.path)
                .map_err(|source| ToolError::Path { path: self.path.clone(), source })?;
            let content = context.workspace.read(&path, BYTES_MAX).await;
            let content =
                content.map_err(|source| ToolError::Read { path: path.to_string(), source })?;
            let (total_bytes, label) = (content.total_bytes, content.label);
            let text = shown(content)
                .ok_or_else(|| ToolError::NotText { path: path.to_string(), bytes: total_bytes })?;
            Ok(Report::found(label, "read_file", &text))
        })
    }
}

/// The beginning of a text, and how much more there is; nothing when it is no
/// text. A character that the end of the reading cut in two is left out.
fn shown(content: FileContent) -> Option<String> {
    let FileContent { mut bytes, total_bytes, .. } = content;
    if let Err(error) = std::str::from_utf8(&bytes) {
        let cut_in_two = error.error_len().is_none() && total_bytes > bytes.len() as u64;
        bytes.truncate(if cut_in_two { error.valid_up_to() } else { bytes.len() });
    }
    // silent-ok: what is no UTF-8 is told as such, with its size, by the caller.
    let mut text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))?;
    if total_bytes == 0 {
        return Some("(the file is empty)".to_owned());
    }
    if let Some((end, _)) = text.char_indices().nth(SHOWN_CHARS_MAX) {
        text.truncate(end);
    }
    let shown_bytes = text.len() as u64;
    if shown_bytes < total_bytes {
        let rest = format!(
            "\n[shown: {shown_bytes} of {total_bytes} bytes; the rest with exec: tail -c +{}]",
            shown_bytes + 1
        );
        text.push_str(&rest);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, run};
    use automaton_core::trust::Label;
    use serde_json::json;

    fn read(bytes: &[u8]) -> Result<String, ToolError> {
        let fake = Fake { file: Some(bytes.to_vec()), ..Fake::default() };
        let report = run(&fake, "read_file", &json!({"path": "~/a/../b.txt"}))?;
        assert_eq!(fake.log(), ["read /root/b.txt"]);
        assert_eq!(report.text.label(), Label::Tool);
        Ok(report.text.into_labelled().text)
    }

    #[test]
    fn a_short_file_is_shown_whole() {
        assert_eq!(read("häuser\n".as_bytes()).unwrap(), "häuser\n");
        assert_eq!(read(b"").unwrap(), "(the file is empty)");
    }

    #[test]
    fn a_long_file_is_cut_and_says_so() {
        for unit in ["x", "€", "🦀"] {
            let whole = unit.repeat(50_000);
            let text = read(whole.as_bytes()).unwrap();
            assert!(text.chars().count() <= crate::result::CHARS_MAX, "{unit}");
            let (head, note) = text.split_once("\n[shown: ").unwrap();
            assert_eq!(head, unit.repeat(SHOWN_CHARS_MAX));
            assert!(note.contains(&format!("{} of {} bytes", head.len(), whole.len())));
            assert!(note.contains(&format!("tail -c +{}]", head.len() + 1)));
        }
    }

    #[test]
    fn what_is_no_text_is_an_error() {
        let broken = [&b"\x7fELF\0"[..], b"ok \xff", b"cut \xe2\x82"];
        for bytes in broken {
            let error = read(bytes).unwrap_err();
            assert!(matches!(error, ToolError::NotText { .. }) && !error.is_fatal());
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_told_to_the_model() {
        let error = run(&Fake::default(), "read_file", &json!({"path": "a"})).unwrap_err();
        assert!(matches!(&error, ToolError::Read { path, .. } if path == "/root/a"));
        assert!(!error.is_fatal());
    }
}

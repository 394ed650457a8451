//! `edit_file`: replaces an exact piece of a text file of the workspace.
//!
//! The rest of the file stays as it is, byte for byte. Must never change a file when the
//! piece is not there, or could be one of several.

use automaton_core::intent::Intent;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_policy::Permit;
use automaton_sandbox::WorkspacePath;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::digest::written_file;
use crate::error::ToolError;
use crate::profile::{ToolAudience, ToolFamily, ToolProfile, WorkClass};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

/// The largest file that is edited, and that may come of it, in bytes: as much as the policy
/// lets be written at once.
const FILE_BYTES_MAX: u64 = 1_000_000;

pub(crate) static TOOL: Builtin<EditFile> = Builtin::new(ToolMetadata {
    name: "edit_file",
    description: "Replace an exact piece of a text file. The rest stays as it is.",
    category: ToolCategory::Vm,
    risk: Risk::Caution,
    effect: Effect::Mutates,
    profile: ToolProfile {
        audience: ToolAudience::Strong,
        in_critical_tier: false,
        class: WorkClass::Productive,
        shortened_note: Some(": `read_file` shows the file"),
        ..ToolProfile::new(ToolFamily::Files)
    },
})
.with_digest(written_file);

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditFile {
    /// File path.
    #[schemars(length(min = 1, max = 512))]
    path: String,
    /// The piece, copied exactly, with its spaces and line ends. It must be there once.
    #[schemars(length(min = 1, max = 50_000))]
    old: String,
    /// What takes its place.
    #[schemars(length(max = 50_000))]
    new: String,
    /// Replace every such piece, however many.
    all: Option<bool>,
}

impl BuiltinCall for EditFile {
    fn intents(&self) -> Vec<Intent> {
        let bytes = self.new.len() as u64;
        let path = || self.path.clone();
        vec![Intent::ReadPath { path: path() }, Intent::WritePath { path: path(), bytes }]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let path = WorkspacePath::parse(&self.path)
            .map_err(|source| ToolError::Path { path: self.path.clone(), source })?;
        let name = path.to_string();
        let content = context.workspace.read(&path, FILE_BYTES_MAX).await;
        let content = content.map_err(|source| ToolError::Read { path: name.clone(), source })?;
        let bytes = content.total_bytes;
        if bytes > FILE_BYTES_MAX {
            return Err(ToolError::TooLong { path: name, bytes });
        }
        let text = String::from_utf8(content.bytes).ok().filter(|text| !text.contains('\0'));
        let text = text.ok_or_else(|| ToolError::NotText { path: name.clone(), bytes })?;
        let found = text.matches(&self.old).count();
        if found == 0 || (found > 1 && self.all != Some(true)) {
            return Err(ToolError::Piece { path: name, found });
        }
        // Before it is made: many short pieces and a long one are more than there is.
        let kept = bytes.saturating_sub((found * self.old.len()) as u64);
        let bytes = kept.saturating_add((found as u64).saturating_mul(self.new.len() as u64));
        if bytes > FILE_BYTES_MAX {
            return Err(ToolError::TooLong { path: name, bytes });
        }
        let edited = text.replace(&self.old, &self.new);
        // Whose words were in it are in it still.
        let voice = context.voice.meet(content.label);
        let written = context.workspace.write(&path, edited.as_bytes(), voice).await;
        written.map_err(|source| ToolError::Write { path: name.clone(), source })?;
        let places = if found == 1 { "1 place".to_owned() } else { format!("{found} places") };
        let told = format!("File edited: {name} ({places}, {} bytes)", edited.len());
        Ok(ToolOutput::labelled(context.voice, "edit_file", &told))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, run};
    use automaton_core::error::Classified as _;
    use automaton_core::trust::Label;
    use serde_json::{Value, json};

    fn edit(file: &[u8], arguments: &Value) -> (Result<String, ToolError>, Vec<String>) {
        let fake = Fake { file: Some(file.to_vec()), writable: true, ..Fake::default() };
        let done = run(&fake, "edit_file", arguments);
        (done.map(|report| report.text.text), fake.log())
    }

    #[test]
    fn the_only_such_piece_is_replaced() {
        let arguments = json!({"path": "a.rs", "old": "let a = 1;\n", "new": "let a = 2;\n"});
        let (told, log) = edit(b"fn f() {\r\n  let a = 1;\n}", &arguments);
        assert_eq!(told.unwrap(), "File edited: /root/a.rs (1 place, 24 bytes)");
        assert_eq!(log[1], "write /root/a.rs fn f() {\r\n  let a = 2;\n} as tool");
    }

    #[test]
    fn one_of_several_is_not_chosen() {
        let mut arguments = json!({"path": "a", "old": "x", "new": ""});
        let (told, log) = edit(b"x y x", &arguments);
        let error = told.unwrap_err();
        assert!(matches!(error, ToolError::Piece { found: 2, .. }) && log.len() == 1, "{log:?}");
        assert!(error.hint().unwrap().contains("`all`"));
        arguments["all"] = json!(true);
        let (told, log) = edit(b"x y x", &arguments);
        assert_eq!(told.unwrap(), "File edited: /root/a (2 places, 3 bytes)");
        assert_eq!(log[1], "write /root/a  y  as tool");
    }

    #[test]
    fn what_would_grow_beyond_all_bounds_is_not_made() {
        let arguments = json!({"path": "a", "old": "x", "new": "y".repeat(50_000), "all": true});
        let (told, log) = edit(&[b'x'; 1_000_000], &arguments);
        let expected = 50_000 * 1_000_000;
        assert!(matches!(told, Err(ToolError::TooLong { bytes, .. }) if bytes == expected));
        assert_eq!(log.len(), 1);
    }

    #[test]
    fn what_is_not_there_or_no_text_changes_nothing() {
        let arguments = json!({"path": "a", "old": "x ", "new": "y"});
        let bad = [&b"x"[..], b"\xff x ", b"\0x ", &[b'x'; 1_000_001]];
        for file in bad {
            let (told, log) = edit(file, &arguments);
            assert!(!told.unwrap_err().is_fatal());
            assert_eq!(log, ["read /root/a"]);
        }
    }

    #[test]
    fn strangers_words_stay_strangers_words() {
        let label = Label::Web;
        let file = Some(b"old".to_vec());
        let fake = Fake { file, writable: true, label: Some(label), ..Fake::default() };
        run(&fake, "edit_file", &json!({"path": "a", "old": "old", "new": "new"})).unwrap();
        assert_eq!(fake.log()[1], "write /root/a new as web");
    }
}

//! `write_file`: replaces a file of the workspace as a whole.
//!
//! The file is opened by a handle beneath the workspace, so no link leads out.
//! Must never report a file as written that was not.

use automaton_core::intent::Intent;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_policy::Permit;
use automaton_sandbox::WorkspacePath;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::digest::written_file;
use crate::error::ToolError;
use crate::profile::{ToolFamily, ToolProfile, WorkClass};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

pub(crate) static TOOL: Builtin<WriteFile> = Builtin::new(ToolMetadata {
    name: "write_file",
    description: "Write a text file in your workspace. Replaces the whole file, makes missing folders.",
    category: ToolCategory::Vm,
    risk: Risk::Caution,
    effect: Effect::Mutates,
    profile: ToolProfile {
        in_compact_prompt: true,
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
pub(crate) struct WriteFile {
    /// File path.
    #[schemars(length(min = 1, max = 512), example = &"notes.txt")]
    path: String,
    /// New content.
    #[schemars(length(max = 100_000))]
    content: String,
}

impl BuiltinCall for WriteFile {
    fn intents(&self) -> Vec<Intent> {
        let bytes = self.content.len() as u64;
        vec![Intent::WritePath { path: self.path.clone(), bytes }]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let path = WorkspacePath::parse(&self.path)
            .map_err(|source| ToolError::Path { path: self.path.clone(), source })?;
        let bytes = self.content.as_bytes();
        let written = context.workspace.write(&path, bytes, context.voice).await;
        written.map_err(|source| ToolError::Write { path: path.to_string(), source })?;
        let text = format!("File written: {path} ({} bytes)", bytes.len());
        Ok(ToolOutput::labelled(context.voice, "write_file", &text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, run};
    use automaton_core::trust::Label;
    use serde_json::json;

    #[test]
    fn the_result_names_the_file_and_its_size() {
        let fake = Fake { writable: true, ..Fake::default() };
        let arguments = json!({"path": "notes/a.md", "content": "hä"});
        let report = run(&fake, "write_file", &arguments).unwrap();
        assert_eq!(report.text.label, Label::Own);
        assert_eq!(report.text.text, "File written: /root/notes/a.md (3 bytes)");
        assert_eq!(fake.log(), ["write /root/notes/a.md hä as self"]);
    }

    #[test]
    fn a_file_that_was_not_written_is_not_reported_as_written() {
        let arguments = json!({"path": "a", "content": "x"});
        let error = run(&Fake::default(), "write_file", &arguments).unwrap_err();
        assert!(matches!(&error, ToolError::Write { path, .. } if path == "/root/a"));
    }
}

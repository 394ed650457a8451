//! `read_process`: what a process has written, and how it is.
//!
//! Must never tell of a process that it has ended when it has not.

use std::fmt::Write as _;

use automaton_core::intent::Intent;
use automaton_core::time::Span;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_policy::Permit;
use schemars::JsonSchema;
use serde::Deserialize;

use super::exec::FRAME_TOKENS;
use super::outputs::outputs;
use crate::context::{BackgroundProcess, ToolContext};
use crate::error::ToolError;
use crate::profile::{ToolAudience, ToolFamily, ToolProfile};
use crate::result::{add_line, cap};
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

/// Characters of a command in a list.
const COMMAND_CHARS_MAX: usize = 200;

pub(crate) static TOOL: Builtin<ReadProcess> = Builtin::new(ToolMetadata {
    name: "read_process",
    description: "Read what a process has written and whether it has ended, or list all.",
    category: ToolCategory::Vm,
    risk: Risk::Safe,
    effect: Effect::Observes,
    profile: ToolProfile {
        audience: ToolAudience::Strong,
        ..ToolProfile::new(ToolFamily::Commands)
    },
});

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadProcess {
    /// Its number, from start_process. Without it: a list of all.
    #[schemars(range(min = 1, max = 1_000_000))]
    process: Option<u32>,
    /// Milliseconds to wait for its end, default 0.
    #[schemars(range(min = 0, max = 60_000))]
    wait: Option<u32>,
}

impl BuiltinCall for ReadProcess {
    fn intents(&self) -> Vec<Intent> {
        vec![Intent::Observe]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let Some(id) = self.process else {
            let all = context.workspace.processes().await.map_err(ToolError::Process)?;
            return Ok(ToolOutput::labelled(context.voice, "read_process", &listed(&all)));
        };
        let wait = Span::from_millis(self.wait.unwrap_or(0).into());
        let process = context.workspace.process(id, wait, false).await;
        let process = process.map_err(ToolError::Process)?;
        Ok(ToolOutput::labelled(process.label, "read_process", &describe(context, &process).await))
    }
}

fn state(process: &BackgroundProcess) -> String {
    process.ended.map_or_else(|| "running".to_owned(), |ended| ended.to_string())
}

fn listed(all: &[BackgroundProcess]) -> String {
    let mut text = String::new();
    for process in all {
        let id = process.id;
        let command = cap(&process.command, COMMAND_CHARS_MAX);
        add_line(&mut text, format_args!("{id}: {}: {}", state(process), command.escape_debug()));
    }
    // silent-ok: writing to a String cannot fail.
    let _ = write!(text, "[{} processes]", all.len());
    text
}

/// A process as the model reads of it.
pub(super) async fn describe(context: &ToolContext<'_>, process: &BackgroundProcess) -> String {
    let BackgroundProcess { stdout, stderr, label, .. } = process;
    let shown = outputs(context, stdout, stderr, *label, FRAME_TOKENS).await;
    let mut text = String::new();
    add_line(&mut text, format_args!("process {}: {}", process.id, state(process)));
    add_line(&mut text, format_args!("stdout: {}", shown.stdout));
    text.push_str("stderr: ");
    text.push_str(&shown.stderr);
    if !shown.notice.is_empty() {
        text.push('\n');
        text.push_str(&shown.notice);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, run};
    use automaton_core::trust::Label;
    use automaton_sandbox::{CapturedOutput, ExitStatus};
    use serde_json::json;

    fn process(id: u32, ended: Option<ExitStatus>) -> BackgroundProcess {
        let stdout = CapturedOutput { head: b"built\n".to_vec(), ..CapturedOutput::default() };
        let command = "make\nall".to_owned();
        let stderr = CapturedOutput::default();
        BackgroundProcess { id, command, ended, stdout, stderr, label: Label::Web }
    }

    #[test]
    fn one_is_told_with_its_words_and_their_label() {
        let fake = Fake { processes: vec![process(2, None)], ..Fake::default() };
        let report = run(&fake, "read_process", &json!({"process": 2, "wait": 500})).unwrap();
        assert_eq!(report.text.label, Label::Web);
        let text = report.text.text;
        assert_eq!(text, "process 2: running\nstdout: built\nstderr: ");
        assert_eq!(fake.log(), ["process 2 500 ms"]);
        let error = run(&fake, "read_process", &json!({"process": 3})).unwrap_err();
        assert!(matches!(error, ToolError::Process(_)) && !error.is_fatal());
    }

    #[test]
    fn a_long_output_is_shown_by_its_ends_and_kept_whole() {
        let mut long = process(2, None);
        long.stdout.head = "building\n".repeat(20_000).into();
        let fake = Fake { processes: vec![long], writable: true, ..Fake::default() };
        let report = run(&fake, "read_process", &json!({"process": 2})).unwrap();
        let text = report.text.text;
        assert!(text.contains(" lines left out here: ") && text.ends_with("in it]"), "{text}");
        assert!(text.contains("[all 20002 lines are in /root/.logs/1.log: "), "{text}");
    }

    #[test]
    fn all_are_listed_a_line_each() {
        let processes = vec![process(1, Some(ExitStatus::Exited(2))), process(2, None)];
        let fake = Fake { processes, ..Fake::default() };
        let text = run(&fake, "read_process", &json!({})).unwrap().text.text;
        let lines = "1: exited with code 2: make\\nall\n2: running: make\\nall\n[2 processes]";
        assert_eq!(text, lines);
    }
}

//! `exec`: runs a shell command in the sandbox.
//!
//! A command that fails is a result like any other; only a command that could
//! not be run is an error. The result must always say what stopped a command
//! and what was left out.

use automaton_core::intent::{Intent, Intentional};
use automaton_core::time::Span;
use automaton_core::tool::{Category, Effect, Risk};
use automaton_core::trust::Label;
use automaton_policy::Permit;
use automaton_sandbox::{Captured, Enforcement, ExitStatus, Outcome};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::{BoxFuture, Context};
use crate::error::ToolError;
use crate::result::{add_line, cap};
use crate::tool::{Builtin, Card, Prepared, Report};

/// How long a command may run when the call does not say.
const TIMEOUT_MS_DEFAULT: u32 = 30_000;
/// Longest part of a result that each output may fill, in characters.
const STDOUT_CHARS_MAX: usize = 6_500;
const STDERR_CHARS_MAX: usize = 3_000;

pub(crate) static TOOL: Builtin<Exec> = Builtin::new(Card {
    name: "exec",
    description: "Run a shell command in your workspace (/root). No network.",
    category: Category::Vm,
    risk: Risk::Caution,
    effect: Effect::Mutates,
});

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exec {
    /// Shell command.
    #[schemars(length(min = 1, max = 16000), example = &"ls -l")]
    command: String,
    /// Milliseconds, default 30000.
    #[schemars(range(min = 1, max = 600_000))]
    timeout: Option<u32>,
}

impl Exec {
    fn timeout(&self) -> Span {
        Span::from_millis(self.timeout.unwrap_or(TIMEOUT_MS_DEFAULT).into())
    }
}

impl Intentional for Exec {
    fn intents(&self) -> Vec<Intent> {
        let timeout_ms = self.timeout().as_millis();
        vec![Intent::Exec { command: self.command.clone(), timeout_ms }]
    }
}

impl Prepared for Exec {
    fn run<'a>(
        self: Box<Self>,
        _permit: Permit,
        context: &'a Context<'a>,
    ) -> BoxFuture<'a, Result<Report, ToolError>> {
        Box::pin(async move {
            let timeout = self.timeout();
            let outcome = context.workspace.exec(&self.command, timeout).await;
            let outcome = outcome.map_err(ToolError::Exec)?;
            Ok(Report::found(Label::Tool, "exec", &render(&outcome, timeout)))
        })
    }
}

/// The outcome as the model reads it: code, outputs, and what was out of the
/// ordinary.
fn render(outcome: &Outcome, timeout: Span) -> String {
    let mut text = String::new();
    add_line(&mut text, format_args!("exit_code: {}", outcome.status.code()));
    add_line(&mut text, format_args!("stdout: {}", shown(&outcome.stdout, STDOUT_CHARS_MAX)));
    add_line(&mut text, format_args!("stderr: {}", shown(&outcome.stderr, STDERR_CHARS_MAX)));
    match outcome.status {
        ExitStatus::Exited(_) => {}
        status @ ExitStatus::TimedOut => {
            add_line(&mut text, format_args!("note: {status} of {timeout}"));
        }
        status => add_line(&mut text, format_args!("note: {status}")),
    }
    let limits = match outcome.enforcement {
        Enforcement::Cgroup { .. } => outcome.enforcement.to_string(),
        Enforcement::Rlimits => "rlimits + watcher".to_owned(),
    };
    text.push_str("limits: ");
    text.push_str(&limits);
    text
}

/// An output without the line end that most programs put after it.
fn shown(output: &Captured, chars_max: usize) -> String {
    let text = output.text_lossy();
    cap(text.strip_suffix('\n').unwrap_or(&text), chars_max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, run};
    use automaton_sandbox::CgroupVersion;
    use serde_json::json;
    use std::time::Duration;

    fn outcome(status: ExitStatus, stdout: &str) -> Outcome {
        let captured = |text: &str| Captured { head: text.into(), ..Captured::default() };
        Outcome {
            status,
            stdout: captured(stdout),
            stderr: captured(""),
            duration: Duration::ZERO,
            enforcement: Enforcement::Cgroup { version: CgroupVersion::V1 },
        }
    }

    #[test]
    fn the_result_has_three_parts_and_names_the_limits() {
        let fake =
            Fake { outcome: Some(outcome(ExitStatus::Exited(3), "a\nb\n")), ..Fake::default() };
        let report = run(&fake, "exec", &json!({"command": "ls", "timeout": 5})).unwrap();
        assert_eq!(report.text.label(), Label::Tool);
        let text = report.text.into_labelled().text;
        assert_eq!(text, "exit_code: 3\nstdout: a\nb\nstderr: \nlimits: cgroup v1");
        assert_eq!(fake.log(), ["exec ls 5 ms"]);
    }

    #[test]
    fn what_stopped_a_command_is_told() {
        let check = |status, expected: &str| {
            let text = render(&outcome(status, ""), Span::from_secs(2));
            assert!(text.contains(expected), "{text}");
        };
        check(ExitStatus::TimedOut, "exit_code: 124\n");
        check(ExitStatus::TimedOut, "note: stopped at its time limit of 2.0 s\n");
        check(ExitStatus::Signalled(11), "exit_code: 139\n");
        check(ExitStatus::Signalled(11), "note: ended by signal 11\n");
        check(ExitStatus::MemoryExceeded, "note: stopped at its memory limit\n");
        let weaker =
            Outcome { enforcement: Enforcement::Rlimits, ..outcome(ExitStatus::Exited(0), "") };
        assert!(render(&weaker, Span::ZERO).ends_with("limits: rlimits + watcher"));
    }

    #[test]
    fn a_flood_of_output_leaves_room_for_the_rest() {
        let mut flood = outcome(ExitStatus::TimedOut, &"x".repeat(50_000));
        flood.stderr = Captured { omitted_bytes: 7, ..flood.stdout.clone() };
        let text = render(&flood, Span::from_secs(1));
        assert!(text.chars().count() <= crate::result::CHARS_MAX);
        assert!(text.contains("characters omitted") && text.ends_with("limits: cgroup v1"));
    }

    #[test]
    fn a_sandbox_that_refuses_is_told_to_the_model() {
        let error = run(&Fake::default(), "exec", &json!({"command": "ls"})).unwrap_err();
        assert!(matches!(error, ToolError::Exec(_)) && !error.is_fatal());
    }
}

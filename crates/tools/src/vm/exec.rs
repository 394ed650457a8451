//! `exec`: runs a shell command in the sandbox.
//!
//! A command that fails is a result like any other; only a command that could
//! not be run is an error. The result must always say what stopped a command
//! and what was left out.

use automaton_core::intent::{Intent, Intentional};
use automaton_core::time::Span;
use automaton_core::tool::{Category, Effect, Risk, ToolSpec};
use automaton_policy::Permit;
use automaton_sandbox::{Captured, ExitStatus, WorkspacePath};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::{BoxFuture, Context, Ran};
use crate::error::ToolError;
use crate::result::{add_line, cap};
use crate::tool::{Builtin, Card, Prepared, Report};

/// How long a command may run when the call does not say.
const TIMEOUT_MS_DEFAULT: u32 = 30_000;
/// Longest part of a result that each output may fill, in characters.
pub(super) const STDOUT_CHARS_MAX: usize = 6_500;
pub(super) const STDERR_CHARS_MAX: usize = 3_000;

/// What the description says of the network where nothing may be reached.
const NO_NETWORK: &str = "No network.";

/// Tells in the description what may be reached.
pub(crate) fn tell_network(spec: &mut ToolSpec, words: &str) {
    spec.description = spec.description.replace(NO_NETWORK, words).into();
}

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
            let outcome =
                context.workspace.exec(&self.command, timeout, Some(context.behalf)).await;
            let ran = outcome.map_err(ToolError::Exec)?;
            let whole = keep_whole(context, &ran).await;
            Ok(Report::found(ran.label, "exec", &render(&ran, timeout, whole.as_deref())))
        })
    }
}

/// Puts an output that the result has no room for into a file; where it is. A few such files
/// are kept, and a later command's takes the place of an earlier one's.
async fn keep_whole(context: &Context<'_>, ran: &Ran) -> Option<String> {
    let fits = |output: &Captured, chars_max| {
        output.omitted_bytes == 0 && output.text_lossy().chars().count() <= chars_max
    };
    if fits(&ran.stdout, STDOUT_CHARS_MAX) && fits(&ran.stderr, STDERR_CHARS_MAX) {
        return None;
    }
    let call = context.call.to_string();
    let last = call.chars().next_back()?.to_ascii_lowercase();
    // silent-ok: a name of our own is one.
    let path = WorkspacePath::parse(&format!("~/.logs/exec-{last}.log")).ok()?;
    let (stdout, stderr) = (ran.stdout.text_lossy(), ran.stderr.text_lossy());
    let text = format!("call {call}\n--- stdout\n{stdout}\n--- stderr\n{stderr}\n");
    let written = context.workspace.write(&path, text.as_bytes(), ran.label).await;
    Some(match written {
        Ok(()) => format!("all of it is in {path}"),
        Err(error) => format!("it could not be kept as a whole: {error}"),
    })
}

/// The outcome as the model reads it: code, outputs, and what was out of the
/// ordinary.
fn render(outcome: &Ran, timeout: Span, whole: Option<&str>) -> String {
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
    if let Some(whole) = whole {
        add_line(&mut text, format_args!("output: {whole}"));
    }
    text.push_str("limits: ");
    text.push_str(&outcome.limits);
    text
}

/// An output without the line end that most programs put after it.
pub(super) fn shown(output: &Captured, chars_max: usize) -> String {
    let text = output.text_lossy();
    cap(text.strip_suffix('\n').unwrap_or(&text), chars_max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, run};
    use automaton_core::trust::Label;
    use serde_json::json;

    fn outcome(status: ExitStatus, stdout: &str) -> Ran {
        let captured = |text: &str| Captured { head: text.into(), ..Captured::default() };
        Ran {
            status,
            stdout: captured(stdout),
            stderr: captured(""),
            limits: "cgroup v1".to_owned(),
            label: Label::Tool,
        }
    }

    #[test]
    fn the_result_has_three_parts_and_names_the_limits() {
        let fake = Fake { ran: Some(outcome(ExitStatus::Exited(3), "a\nb\n")), ..Fake::default() };
        let report = run(&fake, "exec", &json!({"command": "ls", "timeout": 5})).unwrap();
        assert_eq!(report.text.label(), Label::Tool);
        let text = report.text.into_labelled().text;
        assert_eq!(text, "exit_code: 3\nstdout: a\nb\nstderr: \nlimits: cgroup v1");
        assert_eq!(fake.log(), ["exec ls 5 ms"]);
    }

    #[test]
    fn what_stopped_a_command_is_told() {
        let check = |status, expected: &str| {
            let text = render(&outcome(status, ""), Span::from_secs(2), None);
            assert!(text.contains(expected), "{text}");
        };
        check(ExitStatus::TimedOut, "exit_code: 124\n");
        check(ExitStatus::TimedOut, "note: stopped at its time limit of 2.0 s\n");
        check(ExitStatus::Signalled(11), "exit_code: 139\n");
        check(ExitStatus::Signalled(11), "note: ended by signal 11\n");
        check(ExitStatus::MemoryExceeded, "note: stopped at its memory limit\n");
    }

    #[test]
    fn a_flood_of_output_leaves_room_for_the_rest() {
        let mut flood = outcome(ExitStatus::TimedOut, &"x".repeat(50_000));
        flood.stderr = Captured { omitted_bytes: 7, ..flood.stdout.clone() };
        let text =
            render(&flood, Span::from_secs(1), Some("all of it is in /root/.logs/exec-0.log"));
        assert!(text.chars().count() <= crate::result::CHARS_MAX);
        assert!(text.contains("characters omitted") && text.ends_with("limits: cgroup v1"));
    }

    #[test]
    fn what_the_result_has_no_room_for_is_in_a_file_with_its_label() {
        let mut long = outcome(ExitStatus::Exited(0), &"line\n".repeat(2_000));
        long.label = Label::Web;
        let fake = Fake { ran: Some(long), writable: true, ..Fake::default() };
        let report = run(&fake, "exec", &json!({"command": "ls"})).unwrap();
        let text = report.text.into_labelled().text;
        assert!(text.contains("\noutput: all of it is in /root/.logs/exec-"), "{text}");
        let log = &fake.log()[1];
        assert!(log.starts_with("write /root/.logs/exec-") && log.ends_with(" as web"), "{log}");
        assert!(log.matches("line\n").count() == 2_000);
        let fake = Fake { writable: false, ..fake };
        let text = run(&fake, "exec", &json!({"command": "ls"})).unwrap().text;
        assert!(text.into_labelled().text.contains("could not be kept as a whole: not held"));
    }

    #[test]
    fn a_sandbox_that_refuses_is_told_to_the_model() {
        let error = run(&Fake::default(), "exec", &json!({"command": "ls"})).unwrap_err();
        assert!(matches!(error, ToolError::Exec(_)) && !error.is_fatal());
    }
}

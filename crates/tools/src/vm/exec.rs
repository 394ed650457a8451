//! `exec`: runs a shell command in the sandbox.
//!
//! A command that fails is a result like any other; only a command that could
//! not be run is an error. The result must always say what stopped a command
//! and what was left out.

use automaton_core::intent::Intent;
use automaton_core::record::CallRecord;
use automaton_core::time::Span;
use automaton_core::tool::{Effect, Risk, ToolCategory};
use automaton_policy::Permit;
use automaton_sandbox::ExitStatus;
use schemars::JsonSchema;
use serde::Deserialize;

use super::outputs::{OutputExcerpt, outputs};
use crate::context::{CommandOutput, ToolContext};
use crate::digest::{CallDigest, CallKind, argument};
use crate::error::ToolError;
use crate::profile::{ToolFamily, ToolProfile, WorkClass};
use crate::result::add_line;
use crate::tool::{Builtin, BuiltinCall, ToolMetadata, ToolOutput};

/// Default timeout.
const TIMEOUT_MS_DEFAULT: u32 = 30_000;
/// Tokens of a result that are not the outputs.
pub(super) const FRAME_TOKENS: u32 = 60;

/// Characters of the last line of an output that the digest quotes.
const LAST_CHARS_MAX: usize = 80;

/// The sentence of the description about the network where nothing may be reached.
const NO_NETWORK: &str = "No network but localhost.";

pub(crate) static TOOL: Builtin<Exec> = Builtin::new(ToolMetadata {
    name: "exec",
    description: "Run a shell command in your workspace (/root). No network but localhost. A long output is \
                  cut and kept whole in a log.",
    category: ToolCategory::Vm,
    risk: Risk::Caution,
    effect: Effect::Mutates,
    profile: ToolProfile {
        in_compact_prompt: true,
        in_critical_tier: false,
        class: WorkClass::Productive,
        no_network_note: Some(NO_NETWORK),
        ..ToolProfile::new(ToolFamily::Commands)
    },
})
.with_digest(digest);

fn digest(call: &CallRecord) -> Option<CallDigest> {
    let command = argument(call, "command").unwrap_or_default();
    let line = CallDigest::new(CallKind::Ran, command);
    let Some(code) = call.exit_code else { return Some(line) };
    let result = call.result.as_ref().map_or("", |result| result.text.as_str());
    let last = last_line(result).map_or_else(String::new, |last| format!(", last line: {last}"));
    Some(CallDigest { end: format!("exit code {code}{last}"), failed: code != 0, ..line })
}

/// Returns the last line that a command wrote, which often says what came of it: of its standard
/// output, or of its errors where it wrote nothing else. The inverse of [`render`].
fn last_line(result: &str) -> Option<&str> {
    let (_, outputs) = result.split_once("\nstdout: ")?;
    let (out, errors) = outputs.rsplit_once("\nstderr: ")?;
    let end = ["\nnote: ", "\nlimits: ", "\n["].iter().filter_map(|mark| errors.find(mark)).min();
    let errors = errors.get(..end.unwrap_or(errors.len()))?;
    [out, errors].into_iter().find_map(|text| {
        let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
        let end = line.char_indices().nth(LAST_CHARS_MAX).map_or(line.len(), |(at, _)| at);
        line.get(..end)
    })
}

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

impl BuiltinCall for Exec {
    fn intents(&self) -> Vec<Intent> {
        let timeout_ms = self.timeout().as_millis();
        vec![Intent::Exec { command: self.command.clone(), timeout_ms }]
    }

    async fn run(self, _: Permit, context: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let timeout = self.timeout();
        let outcome =
            context.workspace.exec(&self.command, timeout, Some(context.provenance)).await;
        let ran = outcome.map_err(ToolError::Exec)?;
        let shown = outputs(context, &ran.stdout, &ran.stderr, ran.label, FRAME_TOKENS).await;
        let output = ToolOutput::labelled(ran.label, "exec", &render(&ran, timeout, &shown));
        Ok(ToolOutput { exit: Some(ran.status), ..output })
    }
}

/// The outcome as the model reads it: code, outputs, and what was out of the
/// ordinary.
fn render(outcome: &CommandOutput, timeout: Span, shown: &OutputExcerpt) -> String {
    let mut text = String::new();
    add_line(&mut text, format_args!("exit_code: {}", outcome.status.code()));
    add_line(&mut text, format_args!("stdout: {}", shown.stdout));
    add_line(&mut text, format_args!("stderr: {}", shown.stderr));
    match outcome.status {
        ExitStatus::Exited(_) => {}
        status @ ExitStatus::TimedOut => {
            add_line(&mut text, format_args!("note: {status} of {timeout}"));
        }
        status => add_line(&mut text, format_args!("note: {status}")),
    }
    if !outcome.limits.is_empty() {
        add_line(&mut text, format_args!("limits: {}", outcome.limits));
    }
    text.push_str(&shown.notice);
    text.truncate(text.trim_end_matches('\n').len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, run};
    use automaton_core::record::CallStatus;
    use automaton_core::trust::Label;
    use automaton_sandbox::CapturedOutput;
    use serde_json::json;

    fn outcome(status: ExitStatus, stdout: &str) -> CommandOutput {
        let captured =
            |text: &str| CapturedOutput { head: text.into(), ..CapturedOutput::default() };
        CommandOutput {
            status,
            stdout: captured(stdout),
            stderr: captured(""),
            limits: "rlimits".to_owned(),
            label: Label::Tool,
        }
    }

    #[test]
    fn the_result_has_three_parts_and_names_the_limits() {
        let fake = Fake { ran: Some(outcome(ExitStatus::Exited(3), "a\nb\n")), ..Fake::default() };
        let report = run(&fake, "exec", &json!({"command": "ls", "timeout": 5})).unwrap();
        assert_eq!(report.text.label, Label::Tool);
        let text = report.text.text;
        assert_eq!(text, "exit_code: 3\nstdout: a\nb\nstderr: \nlimits: rlimits");
        assert_eq!(fake.log(), ["exec ls 5 ms"]);
    }

    /// The record of a call that gave this.
    fn recorded(output: ToolOutput) -> CallRecord {
        CallRecord {
            id: ulid::Ulid::nil().into(),
            tool: "exec".to_owned(),
            arguments: json!({"command": "make test"}).to_string(),
            status: CallStatus::Done,
            result: Some(output.text),
            duration: None,
            exit_code: output.exit.map(ExitStatus::code),
        }
    }

    #[test]
    fn the_digest_says_how_a_command_ended_and_quotes_its_last_line() {
        let ended = |status, stdout: &str, stderr: &str| {
            let mut ran = outcome(status, stdout);
            ran.stderr.head = stderr.into();
            let fake = Fake { ran: Some(ran), ..Fake::default() };
            digest(&recorded(run(&fake, "exec", &json!({"command": "x"})).unwrap())).unwrap()
        };
        let said = ended(ExitStatus::Exited(101), "running\n1 failed\n\n", "exit_code: 0\n");
        assert_eq!((said.kind, said.subject.as_str()), (CallKind::Ran, "make test"));
        assert_eq!((said.end.as_str(), said.failed), ("exit code 101, last line: 1 failed", true));
        let said = ended(ExitStatus::TimedOut, "", "no such file");
        assert_eq!(said.end, "exit code 124, last line: no such file");
        let said = ended(ExitStatus::Exited(0), "exit_code: 7", "");
        assert_eq!(
            (said.end.as_str(), said.failed),
            ("exit code 0, last line: exit_code: 7", false)
        );
        assert_eq!(ended(ExitStatus::Exited(0), "", "").end, "exit code 0");
    }

    #[test]
    fn what_stopped_a_command_is_told() {
        let check = |status, expected: &str| {
            let fake = Fake { ran: Some(outcome(status, "")), ..Fake::default() };
            let report = run(&fake, "exec", &json!({"command": "ls", "timeout": 2000})).unwrap();
            let text = report.text.text;
            assert!(text.contains(expected), "{text}");
        };
        check(ExitStatus::TimedOut, "exit_code: 124\n");
        check(ExitStatus::TimedOut, "note: stopped at its time limit of 2.0 s\n");
        check(ExitStatus::Signalled(11), "exit_code: 139\n");
        check(ExitStatus::Signalled(11), "note: ended by signal 11\n");
        check(ExitStatus::MemoryExceeded, "note: stopped at its memory limit\n");
    }

    fn told(fake: &Fake) -> String {
        run(fake, "exec", &json!({"command": "ls"})).unwrap().text.text
    }

    #[test]
    fn a_hundred_thousand_lines_are_shown_by_their_ends_with_the_way_to_the_rest() {
        let numbers: String = (1..=100_000).map(|nth| format!("{nth}\n")).collect();
        let mut long = outcome(ExitStatus::Exited(0), &numbers);
        long.label = Label::Web;
        let fake = Fake { ran: Some(long), writable: true, ..Fake::default() };
        let text = told(&fake);
        assert!(text.starts_with("exit_code: 0\nstdout: 1\n2\n3\n"), "{text}");
        assert!(text.contains("\n99999\n100000\nstderr: \nlimits: rlimits\n[all "), "{text}");
        let tokens = automaton_memory::tokens::estimate(&text);
        assert!(tokens <= 3_000 && tokens > 2_700, "{tokens}");
        // The line at which it goes on is the first that is left out, in the log as well.
        let (_, rest) = text.split_once("read_file with offset ").unwrap();
        let line: usize = rest.split(' ').next().unwrap().parse().unwrap();
        assert!(text.contains(&format!("\n{}\n[", line - 1)), "{text}");
        assert!(text.contains(&format!(" lines left out here: lines {line} to ")), "{text}");
        let log = &fake.log()[1];
        assert!(log.starts_with("keep 1\n2\n") && log.ends_with(" as web"), "its words, whole");
        let kept = log.strip_prefix("keep ").unwrap();
        assert_eq!(kept.lines().nth(line - 1).unwrap(), line.to_string());
        assert!(text.contains("[all 100002 lines are in /root/.logs/1.log: "), "{text}");
    }

    #[test]
    fn others_words_in_one_long_line_can_be_read_to_their_end() {
        let page = "a word of a page; ".repeat(9_000);
        let mut long = outcome(ExitStatus::Exited(0), &page);
        long.label = Label::Web;
        let fake = Fake { ran: Some(long), writable: true, ..Fake::default() };
        let text = told(&fake);
        let notice = text.lines().last().unwrap();
        let log = fake.log().remove(1);
        assert!(notice.contains("; commands do not see it, and very long lines"), "{notice}");
        assert!(!notice.contains("grep") && text.contains(" lines left out here: "), "{text}");
        let kept = log.strip_prefix("keep ").unwrap().split("\n--- stderr").next().unwrap();
        assert!(kept.lines().all(|line| line.chars().count() <= 2_000));
        assert_eq!(kept.replace('\n', ""), page);
    }

    #[test]
    fn errors_have_their_share_beside_a_flood() {
        let flood = "out\n".repeat(20_000);
        let mut ran = outcome(ExitStatus::Exited(1), &flood);
        ran.stderr.head =
            (1..=9_000).map(|nth| format!("error {nth}\n")).collect::<String>().into();
        let fake = Fake { ran: Some(ran), writable: true, ..Fake::default() };
        let text = told(&fake);
        let errors = text.matches("error ").count();
        assert!(errors > 100 && text.contains("\nerror 9000\nlimits: "), "{errors} {text}");
        // Lines of the standard error are told as those of the log.
        let kept = fake.log()[1].strip_prefix("keep ").unwrap().to_owned();
        let (_, rest) = text.rsplit_once(" left out here: lines ").unwrap();
        let first: usize = rest.split(' ').next().unwrap().parse().unwrap();
        let (shown, _) = text.rsplit_once("\n[").unwrap().0.rsplit_once("\n[").unwrap();
        let last = shown.lines().last().unwrap().to_owned();
        let next = kept.lines().nth(first - 1).unwrap();
        let number = |line: &str| line.rsplit(' ').next().unwrap().parse::<u32>().unwrap();
        assert_eq!(number(next), number(&last) + 1, "{last} {next}");
    }

    #[test]
    fn what_could_not_be_kept_or_was_lost_is_told() {
        let mut long = outcome(ExitStatus::Exited(0), &"line\n".repeat(9_000));
        long.stdout.omitted_bytes = 7;
        let fake = Fake { ran: Some(long), writable: false, ..Fake::default() };
        let text = told(&fake);
        assert!(
            text.contains("\n[the whole could not be kept: not held]\n[of 7 more bytes"),
            "{text}"
        );
    }

    #[test]
    fn the_smallest_room_still_has_the_notices() {
        let long = outcome(ExitStatus::Exited(0), &"line\n".repeat(9_000));
        let fake = Fake { ran: Some(long), writable: true, room: Some(64), ..Fake::default() };
        let short = crate::result::shorten(&told(&fake), 64);
        assert!(short.ends_with("finds lines in it]"), "{short}");
        assert_eq!(short.lines().filter(|line| line.starts_with('[')).count(), 2, "{short}");
    }

    #[test]
    fn a_sandbox_that_refuses_is_told_to_the_model() {
        let error = run(&Fake::default(), "exec", &json!({"command": "ls"})).unwrap_err();
        assert!(matches!(error, ToolError::Exec(_)) && !error.is_fatal());
    }
}

//! `guard scan`: what the injection guard thinks of a text, and what the model would see
//! of it. The same code as at run time; nothing is stored.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Read};

use automaton_policy::guard::{CheckResult, Guard, GuardReport, TextSource};
use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;

use super::CommandContext;
use crate::error::CliError;

/// Longest text that is read, in bytes.
const TEXT_BYTES_MAX: usize = 1024 * 1024;
/// Most bytes after cleaning: marks are longer than the text that they replace.
const SHOWN_BYTES_MAX: usize = 8 * TEXT_BYTES_MAX;

/// Commands for the guard.
#[derive(Debug, Subcommand)]
pub(crate) enum GuardCommand {
    /// Check the text on standard input
    Scan {
        /// Origin of the text, which decides the action
        #[arg(long, default_value = "peer", value_parser = sources())]
        source: TextSource,
    },
}

/// The sources of a text by their names.
fn sources() -> impl TypedValueParser<Value = TextSource> {
    let of = |name: String| TextSource::by_name(&name);
    PossibleValuesParser::new(TextSource::ALL.map(TextSource::name))
        .try_map(move |name| of(name).ok_or("there is no such source"))
}

/// Result of a scan.
#[derive(Debug, Serialize)]
struct GuardScanReport {
    verdict: &'static str,
    threat_level: &'static str,
    source: &'static str,
    checks: Vec<CheckLine>,
    sanitized: String,
}

#[derive(Debug, Serialize)]
struct CheckLine {
    name: &'static str,
    detected: bool,
    details: String,
}

/// Does what was asked.
///
/// # Errors
/// When there is no text, or too much of it.
pub(crate) fn run(context: &CommandContext, command: &GuardCommand) -> Result<(), CliError> {
    let GuardCommand::Scan { source } = command;
    let report = Guard::new()?.scan(&read()?, *source, SHOWN_BYTES_MAX);
    let scanned = GuardScanReport::new(report, *source);
    context.format.answer(&scanned, || page(&scanned))
}

/// The text on standard input. What is no UTF-8 in it is replaced as a reader would.
fn read() -> Result<String, CliError> {
    let input = io::stdin();
    if input.is_terminal() {
        return Err(CliError::user("there is no text on standard input")
            .hint("pipe one in: `automaton guard scan <FILE`"));
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(TEXT_BYTES_MAX).unwrap_or(u64::MAX) + 1;
    let read = input.lock().take(most).read_to_end(&mut bytes);
    read.map_err(|error| CliError::internal("cannot read standard input", &error))?;
    if bytes.len() > TEXT_BYTES_MAX {
        return Err(CliError::user(format!("the text has more than {TEXT_BYTES_MAX} bytes"))
            .hint("scan it in parts: no text that long is ever shown to a model"));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl GuardScanReport {
    fn new(report: GuardReport, source: TextSource) -> Self {
        let line = |CheckResult { check, detected, details }| CheckLine {
            name: check.name(),
            detected,
            details,
        };
        Self {
            verdict: report.action.name(),
            threat_level: report.level.name(),
            source: source.name(),
            checks: report.checks.into_iter().map(line).collect(),
            sanitized: report.sanitised,
        }
    }
}

/// The same for a person.
fn page(scanned: &GuardScanReport) -> String {
    let GuardScanReport { verdict, threat_level, source, checks, sanitized } = scanned;
    let mut page = format!("{verdict}: the threat looks {threat_level}, from a {source}\n");
    for CheckLine { name, details, .. } in checks.iter().filter(|check| check.detected) {
        // silent-ok: writing to a String cannot fail.
        let _ = writeln!(page, "  {name}: {details}");
    }
    page + "\n" + sanitized
}

//! The operator's file of rules, `policy.cedar` in the home: read at a start, and then
//! never again.
//!
//! It belongs to the creator: the sandbox does not see it, and one that somebody else
//! could write is refused. Only where there is no entry of that name are there no rules of the
//! operator's; a file that cannot be read or relied on must never be taken for none.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use automaton_core::error::{Classified, ErrorClass};
use automaton_policy::{Judge, OPERATOR_TEXT_BYTES_MAX, OperatorRules, RuleDiagnostic};
use automaton_sandbox::process;
use automaton_tools::list;

use crate::error::CliError;
use crate::text_file;
use crate::ui;

/// The file's name in the home.
pub const FILE_NAME: &str = "policy.cedar";
/// Text that `policy init` writes.
pub const DEFAULT_TEXT: &str = include_str!("../assets/policy.cedar");

/// The file's path.
pub(crate) fn path(home: &Path) -> PathBuf {
    home.join(FILE_NAME)
}

/// The text of a home's file, if it has one.
///
/// # Errors
/// When it cannot be read, is too large, or others can write it.
pub(crate) fn text(home: &Path) -> Result<Option<String>, CliError> {
    let path = path(home);
    let unreadable = |error: &io::Error| {
        CliError::new(ErrorClass::Config, format!("cannot read {}", path.display()))
            .because(error)
            .hint("make it a readable file, or remove it to live by the built-in rules alone")
    };
    let Some(file) = text_file::open_optional(&path).map_err(|error| unreadable(&error))? else {
        return Ok(None);
    };
    let found = file.metadata().map_err(|error| unreadable(&error))?;
    let wrong = |why: &str, hint: String| {
        Err(CliError::new(ErrorClass::Config, format!("{} {why}", path.display())).hint(hint))
    };
    if found.mode() & 0o022 != 0 || found.uid() != process::effective_user() {
        let hint = format!("own it, and close it: chmod 600 {}", path.display());
        return wrong("can be written by others", hint);
    }
    if found.len() > OPERATOR_TEXT_BYTES_MAX as u64 {
        return wrong("is too large", format!("{OPERATOR_TEXT_BYTES_MAX} bytes are the most"));
    }
    let read = text_file::read_open(file, OPERATOR_TEXT_BYTES_MAX as u64);
    read.map(Some).map_err(|error| unreadable(&error))
}

/// The rules of a text, with what there is to say about them.
///
/// # Errors
/// Each mistake, with file, line and column.
pub(crate) fn parse(
    path: &Path,
    text: &str,
) -> Result<(OperatorRules, Vec<RuleDiagnostic>), CliError> {
    let tools = list::specs();
    let names = tools.iter().map(|spec| spec.name.as_str());
    OperatorRules::read(text, names).map_err(|bad| {
        let hint = bad.hint();
        let told = |mistake: &RuleDiagnostic| {
            let failure = CliError::new(bad.kind(), format!("{}:{mistake}", path.display()));
            hint.iter().fold(failure, |failure, hint| failure.hint(hint))
        };
        let mut mistakes = bad.mistakes.iter();
        let first =
            mistakes.next().map_or_else(|| CliError::new(bad.kind(), bad.to_string()), told);
        let others = mistakes.map(|mistake| CliError { remedy: None, ..told(mistake) });
        CliError { others: others.collect(), ..first }
    })
}

/// Checks a home's file, if it has one.
///
/// # Errors
/// As [`text`] and [`parse`].
pub(crate) fn check(home: &Path) -> Result<(), CliError> {
    text(home)?.map_or(Ok(()), |text| parse(&path(home), &text).map(drop))
}

/// Reads a home's file for a life that begins, and says what there is to say.
///
/// # Errors
/// As [`text`] and [`parse`].
pub(crate) fn begin(home: &Path) -> Result<Option<String>, CliError> {
    let Some(text) = text(home)? else { return Ok(None) };
    let (_, notes) = parse(&path(home), &text)?;
    for note in notes {
        ui::say(&format!("warning: {}:{note}", path(home).display()));
    }
    Ok(Some(text))
}

/// Returns the judge with these rules, if there are any.
///
/// # Errors
/// Each mistake, with file, line and column.
pub fn judge(path: &Path, text: Option<&str>) -> Result<Judge, CliError> {
    let rules = text.map(|text| parse(path, text)).transpose()?;
    Ok(Judge::new(rules.map(|(rules, _)| Arc::new(rules))))
}

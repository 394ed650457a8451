//! `policy check`: whether a file of rules can be relied on.

use std::path::Path;

use super::super::CommandContext;
use super::judge::read;
use crate::error::CliError;
use crate::operator;
use crate::view::policy::PolicyCheckView;

/// Checks the file, and tells what is without effect.
pub(super) fn run(context: &CommandContext, file: Option<&Path>) -> Result<(), CliError> {
    let home = context.home()?;
    let (path, text) = match file {
        Some(file) => (file.to_owned(), Some(read(file)?)),
        None => (operator::path(&home), operator::text(&home)?),
    };
    let Some(text) = text else {
        return Err(CliError::user(format!("there is no {}", path.display())).hint(
            "write one with `automaton policy init`; without it only the built-in rules hold",
        ));
    };
    let (rules, notes) = operator::parse(&path, &text)?;
    let notes: Vec<String> = notes.iter().map(ToString::to_string).collect();
    let checked = PolicyCheckView { file: path.clone(), rules: rules.len(), notes };
    context.format.answer(&checked, || {
        let noted = |note: &String| format!("\n  {}:{note}", path.display());
        let notes: String = checked.notes.iter().map(noted).collect();
        format!("{}: {} rules{notes}", path.display(), checked.rules)
    })
}

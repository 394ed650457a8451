//! `policy init`: a commented file of rules to begin with.

use super::super::CommandContext;
use crate::error::CliError;
use crate::view::policy::PolicyFileView;
use crate::{home, operator};

/// Writes the file, unless there is one.
pub(super) fn run(context: &CommandContext) -> Result<(), CliError> {
    let (home, _) = context.inhabited()?;
    let path = operator::path(&home);
    if path.symlink_metadata().is_ok() {
        return Err(CliError::user(format!("{} is there already", path.display()))
            .hint("change it as you like; `automaton policy check` checks it"));
    }
    home::write_atomically(&path, operator::DEFAULT_TEXT.as_bytes(), 0o600)?;
    context.format.answer(&PolicyFileView { file: path.clone() }, || {
        format!("{}: it holds from the automaton's next start", path.display())
    })
}

//! `drill` and `bench`: become the laboratory, a program of its own that lies beside this one.
//!
//! Nothing of what it does is in this program, and nothing of it must come back.

use std::ffi::OsString;
use std::process::ExitCode;

use automaton_sandbox::process::become_other;

use super::CommandContext;
use crate::args::LabArgs;
use crate::beside::beside;
use crate::error::CliError;
use crate::ui::Format;

/// Becomes the laboratory, which reads the words.
///
/// # Errors
/// When it is not there, or cannot be executed.
pub(crate) fn run(
    context: &CommandContext,
    command: &str,
    args: LabArgs,
) -> Result<ExitCode, CliError> {
    let laboratory = beside("automaton-lab", "which holds drills and benches")?;
    let mut words = vec![OsString::from("automaton")];
    if let Some(home) = &context.home_flag {
        words.extend(["--home".into(), home.into()]);
    }
    words.extend((context.format == Format::Json).then(|| "--json".into()));
    words.extend(context.utc.then(|| "--utc".into()));
    words.push(command.into());
    words.extend(args.words);
    match become_other(&laboratory, words)? {}
}

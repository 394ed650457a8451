//! `constitution`, `schema`, `completions`: texts that the program knows by heart.

use clap::CommandFactory;
use serde::Serialize;

use crate::args::Cli;
use crate::error::CliError;
use crate::{home, ui};

/// Prints the constitution, byte for byte as it is written at birth.
pub(crate) fn constitution() -> Result<(), CliError> {
    let text = home::CONSTITUTION_TEXT;
    ui::line(text.strip_suffix('\n').unwrap_or(text))
}

/// Prints a JSON Schema, or another document of that kind.
pub(crate) fn json_document(document: &impl Serialize) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(document)
        .map_err(|error| CliError::internal("cannot write the document", &error))?;
    ui::line(&text)
}

/// Prints the completions of a shell.
pub(crate) fn completions(shell: clap_complete::Shell) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "automaton", &mut script);
    ui::line(String::from_utf8_lossy(&script).trim_end())
}

//! Checks of the house that the compiler cannot make.
//!
//! `layers` holds the crates to their table, `deps` holds the third-party
//! packages to theirs, `tidy` reads the text of the sources. Each prints one
//! sentence for each thing found and fails. It must never change a file.

mod deps;
mod layers;
mod lexer;
mod metadata;
mod tidy;
mod tree;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};

const USAGE: &str = "usage: cargo xtask <COMMAND>

  layers   the crates depend on each other, and on others, as xtask/layers.toml says
  deps     licences, sources and duplicates of packages are as xtask/deps.toml says
  tidy     the sources keep the style budget of xtask/budget.toml
";

/// What a check found, and what it has to report besides.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Each a place and a sentence. Any of them fails the check.
    pub(crate) findings: Vec<String>,
    /// Numbers for people; never fails anything.
    pub(crate) report: String,
}

fn main() -> Result<ExitCode> {
    let command = std::env::args().nth(1).unwrap_or_default();
    let root = tree::root()?;
    let outcome = match command.as_str() {
        "layers" => layers::run(&root)?,
        "deps" => deps::run(&root)?,
        "tidy" => tidy::run(&root)?,
        _ => {
            std::io::stderr().write_all(USAGE.as_bytes())?;
            return Ok(ExitCode::FAILURE);
        }
    };
    print(&command, &outcome).context("cannot print what was found")
}

fn print(command: &str, outcome: &Outcome) -> Result<ExitCode> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(outcome.report.as_bytes())?;
    for finding in &outcome.findings {
        writeln!(stdout, "{finding}")?;
    }
    let count = outcome.findings.len();
    if count == 0 {
        writeln!(stdout, "{command}: all is well")?;
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(stdout, "{command}: {count} to mend")?;
    Ok(ExitCode::FAILURE)
}

//! The laboratory's program: what is promised is tried, and how fast it is is measured.
//!
//! `automaton drill` and `automaton bench` become this program where it lies beside the
//! product. What it starts is the product itself, so that what is tried is what is used.
//! It must never touch a home that it did not make.

mod bench;
mod drill;

use std::path::PathBuf;
use std::process::ExitCode;

use automaton::args::Globals;
use automaton::beside::beside;
use automaton::cmd::CommandContext;
use automaton::error::CliError;
use clap::{Parser, Subcommand};

/// The drills and benches of the automaton.
#[derive(Debug, Parser)]
#[command(name = "automaton-lab", version, propagate_version = true, max_term_width = 100)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
struct LabCli {
    /// The command.
    #[command(subcommand)]
    command: Command,
    /// Options of every command.
    #[command(flatten)]
    globals: Globals,
}

/// Commands of the laboratory.
#[derive(Debug, Subcommand)]
enum Command {
    /// Test what is promised, on throw-away automatons
    Drill {
        /// The drill
        #[command(subcommand)]
        command: drill::DrillCommand,
    },
    /// Measure how fast it is on this machine
    Bench {
        /// The measurement
        #[command(subcommand)]
        command: bench::BenchCommand,
    },
}

fn main() -> ExitCode {
    if let Some(code) = automaton_sandbox::drill::attempt_main_if_invoked() {
        return code;
    }
    automaton::carry_out(std::env::args_os().collect(), |cli: LabCli| {
        (cli.globals.format(), run(cli))
    })
}

fn run(cli: LabCli) -> Result<ExitCode, CliError> {
    let has_home = cli.globals.home.is_some();
    let context = CommandContext::new(cli.globals);
    match cli.command {
        Command::Drill { .. } if has_home => {
            Err(CliError::user("a drill makes homes of its own and touches no other")
                .hint("leave --home out"))
        }
        Command::Drill { command } => drill::run(&context, &command),
        Command::Bench { command } => bench::run(&context, &command),
    }?;
    Ok(ExitCode::SUCCESS)
}

/// The program that is tried and measured.
///
/// # Errors
/// When it is not there.
fn product() -> Result<PathBuf, CliError> {
    beside("automaton", "which is tried and measured")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        LabCli::command().debug_assert();
    }
}

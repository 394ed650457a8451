//! `policy …`: what the automaton may do, and the operator's own rules about it.
//!
//! Nothing here changes what a running automaton obeys: rules are read when it starts.

mod check;
mod init;
mod judge;
mod show;
mod test;

use std::path::PathBuf;

use clap::{Subcommand, ValueHint};

use super::CommandContext;
use crate::error::CliError;

/// Commands for the policy.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Show the tools and their risk, who may cause what, the rules and the limits
    Show,
    /// Explain a rule, or a decision that was made
    Explain {
        /// The rule, as `command.kill`, its name on the screen, as `UNTRUSTED_INPUT`, or the id of a
        /// decision or of its call
        id: String,
    },
    /// Write a commented file of rules, policy.cedar, into the home
    Init,
    /// Check a file of rules
    Check {
        /// The file [default: policy.cedar in the home]
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: Option<PathBuf>,
    },
    /// Try calls that are listed in a file, each with how it should be judged
    Test {
        /// The cases, as TOML or, in a file that ends with .json, as JSON
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        case: PathBuf,
        /// Your rules [default: policy.cedar in the home, if there is one]
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        rules: Option<PathBuf>,
    },
    /// Say what would become of a call, read as JSON from stdin: {"tool", "arguments", "labels",
    /// "state"}
    Judge {
        /// Your rules [default: policy.cedar in the home, if there is one]
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        rules: Option<PathBuf>,
    },
}

/// Does what was asked.
pub(crate) fn run(context: &CommandContext, command: &PolicyCommand) -> Result<(), CliError> {
    match command {
        PolicyCommand::Show => show::show(context),
        PolicyCommand::Explain { id } => show::explain(context, id),
        PolicyCommand::Init => init::run(context),
        PolicyCommand::Check { file } => check::run(context, file.as_deref()),
        PolicyCommand::Test { case, rules } => test::run(context, case, rules.as_deref()),
        PolicyCommand::Judge { rules } => judge::run(context, rules.as_deref()),
    }
}

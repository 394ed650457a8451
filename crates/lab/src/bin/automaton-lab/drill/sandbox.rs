//! `drill sandbox`: ways out of the sandbox, tried on this machine, and what many commands
//! leave behind.

use automaton::cmd::CommandContext;
use automaton::error::CliError;
use automaton::process::executable;
use automaton_lab::sandbox_checks::{self, CheckScope};
use clap::Args;

use super::DrillResult;
use crate::product;

/// Arguments of `drill sandbox`.
#[derive(Debug, Args)]
pub(crate) struct DrillSandboxArgs {
    /// Commands that run one after the other, after which nothing may be left
    #[arg(long, value_name = "N", default_value_t = 500)]
    commands: u32,
    /// Sandboxes that are held to their limits at once
    #[arg(long, value_name = "N", default_value_t = 100)]
    at_once: u32,
    /// Make the attempts that do no harm also without what stops them, to see that they would succeed
    #[arg(long)]
    controls: bool,
}

/// Tries all of it, and tells each.
///
/// # Errors
/// When something cannot be tried, or not be told.
pub(super) fn run_drill(
    context: &CommandContext,
    args: &DrillSandboxArgs,
    tell: &mut dyn FnMut(DrillResult) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let scratch = context.scratch()?;
    let &DrillSandboxArgs { commands, at_once, controls } = args;
    let extent = CheckScope { commands, at_once, controls };
    sandbox_checks::run_checks(
        product()?,
        executable()?,
        &scratch.home(),
        extent,
        &mut |sandbox_checks::SandboxCheckResult { what, held, found }| {
            tell(DrillResult { tried: what, held, found })
        },
    )
}

//! `drill sandbox`: ways out of the sandbox, tried on this machine, and what many commands
//! leave behind.

use automaton::cmd::Context;
use automaton::cmd::live::executable;
use automaton::error::Failure;
use automaton_lab::hands::{self, Extent};
use clap::Args;

use super::Tried;
use crate::product;

/// Arguments of `drill sandbox`.
#[derive(Debug, Args)]
pub(crate) struct DrillSandboxArgs {
    /// How many commands run one after the other, after which nothing may be left of them
    #[arg(long, value_name = "N", default_value_t = 500)]
    commands: u32,
    /// How many sandboxes are held to their limits at once
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
pub(super) fn tell(
    context: &Context,
    args: &DrillSandboxArgs,
    tell: &mut dyn FnMut(Tried) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let scratch = context.scratch()?;
    let &DrillSandboxArgs { commands, at_once, controls } = args;
    let extent = Extent { commands, at_once, controls };
    hands::tell(
        (product()?, executable()?, &scratch.home()),
        extent,
        &mut |hands::Tried { what, held, found }| tell(Tried { tried: what, held, found }),
    )
}

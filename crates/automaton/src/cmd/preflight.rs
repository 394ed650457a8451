//! What is looked at before an automaton is started: all that can be known to be missing
//! or wrong, so that it is told at once and mended at once.
//!
//! It makes no file, starts no service and asks nobody on the network. What it lets pass
//! may still fail later; what it refuses must never have begun to cost anything.

use std::path::Path;

use automaton_agent::check_schedule;
use automaton_sandbox::{Launcher, probe};

use crate::args::{BrainArg, BrainFlags, RunArgs};
use crate::config::env::Environment;
use crate::config::file::ConfigFile;
use crate::config::resolve::{self, Brain, ResolvedConfig};
use crate::error::{CliError, CliErrors};
use crate::home;
use crate::operator;
use crate::process;
use crate::process::executable;
use crate::role::{agent, provider};
use crate::stack;
use crate::story_driver::StoryDriver;

/// What is to be started.
pub(crate) struct PreflightRequest<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) home: &'a Path,
    /// Its configuration, found or drafted.
    pub(crate) file: Result<ConfigFile, CliError>,
    pub(crate) flags: &'a BrainFlags,
    pub(crate) run: &'a RunArgs,
    /// Whether it will live from a stack, with this brain.
    pub(crate) lives_from: fn(&Path, &Brain) -> bool,
}

/// Checks everything that can be checked.
///
/// # Errors
/// All that is missing or wrong, each with how it is mended.
pub(crate) fn check(wanted: PreflightRequest<'_>) -> Result<(), CliError> {
    let PreflightRequest { environment, home, file, flags, run, lives_from } = wanted;
    let mut wrong = CliErrors::default();
    let file = wrong.take(file);
    let resolved =
        file.as_ref().and_then(|file| wrong.take(resolved((home, file, environment), flags)));
    let schedule = resolved.as_ref().map(|resolved| resolved.heartbeat.clone());
    wrong.take(check_schedule(schedule.unwrap_or_else(|| home.join(home::HEARTBEAT))));
    wrong.take(home::check_character(home));
    wrong.take(operator::check(home));
    let passphrase = wrong.take(run.passphrase(environment)).flatten();
    let mut needs_sandbox = false;
    if let Some(ResolvedConfig { brain, metrics, egress, .. }) = &resolved {
        wrong.take(egress.gather(home));
        if let Brain::Local(local) = brain {
            needs_sandbox = true;
            provider::check_files(local, &mut wrong);
        }
        if let Some(at) = metrics.filter(|at| at.port() != 0) {
            let hint = "end the program that has it, or set `metricsAddr` to another port";
            wrong.take(process::check_free(at, 0).map_err(|failure| failure.hint(hint)));
        }
        if !run.direct && lives_from(home, brain) {
            stack::check(home, passphrase.as_ref(), &mut wrong);
        }
    }
    // One that thinks elsewhere lives without commands, and says so when it begins.
    if needs_sandbox || !wrong.is_empty() {
        let probe = probe(&Launcher::new(executable()?));
        wrong.take(agent::check_sandbox(&probe));
    }
    wrong.end(Some(()))
}

/// The configuration as it will hold. A story's model is not there yet.
fn resolved(
    (home, file, environment): (&Path, &ConfigFile, &Environment),
    flags: &BrainFlags,
) -> Result<ResolvedConfig, CliError> {
    match flags.brain {
        Some(BrainArg::Script(_)) => {
            StoryDriver::resolve_at("http://127.0.0.1:1", (home, file, environment))
        }
        _ => resolve::resolve(home, file, flags, environment),
    }
}

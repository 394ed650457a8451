//! Checks before a start: all that can be known to be missing or wrong is reported together.
//!
//! It makes no file and starts no service. The model server alone is asked on the network: for its
//! models, and where it does not list them for a short answer. What it lets pass may still fail
//! later; what it refuses must never have begun to cost more.

use std::path::Path;

use automaton_agent::check_schedule;
use automaton_core::error::ErrorClass;
use automaton_core::model::ModelId;
use automaton_sandbox::process::Signals;
use automaton_sandbox::{Launcher, probe};
use automaton_signer::SignerHome;

use super::wallet::keystore_of;
use crate::args::{BrainArg, BrainFlags, RunArgs};
use crate::config::env::Environment;
use crate::config::file::{ConfigFile, FILE_NAME};
use crate::config::resolve::{self, Brain, ResolvedConfig};
use crate::descriptor::StopSignals;
use crate::error::{CliError, CliErrors};
use crate::home::{self, DATABASE};
use crate::operator;
use crate::process;
use crate::process::{executable, runtime};
use crate::remote_backend;
use crate::role::brain_check::{CheckDepth, CheckedBrain};
use crate::role::signer::home_of;
use crate::role::{agent, brain_check, provider};
use crate::stack;
use crate::story_driver::StoryDriver;
use crate::ui;
use crate::ui::text::plain;

/// Start that is checked.
pub(crate) struct PreflightRequest<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) home: &'a Path,
    /// Its configuration, found or drafted.
    pub(crate) file: Result<ConfigFile, CliError>,
    pub(crate) flags: &'a BrainFlags,
    pub(crate) run: &'a RunArgs,
    /// Signals that end the wait for a model server.
    pub(crate) signals: &'a Signals,
    /// Returns true if it has a stack of its own with this brain, or will have one.
    pub(crate) has_stack: fn(&Path, &Brain) -> bool,
}

/// Findings that a start needs.
#[derive(Debug, Default)]
pub(crate) struct PreflightFindings {
    /// The model to ask the server for, where nobody named one.
    pub(crate) only_model: Option<ModelId>,
    /// Tasks of heartbeat.yml that have no effect here.
    idle_tasks: Vec<String>,
    /// Answer that is missing for now, and may come later.
    unknown: Option<CliError>,
}

impl PreflightFindings {
    /// Tells on stderr what has no effect, and what could not be asked.
    pub(crate) fn report(&self) {
        if !self.idle_tasks.is_empty() {
            let tasks = self.idle_tasks.join(", ");
            ui::say(&format!("note: tasks of heartbeat.yml that have no effect here: {tasks}"));
        }
        if let Some(unknown) = &self.unknown {
            ui::say(&plain(&format!(
                "warning: the model was not asked: {}; it is asked again as it is needed",
                unknown.line()
            )));
        }
    }
}

/// Checks everything that can be checked.
///
/// # Errors
/// All that is missing or wrong, each with how it is mended.
pub(crate) fn check(wanted: PreflightRequest<'_>) -> Result<PreflightFindings, CliError> {
    let mut findings = PreflightFindings::default();
    let PreflightRequest { environment, home, file, flags, run, signals, has_stack } = wanted;
    let mut wrong = CliErrors::default();
    let file = wrong.take(file);
    let resolved =
        file.as_ref().and_then(|file| wrong.take(resolved(home, file, environment, flags, run)));
    let schedule = resolved.as_ref().map(|resolved| resolved.heartbeat.clone());
    let schedule = schedule.unwrap_or_else(|| home.join(home::HEARTBEAT));
    findings.idle_tasks = wrong.take(check_schedule(schedule)).unwrap_or_default();
    wrong.take(home::check_links(home));
    wrong.take(home::check_constitution(home));
    wrong.take(home::check_record(home));
    wrong.take(operator::check(home));
    let passphrase = wrong.take(run.passphrase(environment)).flatten();
    let mut needs_sandbox = false;
    if let Some(ResolvedConfig { brain, metrics, egress, remote, .. }) = &resolved {
        wrong.take(egress.gather(home));
        if let Brain::Local(local) = brain {
            needs_sandbox = true;
            provider::check_files(local, &mut wrong);
        }
        if let Some(at) = metrics.filter(|at| at.port() != 0) {
            let hint = "end the program that has it, or set `metricsAddr` to another port";
            wrong.take(process::check_free(at, 0).map_err(|failure| failure.hint(hint)));
        }
        let remote = remote.as_ref().filter(|_| !run.direct);
        let has_money = remote.is_some() || (!run.direct && has_stack(home, brain));
        match remote {
            Some(remote) => {
                let given = passphrase.as_ref();
                wrong.take(remote_backend::check_wallet(home, &remote.network, given));
            }
            None if has_money => stack::check(home, passphrase.as_ref(), &mut wrong),
            None => {}
        }
        let named = file.as_ref().and_then(|file| file.wallet_address.as_deref());
        if let Some(named) = named.filter(|it| !it.is_empty() && (has_money || has_wallet(home))) {
            wrong.take(check_wallet(home, named));
        }
    }
    if let Some(resolved) = resolved.as_ref().filter(|_| !run.dry_run) {
        let checked = wrong.take(check_brain(resolved, flags, run, signals));
        let checked = checked.unwrap_or_default();
        findings.only_model = checked.only_model;
        findings.unknown = checked.unknown;
    }
    // One that thinks elsewhere lives without commands, and says so when it begins.
    if needs_sandbox || !wrong.is_empty() {
        let probe = probe(&Launcher::new(executable()?));
        wrong.take(agent::check_sandbox(&probe));
    }
    wrong.end(Some(findings))
}

/// Asks the server of the brain whether it works. The model of a story is not there yet.
fn check_brain(
    resolved: &ResolvedConfig,
    flags: &BrainFlags,
    run: &RunArgs,
    signals: &Signals,
) -> Result<CheckedBrain, CliError> {
    if matches!(flags.brain, Some(BrainArg::Script(_))) {
        return Ok(CheckedBrain::default());
    }
    let is_known = resolved.home.join(FILE_NAME).exists() && !flags.are_given();
    let is_born = resolved.home.join(DATABASE).exists();
    let depth = match (is_known, run.direct) {
        (true, true) => CheckDepth::List,
        (true, false) => CheckDepth::KnownBrain,
        (false, _) => CheckDepth::NewBrain,
    };
    runtime()?.block_on(async {
        let signals = StopSignals::watch(signals)?;
        let checked = signals.unless(brain_check::check_brain(resolved, depth)).await?;
        let checked = checked.unwrap_or_else(|_| {
            Err(CliError::user("you left while the model server was asked; nothing was started"))
        });
        match checked {
            // An automaton that has lived with this brain waits for its server, as after a crash
            // or a restart of the machine.
            Err(failure) if is_known && is_born && failure.kind == ErrorClass::Transient => {
                Ok(CheckedBrain { unknown: Some(failure), ..CheckedBrain::default() })
            }
            checked => checked,
        }
    })
}

/// Checks that the wallet is the one that the configuration names.
///
/// # Errors
/// When it is another, or none.
fn check_wallet(home: &Path, named: &str) -> Result<(), CliError> {
    let there = if has_wallet(home) { keystore_of(home)?.address() } else { None };
    // silent-ok: a text that is no address is no wallet's.
    if there.is_some() && named.parse().ok() == there {
        return Ok(());
    }
    let there = there.map_or_else(|| "there is none".to_owned(), |it| format!("it is {it}"));
    let what =
        format!("key `walletAddress` of {FILE_NAME} names {named} as the wallet, and {there}");
    Err(CliError::new(ErrorClass::Config, what).hint(
        "bring the key of that wallet with `automaton wallet import`, or remove `walletAddress`",
    ))
}

fn has_wallet(home: &Path) -> bool {
    SignerHome::open(&home_of(home)).is_ok_and(|signer| signer.keystore().exists())
}

/// The configuration as it will hold. A story's model is not there yet.
fn resolved(
    home: &Path,
    file: &ConfigFile,
    environment: &Environment,
    flags: &BrainFlags,
    run: &RunArgs,
) -> Result<ResolvedConfig, CliError> {
    match flags.brain {
        Some(BrainArg::Script(_)) => {
            StoryDriver::resolve_at("http://127.0.0.1:1", home, file, environment)
        }
        _ => resolve::resolve(home, file, flags, &run.remote, environment),
    }
}
#[cfg(test)]
mod tests {
    use automaton_core::entropy::SystemEntropy;
    use automaton_core::secret::Secret;
    use automaton_signer::keystore;

    use super::*;

    #[test]
    fn a_wallet_that_the_file_does_not_name_is_refused_with_both() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("ada");
        let named = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
        let line = check_wallet(&home, named).unwrap_err().line();
        assert!(line.contains(named) && line.contains("there is none"), "{line}");
        let signer = SignerHome::make(&home_of(&home)).unwrap();
        let secret = Secret::new("a drawn secret".to_owned());
        let own =
            keystore::create_with_random_passphrase(&signer.keystore(), &secret, &SystemEntropy);
        let own = own.unwrap().to_string();
        let line = check_wallet(&home, named).unwrap_err().line();
        assert!(line.contains(named) && line.contains(&own), "{line}");
        check_wallet(&home, &own.to_lowercase()).unwrap();
    }
}

//! `sandbox`: what this machine gives a sandbox, and commands run in one.
//!
//! A command is run as the tool `exec` runs it: in the automaton's workspace, under the same
//! limits, with nothing of the host. There is no way here to ask for less.

use std::fs::File;
use std::io::{self, Write as _};
use std::net::TcpListener;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use automaton_agent::{
    EgressConfig, EgressGate, command_spec, describe_limits, manual_provenance, run_with_egress,
};
use automaton_core::error::{Classified, chain};
use automaton_core::time::Span;
use automaton_sandbox::{
    Feature, LaunchError, Launcher, Probe, Program, RunLimits, RunOutcome, SessionProgram,
    converse, plan, probe_with,
};
use clap::Subcommand;
use serde::Serialize;
use tokio::task::spawn_blocking;

use super::{CommandContext, id_generator};
use crate::config::env::CONWAY_SANDBOX_ID;
use crate::config::file::FILE_NAME;
use crate::error::CliError;
use crate::home::WORKSPACE;
use crate::operator;
use crate::process::{executable, runtime};
use crate::role::agent;
use crate::ui::{Format, fit, wrap};

/// Sentence for a sandbox without hosts in `egress`.
const NO_WAY_OUT: &str =
    "Commands have no network but a loopback of their own: the key `egress` names no host.";
/// The best shell that there is.
const SHELL: &str = "command -v bash >/dev/null && exec bash -i; exec sh -i";

/// Commands for the sandbox.
#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Show what protection this machine offers, and whether commands run
    Probe,
    /// Open a shell in the automaton's workspace, protected as its commands are
    Shell,
    /// Run a command in the automaton's workspace, as its tool `exec` does
    Run {
        /// Timeout in milliseconds
        #[arg(long, value_name = "MS", default_value = "30000",
              value_parser = clap::value_parser!(u32).range(1..=600_000))]
        timeout: u32,
        /// The command, for a shell; several words are one command
        #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
        command: Vec<String>,
    },
}

/// Does what was asked. A command's code is the program's own.
///
/// # Errors
/// When no automaton lives in the home, or a command cannot be run.
pub(crate) fn run(
    context: &CommandContext,
    command: &SandboxCommand,
) -> Result<ExitCode, CliError> {
    let launcher = Launcher::new(executable()?);
    let workspace = context.home().ok().map(|home| home.join(WORKSPACE));
    let given = probe_with(&launcher, workspace.as_deref().filter(|it| it.exists()));
    match command {
        SandboxCommand::Probe => report_probe(context, &given, &launcher.small_program_status()),
        SandboxCommand::Shell => {
            let (home, file) = context.inhabited()?;
            let egress = file.egress.gather(&home)?.open();
            shell(&launcher, &given, &home, &egress)
        }
        SandboxCommand::Run { timeout, command } => {
            let (home, file) = context.inhabited()?;
            let egress = file.egress.gather(&home)?.open();
            let timeout = Span::from_millis(i64::from(*timeout));
            let program = Program::Shell(command.join(" "));
            let mut spec = command_spec(&home.join(WORKSPACE), program, timeout);
            spec.network = egress.network();
            let mut running = launcher.launch(&plan(&spec, &given)?)?;
            let way = running.take_proxy();
            report_outcome(context, &attended(way, &home, &egress, move || running.wait())?)
        }
    }
}

/// A shell at this terminal, in a sandbox that lasts as long as it does.
fn shell(
    launcher: &Launcher,
    given: &Probe,
    home: &Path,
    egress: &EgressConfig,
) -> Result<ExitCode, CliError> {
    let mut spec = command_spec(&home.join(WORKSPACE), Program::Later, Span::ZERO);
    spec.limits = RunLimits::service();
    spec.network = egress.network();
    let mut session = launcher.open(&plan(&spec, given)?)?;
    let way = session.take_proxy();
    let own = |stream: io::Result<OwnedFd>| {
        let failed = |error| CliError::internal("cannot use the standard streams", &error);
        stream.map(File::from).map_err(failed)
    };
    let keyboard = own(io::stdin().as_fd().try_clone_to_owned())?;
    let screen = own(io::stdout().as_fd().try_clone_to_owned())?;
    let program = Program::Argv(["/bin/sh", "-c", SHELL].map(str::to_owned).to_vec());
    let env = vec![("TERM".to_owned(), "xterm-256color".to_owned())];
    let task = SessionProgram { env, ..SessionProgram::new(program) };
    let work = move || converse(&session, &task, keyboard, screen);
    let status = attended(way, home, egress, work)?;
    Ok(u8::try_from(status.code()).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Waits for the end of what runs, and serves its way out meanwhile: judged as for the tool,
/// in the creator's name, and not recorded, since the record is the automaton's.
fn attended<T: Send + 'static>(
    way: Option<TcpListener>,
    home: &Path,
    egress: &EgressConfig,
    work: impl FnOnce() -> Result<T, LaunchError> + Send + 'static,
) -> Result<T, CliError> {
    let Some(way) = way else { return Ok(work()?) };
    let judge = operator::judge(&operator::path(home), operator::text(home)?.as_deref())?;
    let gate = EgressGate::new(
        egress,
        judge,
        id_generator(),
        manual_provenance(&id_generator()),
        Vec::new(),
        None,
    );
    let proxy = egress.proxy()?;
    let broken = |error: &(dyn std::error::Error + 'static)| {
        CliError::internal("the way out of the command broke down", error)
    };
    runtime()?.block_on(async {
        let waiting = spawn_blocking(work);
        let ended = run_with_egress(&proxy, Some((way, Arc::new(gate))), waiting).await;
        let ended = ended.map_err(|error| broken(&error))?.map_err(|error| broken(&error))?;
        Ok(ended?)
    })
}

/// Returns a sign that this is a machine of a cloud, or a container. It changes nothing: commands
/// need the sandbox there too.
fn within(sandbox_id: Option<&str>, root: &Path) -> Option<String> {
    let named = sandbox_id.map(|id| format!("{CONWAY_SANDBOX_ID} is {}", id.escape_debug()));
    let signs = ["etc/conway/sandbox.json", ".dockerenv", "run/.containerenv"];
    let found = || signs.into_iter().find(|sign| root.join(sign).exists());
    named.or_else(|| found().map(|sign| format!("there is /{sign}")))
}

/// Row of a feature.
#[derive(Debug, Serialize)]
struct FeatureRow {
    feature: &'static str,
    /// Reason for which it is missing; `None` if it is there.
    missing: Option<String>,
}

#[derive(Debug, Serialize)]
struct SandboxReport {
    features: Vec<FeatureRow>,
    /// Limits of memory and processes.
    limits: String,
    /// Reason for which no command runs; `None` if commands run.
    refusal: Option<String>,
    /// Sign that this is a machine of a cloud or a container; `None` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    within: Option<String>,
    /// Hosts that commands of the home's automaton may reach; `None` without an automaton.
    #[serde(skip_serializing_if = "Option::is_none")]
    egress: Option<Vec<String>>,
}

fn report_probe(
    context: &CommandContext,
    given: &Probe,
    quick_start: &Feature,
) -> Result<ExitCode, CliError> {
    fn row<T>(feature: &'static str, found: &Feature<T>) -> FeatureRow {
        let missing = match found {
            Feature::Available(_) => None,
            Feature::Missing(why) => Some(why.clone()),
        };
        FeatureRow { feature, missing }
    }
    let cpus = match &given.cgroup {
        Feature::Available(base) if base.limits_cpus() => Feature::Available(()),
        Feature::Available(_) => Feature::Missing("control groups limit no processors".to_owned()),
        Feature::Missing(why) => Feature::Missing(why.clone()),
    };
    let features = vec![
        row("user namespace", &given.user_namespace),
        row("user of its own", &given.own_user),
        row("mount namespace", &given.mount_namespace),
        row("mount interface", &given.mount_interface),
        row("process namespace", &given.process_namespace),
        row("private /proc", &given.private_proc),
        row("network namespace", &given.network_namespace),
        row("ipc namespace", &given.ipc_namespace),
        row("host name namespace", &given.host_name_namespace),
        row("landlock", &given.landlock_abi),
        row("seccomp", &given.seccomp),
        row("control groups", &given.cgroup),
        row("processor limits", &cpus),
        row("quick start", quick_start),
    ];
    let refusal = agent::check_sandbox(given).err();
    let runs = refusal.is_none();
    let refusal = refusal.map(|refusal| {
        let hint = refusal.hint().map_or_else(String::new, |hint| format!(" ({hint})"));
        format!("{}{hint}", chain(&refusal))
    });
    let lives = context.home().is_ok_and(|home| home.join(FILE_NAME).exists());
    let file = if lives { Some(context.inhabited()?.1) } else { None };
    let egress = file.map(|file| file.egress.unread().open().places().collect());
    let within = within(context.environment.sandbox_id.as_deref(), Path::new("/"));
    let told = SandboxReport { features, limits: describe_limits(given), refusal, within, egress };
    context.format.answer(&told, || {
        let line = |FeatureRow { feature, missing }: &FeatureRow| {
            format!("{feature:<20} {}", missing.as_deref().unwrap_or("yes"))
        };
        let mut lines: Vec<String> = told.features.iter().map(line).collect();
        if let Some(places) = &told.egress {
            lines.push(match places.as_slice() {
                [] => NO_WAY_OUT.to_owned(),
                places => format!("Commands reach only {}.", places.join(", ")),
            });
        }
        lines.extend(told.within.as_ref().map(|sign| {
            format!(
                "This is inside of another machine ({sign}): commands get a sandbox of their own \
                 here all the same, unless `sandboxId` names a rented machine."
            )
        }));
        lines.push(match &told.refusal {
            None => format!("Commands run here, limited by {}.", told.limits),
            Some(why) => format!("No command can run here: {why}."),
        });
        wrap::hanging(&lines.join("\n"), context.screen().width())
    })?;
    Ok(if runs { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Result of a command.
#[derive(Debug, Serialize)]
struct RunReport {
    exit_code: i32,
    status: String,
    stdout: String,
    stderr: String,
    duration_ms: u128,
    limits: String,
}

fn report_outcome(context: &CommandContext, outcome: &RunOutcome) -> Result<ExitCode, CliError> {
    let RunOutcome { status, stdout, stderr, duration, enforcement } = outcome;
    let exit_code = status.code();
    let stdout = stdout.text_lossy();
    let stderr = stderr.text_lossy();
    match context.format {
        Format::Json => crate::ui::json(&RunReport {
            exit_code,
            status: status.to_string(),
            stdout,
            stderr,
            duration_ms: duration.as_millis(),
            limits: enforcement.to_string(),
        })?,
        Format::Text => {
            let note =
                if status.exited_by_itself() { String::new() } else { format!("{status}\n") };
            let written = |mut out: io::StdoutLock<'_>, mut err: io::StderrLock<'_>| {
                let told = fit(&out, stdout.as_bytes());
                let told_err = fit(&err, stderr.as_bytes());
                out.write_all(&told).and_then(|()| out.flush())?;
                err.write_all(&told_err).and_then(|()| err.write_all(note.as_bytes()))
            };
            written(io::stdout().lock(), io::stderr().lock())
                .map_err(|error| CliError::output(&error))?;
        }
    }
    Ok(ExitCode::from(u8::try_from(exit_code).unwrap_or(u8::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_machine_around_is_told_by_its_signs() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(within(None, root.path()), None);
        std::fs::write(root.path().join(".dockerenv"), "").unwrap();
        assert_eq!(within(None, root.path()).unwrap(), "there is /.dockerenv");
        std::fs::create_dir_all(root.path().join("etc/conway")).unwrap();
        std::fs::write(root.path().join("etc/conway/sandbox.json"), "{}").unwrap();
        assert_eq!(within(None, root.path()).unwrap(), "there is /etc/conway/sandbox.json");
        assert_eq!(within(Some("a\nb"), root.path()).unwrap(), "CONWAY_SANDBOX_ID is a\\nb");
    }
}

//! `sandbox`: what this machine gives a sandbox, and commands run in one.
//!
//! A command is run as the tool `exec` runs it: in the automaton's workspace, under the same
//! limits, with nothing of the host. There is no way here to ask for less.

use std::io::{self, Write as _};
use std::process::ExitCode;

use automaton_agent::{command_spec, describe_limits};
use automaton_core::error::{Classified, chain};
use automaton_core::time::Span;
use automaton_sandbox::{Feature, Launcher, Outcome, Probe, Program, plan, probe};
use clap::Subcommand;
use serde::Serialize;

use super::Context;
use super::live::executable;
use crate::error::Failure;
use crate::home::WORKSPACE;
use crate::role::agent;
use crate::ui::Format;

/// What a person may ask of the sandbox.
#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Show what this machine gives a sandbox, and whether commands run
    Probe,
    /// Run a command in the automaton's workspace, as its tool `exec` does
    Run {
        /// How long it may run, in milliseconds
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
pub(crate) fn run(context: &Context, command: &SandboxCommand) -> Result<ExitCode, Failure> {
    let launcher = Launcher::new(executable()?);
    let given = probe(&launcher);
    match command {
        SandboxCommand::Probe => tell(context, &given),
        SandboxCommand::Run { timeout, command } => {
            let (home, _) = context.inhabited()?;
            let timeout = Span::from_millis(i64::from(*timeout));
            let program = Program::Shell(command.join(" "));
            let spec = command_spec(&home.join(WORKSPACE), program, timeout);
            let outcome = launcher.launch(&plan(&spec, &given)?)?.wait()?;
            told(context, &outcome)
        }
    }
}

/// What a feature comes to.
#[derive(Debug, Serialize)]
struct Row {
    feature: &'static str,
    /// Why it is missing; nothing when it is there.
    missing: Option<String>,
}

#[derive(Debug, Serialize)]
struct Told {
    features: Vec<Row>,
    /// How memory and processes are limited.
    limits: String,
    /// Why no command runs; nothing when they do.
    refusal: Option<String>,
}

fn tell(context: &Context, given: &Probe) -> Result<ExitCode, Failure> {
    fn row<T>(feature: &'static str, found: &Feature<T>) -> Row {
        let missing = match found {
            Feature::Available(_) => None,
            Feature::Missing(why) => Some(why.clone()),
        };
        Row { feature, missing }
    }
    let features = vec![
        row("user namespace", &given.user_namespace),
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
    ];
    let refusal = agent::check_sandbox(given).err();
    let runs = refusal.is_none();
    let refusal = refusal.map(|refusal| {
        let hint = refusal.hint().map_or_else(String::new, |hint| format!(" ({hint})"));
        format!("{}{hint}", chain(&refusal))
    });
    let told = Told { features, limits: describe_limits(given), refusal };
    context.format.answer(&told, || {
        let line = |Row { feature, missing }: &Row| {
            format!("{feature:<20} {}", missing.as_deref().unwrap_or("yes"))
        };
        let mut lines: Vec<String> = told.features.iter().map(line).collect();
        lines.push(match &told.refusal {
            None => format!("Commands run here, limited by {}.", told.limits),
            Some(why) => format!("No command runs here: {why}."),
        });
        lines.join("\n")
    })?;
    Ok(if runs { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What became of a command.
#[derive(Debug, Serialize)]
struct Ran {
    exit_code: i32,
    status: String,
    stdout: String,
    stderr: String,
    duration_ms: u128,
    limits: String,
}

fn told(context: &Context, outcome: &Outcome) -> Result<ExitCode, Failure> {
    let Outcome { status, stdout, stderr, duration, enforcement } = outcome;
    let (exit_code, stdout, stderr) = (status.code(), stdout.text_lossy(), stderr.text_lossy());
    match context.format {
        Format::Json => crate::ui::json(&Ran {
            exit_code,
            status: status.to_string(),
            stdout,
            stderr,
            duration_ms: duration.as_millis(),
            limits: enforcement.to_string(),
        })?,
        Format::Text => {
            let note = if status.is_by_itself() { String::new() } else { format!("{status}\n") };
            let written = |mut out: io::StdoutLock<'_>, mut err: io::StderrLock<'_>| {
                out.write_all(stdout.as_bytes()).and_then(|()| out.flush())?;
                err.write_all(stderr.as_bytes()).and_then(|()| err.write_all(note.as_bytes()))
            };
            written(io::stdout().lock(), io::stderr().lock())
                .map_err(|error| Failure::output(&error))?;
        }
    }
    Ok(ExitCode::from(u8::try_from(exit_code).unwrap_or(u8::MAX)))
}

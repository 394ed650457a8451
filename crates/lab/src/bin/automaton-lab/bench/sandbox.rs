//! `bench sandbox`: how long `true` takes from its start to its end, in the sandbox that
//! commands get, in bubblewrap's where that is installed, and in none.
//!
//! The three take turns, so that whatever else the machine does hits each alike. What runs
//! without a sandbox here is `true`, and nothing else ever is.

use std::path::Path;
use std::time::Duration;

use automaton::cmd::CommandContext;
use automaton::error::CliError;
use automaton::home::make_directory;
use automaton_agent::command_spec;
use automaton_core::time::Span;
use automaton_sandbox::process::{ProcessCommand, spawn};
use automaton_sandbox::{Launcher, Program, plan, probe};
use serde::Serialize;
use tokio::time::Instant;

use crate::product;

/// Number of runs.
const RUNS: usize = 200;
/// Time that a run may take.
const LIMIT: Span = Span::from_secs(30);
/// Paths of the compared programs on Debian.
const TRUE: &str = "/usr/bin/true";
const BUBBLEWRAP: &str = "/usr/bin/bwrap";
/// Arguments of bubblewrap: as much of our sandbox's isolation as it can provide.
const BUBBLEWRAP_ARGUMENTS: [&str; 24] = [
    "--unshare-all",
    "--die-with-parent",
    "--new-session",
    "--ro-bind",
    "/usr",
    "/usr",
    "--ro-bind",
    "/etc",
    "/etc",
    "--symlink",
    "usr/bin",
    "/bin",
    "--symlink",
    "usr/lib",
    "/lib",
    "--symlink",
    "usr/lib64",
    "/lib64",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--tmpfs",
    "/tmp",
];

/// Results.
#[derive(Debug, Serialize)]
struct SandboxMeasurement {
    sandboxed: Percentiles,
    /// In bubblewrap; nothing where it is not installed.
    bubblewrap: Option<Percentiles>,
    /// Without any sandbox.
    bare: Percentiles,
    /// Our median for a hundred of bubblewrap's.
    percent_of_bubblewrap: Option<u128>,
}

/// Durations in microseconds.
#[derive(Debug, Clone, Copy, Serialize)]
struct Percentiles {
    median_us: u128,
    /// 99th percentile.
    p99_us: u128,
}

impl Percentiles {
    fn from_times(mut took: Vec<Duration>) -> Self {
        took.sort_unstable();
        let at = |hundredth: usize| {
            let place = (took.len() * hundredth / 100).min(took.len().saturating_sub(1));
            took.get(place).map_or(0, Duration::as_micros)
        };
        Self { median_us: at(50), p99_us: at(99) }
    }
}

/// Measures, and tells.
///
/// # Errors
/// When no command runs here.
pub(super) fn run(context: &CommandContext) -> Result<(), CliError> {
    let scratch = context.scratch()?;
    let workspace = scratch.home();
    make_directory(&workspace)
        .map_err(|error| CliError::internal("cannot make a folder to measure in", &error))?;
    let launcher = Launcher::new(product()?);
    let spec = command_spec(&workspace, Program::Argv(vec![TRUE.to_owned()]), LIMIT);
    let plan = plan(&spec, &probe(&launcher))?;
    let has_bubblewrap = Path::new(BUBBLEWRAP).exists();
    let [mut ours, mut theirs, mut bare] = [const { Vec::new() }; 3];
    for _ in 0..RUNS {
        let began = Instant::now();
        let outcome = launcher.launch(&plan)?.wait()?;
        ours.push(began.elapsed());
        if !outcome.status.is_success() {
            let what = format!("{TRUE} failed in the sandbox: {}", outcome.status);
            return Err(CliError::user(what));
        }
        bare.push(plain(ProcessCommand::new(Path::new(TRUE)))?);
        if has_bubblewrap {
            let wrapped = BUBBLEWRAP_ARGUMENTS.iter().chain([&TRUE]);
            theirs.push(plain(
                wrapped.fold(ProcessCommand::new(Path::new(BUBBLEWRAP)), ProcessCommand::arg),
            )?);
        }
    }
    let sandboxed = Percentiles::from_times(ours);
    let bubblewrap = has_bubblewrap.then(|| Percentiles::from_times(theirs));
    let percent = |theirs: Percentiles| sandboxed.median_us * 100 / theirs.median_us.max(1);
    let measured = SandboxMeasurement {
        sandboxed,
        bubblewrap,
        bare: Percentiles::from_times(bare),
        percent_of_bubblewrap: bubblewrap.map(percent),
    };
    context.format.answer(&measured, || {
        let line = |what: &str, Percentiles { median_us, p99_us }: Percentiles| {
            format!("{median_us:>8} us {what}; one in a hundred longer than {p99_us}")
        };
        let theirs = bubblewrap.map_or_else(
            || format!("         bubblewrap is not installed ({BUBBLEWRAP})"),
            |theirs| line("in bubblewrap", theirs),
        );
        let ours = line("in the sandbox", sandboxed);
        let bare = line("in none", measured.bare);
        format!("{ours}\n{theirs}\n{bare}")
    })
}

/// Measures a program of this machine without our sandbox.
fn plain(command: ProcessCommand) -> Result<Duration, CliError> {
    let began = Instant::now();
    let status = spawn(command)?.wait()?;
    let took = began.elapsed();
    match status.is_success() {
        true => Ok(took),
        false => Err(CliError::user(format!("a program to compare with failed: {status}"))),
    }
}

//! `bench jobs`: usual jobs of developers, each done in the sandbox that commands get.
//!
//! A job is a script whose first line names the programs that it needs, and whose second says
//! what it does. It runs in an empty workspace, without a network, and works if its exit code
//! is 0. One whose program is not there, as commands see this machine, is skipped with the
//! reason. Nothing of a job runs outside of a sandbox.

use std::time::Duration;

use automaton::cmd::CommandContext;
use automaton::error::CliError;
use automaton::home::make_directory;
use automaton_agent::command_spec;
use automaton_core::time::Span;
use automaton_sandbox::{ExitStatus, Launcher, Probe, Program, RunOutcome, plan, probe_with};
use clap::Args;
use serde::Serialize;

use crate::product;

/// Time that a job may take.
const LIMIT: Span = Span::from_secs(180);
/// The exit code of a job that cannot be tried here.
const SKIPPED: i32 = 77;
/// The last lines of a job that failed, which are told.
const LINES_MAX: usize = 6;

/// Arguments of the bench.
#[derive(Debug, Args)]
pub(crate) struct BenchJobsArgs {
    /// Only these jobs, by their names
    jobs: Vec<String>,
}

/// A job of developers.
#[derive(Debug, Clone, Copy)]
struct DeveloperJob {
    name: &'static str,
    script: &'static str,
}

const fn job(name: &'static str, script: &'static str) -> DeveloperJob {
    DeveloperJob { name, script }
}

/// All of them, by their names.
const JOBS: [DeveloperJob; 38] = [
    job("archives", include_str!("../../../../jobs/archives.sh")),
    job("c-library", include_str!("../../../../jobs/c-library.sh")),
    job("cargo-test", include_str!("../../../../jobs/cargo-test.sh")),
    job("cmake", include_str!("../../../../jobs/cmake.sh")),
    job("configure-and-make", include_str!("../../../../jobs/configure-and-make.sh")),
    job("debian-package", include_str!("../../../../jobs/debian-package.sh")),
    job("documents", include_str!("../../../../jobs/documents.sh")),
    job("expect", include_str!("../../../../jobs/expect.sh")),
    job("fonts", include_str!("../../../../jobs/fonts.sh")),
    job("git", include_str!("../../../../jobs/git.sh")),
    job("git-server", include_str!("../../../../jobs/git-server.sh")),
    job("go-test", include_str!("../../../../jobs/go-test.sh")),
    job("headless-browser", include_str!("../../../../jobs/headless-browser.sh")),
    job("images", include_str!("../../../../jobs/images.sh")),
    job("jar", include_str!("../../../../jobs/jar.sh")),
    job("java", include_str!("../../../../jobs/java.sh")),
    job("maven", include_str!("../../../../jobs/maven.sh")),
    job("node-dev-server", include_str!("../../../../jobs/node-dev-server.sh")),
    job("node-test", include_str!("../../../../jobs/node-test.sh")),
    job("npm-ci", include_str!("../../../../jobs/npm-ci.sh")),
    job("npm-without-network", include_str!("../../../../jobs/npm-without-network.sh")),
    job("owners", include_str!("../../../../jobs/owners.sh")),
    job("perl-module", include_str!("../../../../jobs/perl-module.sh")),
    job("pip-without-network", include_str!("../../../../jobs/pip-without-network.sh")),
    job("python-processes", include_str!("../../../../jobs/python-processes.sh")),
    job("python-sockets", include_str!("../../../../jobs/python-sockets.sh")),
    job("python-venv", include_str!("../../../../jobs/python-venv.sh")),
    job("redis", include_str!("../../../../jobs/redis.sh")),
    job("ruby", include_str!("../../../../jobs/ruby.sh")),
    job("sanitizers", include_str!("../../../../jobs/sanitizers.sh")),
    job("sqlite", include_str!("../../../../jobs/sqlite.sh")),
    job("ssh-keys", include_str!("../../../../jobs/ssh-keys.sh")),
    job("terminals", include_str!("../../../../jobs/terminals.sh")),
    job("threads", include_str!("../../../../jobs/threads.sh")),
    job("time-zones", include_str!("../../../../jobs/time-zones.sh")),
    job("tls", include_str!("../../../../jobs/tls.sh")),
    job("tmux", include_str!("../../../../jobs/tmux.sh")),
    job("watching", include_str!("../../../../jobs/watching.sh")),
];

impl DeveloperJob {
    /// A line of its head, without the mark of a comment.
    fn head(&self, line: usize) -> &'static str {
        self.script.lines().nth(line).unwrap_or_default().trim_start_matches("# ")
    }

    /// Returns the shell command: it looks for the programs, then does the job in a folder of its
    /// own.
    fn command(&self) -> String {
        let needs = self.head(0).trim_start_matches("needs:");
        format!(
            "for program in {needs}; do command -v \"$program\" > /dev/null || \
             {{ echo \"$program is not there\"; exit {SKIPPED}; }}; done\n\
             mkdir job && cd job || exit 1\nset -eu\n{}",
            self.script
        )
    }
}

/// Result of a job.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum JobOutcome {
    Works,
    Skipped,
    Fails,
}

/// Report of a job.
#[derive(Debug, Serialize)]
struct JobReport {
    job: &'static str,
    does: &'static str,
    outcome: JobOutcome,
    in_ms: u128,
    /// Reason of a skip, or the last lines of output; empty if it works.
    said: String,
}

/// Does the jobs one after the other, and tells.
///
/// # Errors
/// When no command runs here, a job of this name is not known, or one fails.
pub(super) fn run(context: &CommandContext, args: &BenchJobsArgs) -> Result<(), CliError> {
    if let Some(unknown) = args.jobs.iter().find(|name| !JOBS.iter().any(|it| it.name == **name)) {
        let known = JOBS.map(|job| job.name).join(", ");
        return Err(CliError::user(format!("there is no job {unknown:?}"))
            .hint(format!("name some of these: {known}")));
    }
    let launcher = Launcher::new(product()?);
    let chosen =
        |job: &&DeveloperJob| args.jobs.is_empty() || args.jobs.iter().any(|it| it == job.name);
    let mut reports = Vec::new();
    for job in JOBS.iter().filter(chosen) {
        reports.push(do_job(context, &launcher, job)?);
    }
    context.format.answer(&reports, || table(&reports))?;
    let failed: Vec<&str> = reports
        .iter()
        .filter(|report| matches!(report.outcome, JobOutcome::Fails))
        .map(|report| report.job)
        .collect();
    match failed.as_slice() {
        [] => Ok(()),
        failed => Err(CliError::user(format!("these jobs fail: {}", failed.join(", ")))),
    }
}

/// Does one job in a workspace that is gone afterwards.
fn do_job(
    context: &CommandContext,
    launcher: &Launcher,
    job: &DeveloperJob,
) -> Result<JobReport, CliError> {
    let scratch = context.scratch()?;
    let workspace = scratch.home();
    make_directory(&workspace)
        .map_err(|error| CliError::internal("cannot make a workspace for a job", &error))?;
    let machine: Probe = probe_with(launcher, Some(&workspace));
    let spec = command_spec(&workspace, Program::Shell(job.command()), LIMIT);
    let ended = launcher.launch(&plan(&spec, &machine)?)?.wait()?;
    let outcome = match ended.status {
        ExitStatus::Exited(0) => JobOutcome::Works,
        ExitStatus::Exited(SKIPPED) => JobOutcome::Skipped,
        _ => JobOutcome::Fails,
    };
    let said = match outcome {
        JobOutcome::Works => String::new(),
        JobOutcome::Skipped => ended.stdout.text_lossy().trim().to_owned(),
        JobOutcome::Fails => last_words(&ended),
    };
    Ok(JobReport {
        job: job.name,
        does: job.head(1),
        outcome,
        in_ms: Duration::as_millis(&ended.duration),
        said,
    })
}

/// The last lines of both outputs, and how it ended.
fn last_words(ended: &RunOutcome) -> String {
    let text = format!("{}{}", ended.stdout.text_lossy(), ended.stderr.text_lossy());
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.iter().skip(lines.len().saturating_sub(LINES_MAX)).copied();
    let ended = ended.status.to_string();
    last.chain([ended.as_str()]).collect::<Vec<_>>().join("\n")
}

fn table(reports: &[JobReport]) -> String {
    let lines = reports.iter().map(|report| {
        let JobReport { job, does, outcome, in_ms, said } = report;
        match outcome {
            JobOutcome::Works => format!("works    {job:22} {in_ms:>6} ms  {does}"),
            JobOutcome::Skipped => format!("skipped  {job:22}            {said}"),
            JobOutcome::Fails => {
                let said = said.replace('\n', "\n           ");
                format!("fails    {job:22} {in_ms:>6} ms  {does}\n           {said}")
            }
        }
    });
    let count = |wanted: fn(&JobOutcome) -> bool| {
        reports.iter().filter(|report| wanted(&report.outcome)).count()
    };
    let works = count(|it| matches!(it, JobOutcome::Works));
    let skipped = count(|it| matches!(it, JobOutcome::Skipped));
    let fails = count(|it| matches!(it, JobOutcome::Fails));
    let sum = format!("{works} work, {skipped} were skipped, {fails} fail");
    lines.chain([sum]).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_job_names_what_it_needs_and_what_it_does() {
        assert!(JOBS.len() >= 30, "{}", JOBS.len());
        assert!(JOBS.is_sorted_by_key(|job| job.name));
        for job in JOBS {
            assert!(job.script.starts_with("# needs: "), "{}", job.name);
            assert!(job.head(1).ends_with('.'), "{}", job.name);
        }
    }
}

//! Hands: ways out of the sandbox, tried on this machine, and what many commands leave behind.
//!
//! What could be lost is planted for the drill. The attempts are those that the sandbox is
//! tested with, and a few scripts that end well only when they got something. None may harm:
//! what takes from the machine itself is never tried without what stops it.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use automaton_agent::command_spec;
use automaton_core::error::Classified;
use automaton_core::time::Span;
use automaton_sandbox::drill::{AttemptTarget, AttemptVerdict, ControlResult, Controls, Drill};
use automaton_sandbox::{
    CapturedOutput, ExitStatus, Feature, LaunchError, Launcher, PlanRefusal, Probe, Program,
    RunLimits, RunOutcome, SandboxSpec, plan, probe,
};

/// Time that an attempt may take.
const LIMIT: Span = Span::from_secs(20);
/// Time that a script may take.
const SCRIPT_LIMIT: Duration = Duration::from_secs(5);
/// Much longer than a daemon waits before it writes again.
const TICK_MAX: Duration = Duration::from_millis(200);
/// Time in which ended processes must disappear.
const SETTLES: Duration = Duration::from_secs(5);

/// Something could not be tried.
#[derive(Debug, thiserror::Error, Classified)]
pub enum SandboxCheckError {
    /// The bait could not be planted.
    #[error("cannot make what the drill needs")]
    #[class(Internal)]
    Plant(#[source] io::Error),
    /// No such sandbox can be had here.
    #[error(transparent)]
    Refused(#[from] PlanRefusal),
    /// A sandbox could not be started, or not be followed.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A thread of the drill is gone.
    #[error("a thread of the drill broke down")]
    #[class(User)]
    Thread,
}

/// Result of one check.
#[derive(Debug)]
pub struct SandboxCheckResult {
    /// The check.
    pub what: String,
    /// True if the promise held.
    pub held: bool,
    /// Observation.
    pub found: String,
}

/// Amount of checks.
#[derive(Debug, Clone, Copy)]
pub struct CheckScope {
    /// Commands that run one after the other, after which nothing may be left.
    pub commands: u32,
    /// Sandboxes that are held to their limits at once.
    pub at_once: u32,
    /// True to repeat harmless attempts without the layers that stop them.
    pub controls: bool,
}

/// Tries all of it in this folder, which is empty, with the program that starts commands in
/// the sandbox and the one that makes attempts there; tells each.
///
/// # Errors
/// When something cannot be tried, or not be told.
pub fn run_checks<E: From<SandboxCheckError>>(
    program: PathBuf,
    attempt: PathBuf,
    root: &Path,
    extent: CheckScope,
    tell: &mut dyn FnMut(SandboxCheckResult) -> Result<(), E>,
) -> Result<(), E> {
    let launcher = Launcher::new(program);
    let probe = probe(&launcher);
    let place = CheckEnvironment { attempt, launcher, probe, root };
    make(&place.workspace())?;
    ways_out(&place, extent.controls, tell)?;
    scripts(&place, tell)?;
    tell(at_once(&place, extent.at_once)?)?;
    tell(leaks(&place, extent.commands)?)
}

/// A check that needs a shell on a used machine: its name, a script, and the test of its end.
type ShellCase = (&'static str, &'static str, fn(&RunOutcome) -> bool);

const SCRIPTS: [ShellCase; 12] = [
    ("use the workspace", "echo mine > file && grep -q mine file", went_well),
    ("read over /proc/1/root", "grep -q planted /proc/1/root{planted}/home/state.db", failed),
    ("read the password file", "grep -q : /etc/shadow", failed),
    ("read what starts this machine", "ls /boot /sys/firmware 2>/dev/null | grep -q .", failed),
    ("read the environment of the first process", "grep -q . /proc/1/environ", failed),
    ("trace the first process", "grep -q . /proc/1/mem", failed),
    ("write system folders", "touch /usr/x || touch /etc/x || touch /x", failed),
    ("gain rights from a set-user-id program", "su -c true || sudo -n true", failed),
    (
        "open a terminal or a disk",
        "ls /dev/tty?* /dev/console /dev/pts/[0-9]* /dev/sd* /dev/vd* /dev/kmsg | grep -q .",
        failed,
    ),
    (
        "leave a daemon",
        "setsid sh -c 'while sleep 0.02; do echo x >> tick; done' & until test -s tick; do sleep 0.02; done",
        went_well,
    ),
    ("flood its reader", "head -c 100000000 /dev/zero; head -c 100000000 /dev/zero >&2", is_cut),
    ("sleep for ever", "trap '' TERM; sleep 1000000", |outcome| {
        outcome.status == ExitStatus::TimedOut
    }),
];

fn went_well(outcome: &RunOutcome) -> bool {
    outcome.status.is_success()
}

fn failed(outcome: &RunOutcome) -> bool {
    matches!(outcome.status, ExitStatus::Exited(1..))
}

fn is_cut(outcome: &RunOutcome) -> bool {
    let most = |kept: &CapturedOutput| kept.omitted_bytes > 90_000_000;
    went_well(outcome) && most(&outcome.stdout) && most(&outcome.stderr)
}

struct CheckEnvironment<'a> {
    attempt: PathBuf,
    launcher: Launcher,
    probe: Probe,
    root: &'a Path,
}

impl CheckEnvironment<'_> {
    fn workspace(&self) -> PathBuf {
        self.root.join("workspace")
    }

    fn planted(&self) -> PathBuf {
        self.root.join("planted")
    }

    fn spec(&self, command: &str) -> SandboxSpec {
        command_spec(&self.workspace(), Program::Shell(command.to_owned()), LIMIT)
    }

    fn run(&self, spec: &SandboxSpec) -> Result<RunOutcome, SandboxCheckError> {
        Ok(self.launcher.launch(&plan(spec, &self.probe)?)?.wait()?)
    }
}

fn make(folder: &Path) -> Result<(), SandboxCheckError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(SandboxCheckError::Plant)
}

/// The list that the sandbox is tested with.
fn ways_out<E: From<SandboxCheckError>>(
    place: &CheckEnvironment<'_>,
    controls: bool,
    tell: &mut dyn FnMut(SandboxCheckResult) -> Result<(), E>,
) -> Result<(), E> {
    make(&place.planted())?;
    let launcher = place.launcher.clone();
    let probe = place.probe.clone();
    let drill = Drill::new(launcher, place.attempt.clone(), probe, &place.planted());
    let drill = drill.map_err(SandboxCheckError::Plant)?;
    let controls = if controls { Controls::Harmless } else { Controls::Without };
    for attempt in AttemptTarget::ALL.into_iter().flat_map(|subject| drill.attempts(subject)) {
        let AttemptVerdict { broken, said, control } =
            drill.run_all_combinations(&attempt, controls).map_err(SandboxCheckError::from)?;
        let names: Vec<_> = attempt.defences.iter().map(|one| format!("{one:?}")).collect();
        let control = match control {
            _ if controls == Controls::Without => String::new(),
            ControlResult::Succeeded => "; without these it succeeds".to_owned(),
            ControlResult::Refused(said) => format!("; refused without these too, {said}"),
            ControlResult::Left(why) => format!("; not tried without these, {why}"),
        };
        let held = broken.is_empty();
        let said = if held { said } else { broken.join("; ") };
        let found = format!("{said} [{}{control}]", names.join(", "));
        tell(SandboxCheckResult { what: attempt.name.to_owned(), held, found })?;
    }
    Ok(())
}

/// Runs the scripts, and returns the state of the daemon that one of them left.
fn scripts<E: From<SandboxCheckError>>(
    place: &CheckEnvironment<'_>,
    tell: &mut dyn FnMut(SandboxCheckResult) -> Result<(), E>,
) -> Result<(), E> {
    let planted = place.planted().display().to_string();
    for (what, script, is_held) in SCRIPTS {
        let mut spec = place.spec(&script.replace("{planted}", &planted));
        spec.limits.wall = Some(SCRIPT_LIMIT);
        let outcome = place.run(&spec)?;
        let said = outcome.stderr.text_lossy();
        let said = said.lines().last().filter(|_| failed(&outcome));
        let found = said.map_or_else(|| outcome.status.to_string(), str::to_owned);
        tell(SandboxCheckResult { what: what.to_owned(), held: is_held(&outcome), found })?;
    }
    let ticks = || fs::metadata(place.workspace().join("tick")).map(|found| found.len());
    let before = ticks().map_err(SandboxCheckError::Plant)?;
    thread::sleep(TICK_MAX);
    let held = ticks().is_ok_and(|after| after == before);
    let found = format!("{before} signs of life, {}", if held { "the last" } else { "and more" });
    tell(SandboxCheckResult { what: "hear of the daemon".to_owned(), held, found })
}

/// Many sandboxes at once, each of which wants more than it may have.
fn at_once(
    place: &CheckEnvironment<'_>,
    count: u32,
) -> Result<SandboxCheckResult, SandboxCheckError> {
    let limits = RunLimits { memory_bytes: 48 << 20, processes: 16, ..RunLimits::default() };
    let greedy = [
        // More memory than there is for it.
        "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo got it",
        // More processes.
        "for i in $(seq 40); do sleep 3 & done 2>/dev/null; test $(jobs -r | wc -l) -gt 16 && echo got it",
    ];
    let run = |nth: u32| -> Result<bool, SandboxCheckError> {
        let command = greedy[usize::from(nth.is_multiple_of(2))];
        let outcome = place.run(&SandboxSpec { limits, ..place.spec(command) })?;
        Ok(!outcome.stdout.text_lossy().contains("got it"))
    };
    let held = thread::scope(|scope| {
        let runs: Vec<_> = (0..count).map(|nth| scope.spawn(move || run(nth))).collect();
        let ended =
            runs.into_iter().map(|run| run.join().map_err(|_| SandboxCheckError::Thread)?);
        ended.collect::<Result<Vec<_>, _>>()
    })?;
    let within = held.iter().filter(|held| **held).count();
    Ok(SandboxCheckResult {
        what: format!("{count} sandboxes at once, each of which wants too much"),
        held: within == held.len(),
        found: format!("{within} were held to their limits"),
    })
}

/// Resources of a process, and the machine for it.
#[derive(Debug)]
struct CheckContext {
    descriptors: usize,
    threads: usize,
    mounts: usize,
    groups: BTreeSet<String>,
    files: BTreeSet<String>,
    children: BTreeSet<String>,
}

impl CheckContext {
    fn now(place: &CheckEnvironment<'_>) -> Self {
        let names = |folder: &Path| -> BTreeSet<String> {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        };
        let groups = match &place.probe.cgroup {
            Feature::Available(base) => base.folders(),
            Feature::Missing(_) => Vec::new(),
        };
        // Of helpers that are gone; those that live are others'.
        let is_left = |name: &String| {
            let maker = name.strip_prefix("automaton-");
            maker.is_some_and(|pid| !Path::new("/proc").join(pid).exists())
        };
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let children = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
        Self {
            descriptors: names(Path::new("/proc/self/fd")).len(),
            threads: names(Path::new("/proc/self/task")).len(),
            mounts: mounts.lines().count(),
            groups: groups.into_iter().flat_map(names).filter(is_left).collect(),
            files: names(place.root),
            children: children.split_whitespace().map(str::to_owned).collect(),
        }
    }

    /// Returns true if nothing was added to the earlier state. Others may have removed what is
    /// theirs.
    fn is_within(&self, before: &Self) -> bool {
        self.descriptors <= before.descriptors
            && self.threads <= before.threads
            && self.mounts <= before.mounts
            && self.groups.is_subset(&before.groups)
            && self.files.is_subset(&before.files)
            && self.children.is_subset(&before.children)
    }
}

/// Many commands, one after the other, and what is left then.
fn leaks(
    place: &CheckEnvironment<'_>,
    count: u32,
) -> Result<SandboxCheckResult, SandboxCheckError> {
    let spec = place.spec("true & (sleep 60 &) ; echo x > /tmp/x; exit 0");
    let before = CheckContext::now(place);
    let mut failed = 0;
    for _ in 0..count {
        failed += u32::from(!place.run(&spec)?.status.is_success());
    }
    let mut after = CheckContext::now(place);
    let mut waited = Duration::ZERO;
    while !after.is_within(&before) && waited < SETTLES {
        thread::sleep(Duration::from_millis(50));
        (after, waited) = (CheckContext::now(place), waited + Duration::from_millis(50));
    }
    // What a daemon needs is there still.
    let socket = UnixListener::bind(place.root.join("socket")).is_ok();
    let file = fs::File::create(place.root.join("file")).is_ok();
    let held = after.is_within(&before) && socket && file && failed == 0;
    let found = match held {
        true => "nothing is left of them".to_owned(),
        false => format!("{failed} failed; before {before:?}, after {after:?}"),
    };
    Ok(SandboxCheckResult { what: format!("{count} commands, one after the other"), held, found })
}

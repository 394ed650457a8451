//! A launcher over this crate's helper, and short ways to run something.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use automaton_sandbox::{
    Bind, Feature, Launcher, Probe, Program, RunOutcome, SandboxSpec, plan, probe,
};

/// Names a folder with copies of the programs that every user can execute.
pub(crate) const PROGRAMS: &str = "SANDBOX_TEST_PROGRAMS";

/// The path of the attempting program in the sandbox.
pub(crate) const ATTEMPT_INSIDE: &str = "/opt/attempt";

fn program(built: &str) -> PathBuf {
    match std::env::var_os(PROGRAMS) {
        Some(folder) => Path::new(&folder).join(Path::new(built).file_name().unwrap()),
        None => built.into(),
    }
}

/// The crate's own helper.
pub(crate) fn helper() -> PathBuf {
    program(env!("CARGO_BIN_EXE_automaton-sandbox-helper"))
}

/// The program with the attempts.
pub(crate) fn attempt_program() -> PathBuf {
    program(env!("CARGO_BIN_EXE_automaton-sandbox-attempt"))
}

pub(crate) fn launcher() -> Launcher {
    Launcher::new(helper())
}

/// Returns the features of this machine.
pub(crate) fn machine() -> &'static Probe {
    static MACHINE: OnceLock<Probe> = OnceLock::new();
    MACHINE.get_or_init(|| probe(&launcher()))
}

/// The same machine without control groups.
pub(crate) fn machine_without_cgroups() -> Probe {
    Probe { cgroup: Feature::Missing("left out by a test".to_owned()), ..machine().clone() }
}

/// A shell command in a workspace.
pub(crate) fn shell(line: &str, workspace: &Path) -> SandboxSpec {
    SandboxSpec {
        workspace: Some(workspace.to_owned()),
        ..SandboxSpec::new(Program::Shell(line.to_owned()))
    }
}

/// One of the attempts, in a workspace.
pub(crate) fn attempt(words: &[&str], workspace: &Path) -> SandboxSpec {
    let mut argv = vec![ATTEMPT_INSIDE.to_owned()];
    argv.extend(words.iter().map(|word| (*word).to_owned()));
    SandboxSpec {
        workspace: Some(workspace.to_owned()),
        read_only: vec![Bind { host: attempt_program(), inside: ATTEMPT_INSIDE.into() }],
        ..SandboxSpec::new(Program::Argv(argv))
    }
}

/// Runs to the end.
pub(crate) fn run(spec: &SandboxSpec) -> RunOutcome {
    run_on(spec, machine())
}

/// Runs to the end as on this machine.
pub(crate) fn run_on(spec: &SandboxSpec, machine: &Probe) -> RunOutcome {
    let plan = plan(spec, machine).unwrap();
    launcher().launch(&plan).unwrap().wait().unwrap()
}

/// Runs an ignored test in a process of its own, since it counts what its process has.
pub(crate) fn alone(test: &str) {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .output()
        .unwrap();
    println!("{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Copies a program by a process of its own. What is open for writing cannot be started: while
/// this one writes it, another test may start a child, which has it open until it is another
/// program.
pub(crate) fn copy_program(from: &Path, to: &Path) {
    assert!(Command::new("cp").args([from, to]).status().unwrap().success());
}

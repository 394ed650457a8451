//! `sandbox probe` and `sandbox run`, as a person and a script meet them.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use automaton_testkit::world::{ProcessOutput, World};
use serde_json::Value;

use super::world;

const STORY: &str = "title = \"nothing\"\n[[step]]\nsay = \"I rest.\"\n";

fn run(world: &World, arguments: &[&str]) -> ProcessOutput {
    world.command(&[&["sandbox", "run"], arguments].concat()).unwrap()
}

#[test]
fn what_a_machine_gives_is_told() {
    let world = world().story(STORY).unwrap();
    let told = world.command(&["sandbox", "probe"]).unwrap();
    assert_eq!(told.code, Some(0), "{told:?}");
    let lines: Vec<&str> = told.stdout.lines().collect();
    // One more where this is a container.
    let inside = usize::from(told.stdout.contains("This is inside of another machine"));
    assert_eq!(lines.len(), 15 + inside, "{told:?}");
    assert!(lines[0].starts_with("user namespace"), "{told:?}");
    assert!(lines[14 + inside].starts_with("Commands run here"), "{told:?}");
    let told = world.command(&["sandbox", "probe", "--json"]).unwrap();
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!((&told["refusal"], told["features"].as_array().unwrap().len()), (&Value::Null, 14));
    let quick = told["features"].as_array().unwrap().last().unwrap();
    assert_eq!((&quick["feature"], &quick["missing"]), (&"quick start".into(), &Value::Null));
}

#[test]
fn a_program_without_the_small_one_beside_it_runs_commands_and_says_so() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let alone = folder.path().join("automaton");
    fs::hard_link(env!("CARGO_BIN_EXE_automaton"), &alone).unwrap();
    let world = World::new(&alone).unwrap().story(STORY).unwrap();
    let told = world.command(&["sandbox", "probe"]).unwrap();
    let small = folder.path().join("automaton-sandbox").display().to_string();
    assert_eq!(told.code, Some(0), "{told:?}");
    let words = told.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("quick start cannot open"), "{told:?}");
    assert!(words.contains("build it: cargo build --release --package automaton"), "{told:?}");
    assert!(words.replace(' ', "").contains(&small), "{told:?}");
    world.up(&["--turns", "1"]).unwrap().finish().unwrap();
    let here = run(&world, &["echo here"]);
    assert_eq!((here.code, here.stdout.as_str()), (Some(0), "here"), "{here:?}");
}

#[test]
fn a_command_is_run_where_the_tools_commands_run() {
    let world = world().story(STORY).unwrap();
    let nobody = run(&world, &["true"]);
    assert!(nobody.code != Some(0) && nobody.stderr.contains("automaton"), "{nobody:?}");
    world.up(&["--turns", "1"]).unwrap().finish().unwrap();
    fs::write(world.home().join("workspace/a.txt"), "mine\n").unwrap();
    let read = run(&world, &["cat a.txt; pwd; echo low >&2"]);
    assert_eq!(
        (read.code, read.stdout.as_str(), read.stderr.as_str()),
        (Some(0), "mine\n/root", "low")
    );
    let words = run(&world, &["--", "ls", "-1", "/root"]);
    assert_eq!((words.code, words.stdout.as_str()), (Some(0), "a.txt"), "{words:?}");
    let home = world.home().join("automaton.json");
    let outside = run(&world, &[&format!("cat {} || ls /proc/1/root/home", home.display())]);
    assert!(outside.code != Some(0) && outside.stdout.is_empty(), "{outside:?}");
    assert_eq!(run(&world, &["exit 7"]).code, Some(7));
    let long = run(&world, &["--timeout", "300", "echo begun; sleep 9"]);
    assert_eq!((long.code, long.stdout.as_str()), (Some(124), "begun"));
    assert_eq!(long.stderr, "stopped at its time limit");
    let told = run(&world, &["--json", "kill -9 $$"]);
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!((&told["exit_code"], &told["status"]), (&137.into(), &"ended by signal 9".into()));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test types into its child")]
fn an_operator_works_in_a_shell_that_sees_what_commands_see() {
    let world = world().story(STORY).unwrap();
    world.up(&["--turns", "1"]).unwrap().finish().unwrap();
    fs::write(world.home().join("workspace/a.txt"), "mine\n").unwrap();
    let typed = "cat a.txt; pwd; sleep 100 & ls /proc | grep -c '^[0-9]'; exit 7\n";
    let mut shell = Command::new(env!("CARGO_BIN_EXE_automaton"))
        .args(["sandbox", "shell"])
        .env("AUTOMATON_HOME", world.home())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    shell.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
    let told = shell.wait_with_output().unwrap();
    let shown = String::from_utf8_lossy(&told.stdout);
    assert_eq!(told.status.code(), Some(7), "{shown}");
    assert!(shown.contains("mine\r\n") && shown.contains("/root\r\n"), "{shown}");
    assert!(!shown.contains(&world.home().display().to_string()), "{shown}");
}

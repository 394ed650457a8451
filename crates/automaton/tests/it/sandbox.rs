//! `sandbox probe` and `sandbox run`, as a person and a script meet them.

use std::fs;

use automaton_lab::world::{Finished, World};
use serde_json::Value;

use super::world;

const STORY: &str = "title = \"nothing\"\n[[step]]\nsay = \"I rest.\"\n";

fn run(world: &World, arguments: &[&str]) -> Finished {
    world.command(&[&["sandbox", "run"], arguments].concat()).unwrap()
}

#[test]
fn what_a_machine_gives_is_told() {
    let world = world().story(STORY).unwrap();
    let told = world.command(&["sandbox", "probe"]).unwrap();
    assert_eq!(told.code, Some(0), "{told:?}");
    let lines: Vec<&str> = told.stdout.lines().collect();
    assert_eq!(lines.len(), 12, "{told:?}");
    assert!(lines[0].starts_with("user namespace") && lines[11].starts_with("Commands run here"));
    let told = world.command(&["sandbox", "probe", "--json"]).unwrap();
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!((&told["refusal"], told["features"].as_array().unwrap().len()), (&Value::Null, 11));
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

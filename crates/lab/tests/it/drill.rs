//! Drills: what is promised, tried by whoever wants to know.

use std::time::Duration;

use automaton_testkit::transcript::{commands_below, words};
use automaton_testkit::world::ProcessOutput;
use serde_json::Value;

use super::paying_world;

/// Long enough for key derivations on a loaded machine.
const LIMIT: Duration = Duration::from_secs(300);

const SURVIVAL: &str = include_str!("../../../../docs/survival.md");

fn lines(finished: &ProcessOutput) -> Vec<Value> {
    finished.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_seed_tells_its_history_and_what_held() {
    let world = paying_world();
    let arguments = ["drill", "money", "--seed", "7", "--histories", "2", "--json"];
    let finished = world.start(&arguments).unwrap().finish_within(LIMIT).unwrap();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let lines = lines(&finished);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0]["tried"], "random histories of the seeds 7 to 8");
    assert_eq!(lines[0]["held"], true);
}

#[test]
fn a_home_that_somebody_has_is_not_drilled_on() {
    let world = paying_world();
    let home = world.home().display().to_string();
    let finished = world.command(&["drill", "money", "--home", &home]).unwrap();
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""), "{}", finished.stderr);
    assert!(finished.stderr.contains("touches no other"), "{}", finished.stderr);
}

#[test]
fn four_events_and_a_crash_at_every_point_are_tried() {
    let world = paying_world();
    let arguments = ["drill", "money", "--histories", "1", "--json"];
    let finished = world.start(&arguments).unwrap().finish_within(LIMIT).unwrap();
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.stdout, finished.stderr);
    let lines = lines(&finished);
    assert_eq!(lines.len(), 4 + 14 + 1, "{lines:?}");
    assert!(lines.iter().all(|line| line["held"] == true), "{lines:?}");
}

#[test]
fn a_life_goes_from_nothing_over_death_to_life_again() {
    let world = paying_world();
    let finished = world.start(&["drill", "life"]).unwrap().finish_within(LIMIT).unwrap();
    println!("{}", finished.stdout);
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.stdout, finished.stderr);
    let held = finished.stdout.lines().filter(|line| line.starts_with("held ")).count();
    assert_eq!(held, 8, "{}", finished.stdout);
    // The documentation shows it.
    let shown = commands_below(SURVIVAL, "## A life as a demonstration");
    assert_eq!(shown[0].command, "automaton drill life");
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(words).collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(sorted(&shown[0].told), sorted(&finished.stdout), "docs/survival.md");
    let times = finished.stdout.lines().filter(|line| line.starts_with("2026-11-2"));
    assert!(times.clone().count() > 20 && times.is_sorted_by_key(|line| &line[..19]));
}

fn siege(turns: &str, seed: Option<&str>) -> Vec<Value> {
    let world = paying_world();
    let mut arguments = vec!["drill", "judgement", "--turns", turns, "--json"];
    arguments.extend(seed.iter().flat_map(|seed| ["--seed", seed]));
    let finished = world.start(&arguments).unwrap().finish_within(LIMIT).unwrap();
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.stdout, finished.stderr);
    lines(&finished)
}

#[test]
fn a_model_that_is_wholly_the_attackers_gets_nothing() {
    let told = siege("5000", None);
    println!("{told:#?}");
    assert!(told.len() == 2 && told.iter().all(|line| line["held"] == true), "{told:?}");
    let found = told[0]["found"].as_str().unwrap();
    assert!(found.starts_with("5000 turns, ") && found.ends_with("no harm"), "{found}");
}

#[test]
fn a_seed_lays_the_same_siege_again() {
    let first = siege("60", Some("11"));
    assert_eq!(first, siege("60", Some("11")));
    assert_ne!(first[0]["found"], siege("60", Some("12"))[0]["found"]);
}

#[test]
fn the_sandbox_is_tried_on_this_machine_and_leaves_nothing_behind() {
    let world = paying_world();
    let tried = world.start(&["drill", "sandbox", "--controls", "--json"]).unwrap();
    let tried = tried.finish_within(LIMIT).unwrap();
    assert_eq!(tried.code, Some(0), "{tried:?}");
    let lines = lines(&tried);
    assert!(lines.len() >= 70 + 14, "{tried:?}");
    assert!(lines.iter().all(|line| line["held"] == true), "{tried:?}");
    let found = |tried: &str| {
        let line = lines.iter().find(|line| line["tried"] == tried).unwrap();
        line["found"].as_str().unwrap()
    };
    let refused =
        "No such file or directory (os error 2) [Files, Landlock; without these it succeeds]";
    assert_eq!(found("read the configuration"), refused);
    assert_eq!(found("sleep for ever"), "stopped at its time limit");
    assert_eq!(lines.last().unwrap()["tried"], "500 commands, one after the other");
    let told = |text: &str| tried.stdout.lines().filter(|line| line.contains(text)).count();
    assert!(told("without these it succeeds") >= 40, "{tried:?}");
    assert!(told("not tried without these, it would take memory from your machine") == 5);
    assert!(told("not tried without these, it would leave this machine") == 2);
}

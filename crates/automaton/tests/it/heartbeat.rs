//! A task of the heartbeat that is wanted now, from a running automaton and from none.

use std::time::Duration;

use automaton_core::event::Event;
use automaton_testkit::world::World;
use serde_json::{Value, json};

use super::world;

const LIMIT: Duration = Duration::from_secs(60);

/// It lives until it is stopped: a story that is told ends a run.
const STORY: &str = "title = \"a rest\"\n[[step]]\nsay = \"Ready.\"\n[[step]]\nsay = \"More.\"\n";

fn answer(world: &World, arguments: &[&str]) -> Value {
    let finished = world.command(arguments).unwrap();
    assert_eq!(finished.code, Some(0), "{arguments:?}: {}", finished.stderr);
    serde_json::from_str(&finished.stdout).unwrap()
}

fn row(world: &World, task: &str) -> Value {
    let schedule = world.command(&["heartbeat", "--json"]).unwrap();
    let rows = schedule.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.into_iter().find(|row| row["task"]["name"] == task).unwrap()
}

#[test]
fn a_task_runs_when_its_creator_wants_it_and_its_rhythm_stays() {
    let world = world().story(STORY).unwrap();
    assert_eq!(world.command(&["init"]).unwrap().code, Some(0));
    world
        .write_home("heartbeat.yml", "entries:\n- name: report_metrics\n  enabled: false\n")
        .unwrap();
    let mut run = world.up(&[]).unwrap();
    run.wait_for(|event| matches!(event, Event::SleepStarted { .. }), LIMIT).unwrap();
    let before = row(&world, "state_maintenance");
    for runs in [1, 2] {
        let ran = answer(&world, &["heartbeat", "run", "state_maintenance", "--json"]);
        assert_eq!(ran["result"], "success", "{ran}");
        assert!(ran["note"].as_str().unwrap().contains("old rows deleted"), "{ran}");
        let row = row(&world, "state_maintenance");
        assert_eq!((&row["runs"], &row["times"]), (&json!(runs), &before["times"]), "{row}");
    }
    for (task, told) in [
        ("fly", "there is no entry 'fly' in the schedule, which has heartbeat_ping, "),
        ("report_metrics", "'report_metrics' is off"),
    ] {
        let refused = world.command(&["heartbeat", "run", task]).unwrap();
        assert_eq!(refused.code, Some(1), "{}", refused.stdout);
        assert!(refused.stderr.contains(told), "{}", refused.stderr);
    }
    assert_eq!(world.command(&["stop"]).unwrap().code, Some(0));
    run.finish_within(LIMIT).unwrap();

    // Where nobody runs it, it is the next start that does.
    let refused = world.command(&["heartbeat", "run", "fly"]).unwrap();
    assert!(refused.stderr.contains("no entry 'fly'"), "{}", refused.stderr);
    let later = answer(&world, &["heartbeat", "run", "state_maintenance", "--json"]);
    assert_eq!(later, json!({ "task": "state_maintenance", "running": false }));
    assert_eq!(row(&world, "state_maintenance")["runs"], 2);
    let mut run = world.up(&[]).unwrap();
    let wanted = |event: &Event| matches!(event, Event::HeartbeatRan { task, .. } if task == "state_maintenance");
    run.wait_for(wanted, LIMIT).unwrap();
    assert_eq!(world.command(&["stop"]).unwrap().code, Some(0));
    run.finish_within(LIMIT).unwrap();
    assert_eq!(row(&world, "state_maintenance")["runs"], 3);
}

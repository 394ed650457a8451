//! A disk that is full: told once, waited for, and nothing is lost or begun twice.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use automaton_core::event::Event;
use automaton_testkit::world::{ProcessRun, TempDir, World};

use crate::brains::{Mood, Server};
use crate::livelihood::check_books;

const LIMIT: Duration = Duration::from_secs(60);

/// Starts the program with its home on a small disk of its own, which nobody else sees and
/// which ends with it.
const ON_A_SMALL_DISK: &str = r#"#!/bin/sh
[ -n "$AUTOMATON_ON_DISK" ] || {
    [ "$(id -u)" = 0 ] || user=--map-root-user
    AUTOMATON_ON_DISK=1 exec unshare $user --mount "$0" "$@"
}
mkdir -p "$HOME/disk" && mount -t tmpfs -o size=48m tmpfs "$HOME/disk" || exit 1
AUTOMATON_HOME=$HOME/disk/home exec PROGRAM "$@"
"#;

/// A world whose automaton lives on a small disk.
fn on_a_small_disk(tools: &TempDir) -> World {
    let script = tools.path().join("on_a_small_disk");
    let text = ON_A_SMALL_DISK.replace("PROGRAM", env!("CARGO_BIN_EXE_automaton"));
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    World::new(script).unwrap()
}

/// Writes until nothing more can be written; the file with it.
fn fill(world: &World, run: &ProcessRun) -> PathBuf {
    let disk = world.dir().strip_prefix("/").unwrap().join("disk/filling");
    let filling = PathBuf::from(format!("/proc/{}/root", run.pid())).join(disk);
    let mut file = File::create(&filling).unwrap();
    while file.write(&[0; 512]).is_ok() {}
    filling
}

fn is_told(event: &Event) -> bool {
    matches!(event, Event::ErrorReported { error, .. } if error.contains("disk/home is full"))
}

#[test]
fn a_full_disk_is_told_once_and_waited_for_and_all_books_agree() {
    let (server, tools) = (Server::start(Mood::Miscounts), TempDir::new().unwrap());
    let world = on_a_small_disk(&tools).brain(&server.url);
    let mut run = world.up(&["--brain-model", "big-one", "--ask", "Count"]).unwrap();
    let committed = |event: &Event| matches!(event, Event::TurnCommitted { .. });
    run.wait_for(committed, LIMIT).unwrap();
    let filling = fill(&world, &run);
    run.wait_for(is_told, LIMIT).unwrap();
    fs::remove_file(filling).unwrap();
    run.wait_for(|event| matches!(event, Event::AgentStarted { .. }), LIMIT).unwrap();
    run.wait_for(committed, LIMIT).unwrap();
    run.signal("TERM").unwrap();
    let finished = run.finish_within(LIMIT).unwrap();
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.stdout, finished.stderr);
    check_books(&finished.events, "a full disk");
    let count = |wanted: &dyn Fn(&Event) -> bool| {
        finished.events.iter().filter(|stamped| wanted(&stamped.event)).count()
    };
    assert_eq!(count(&is_told), 1, "{}", finished.stdout);
    assert_eq!(count(&|event| matches!(event, Event::AgentRestarted { .. })), 0);
    assert_eq!(count(&|event| matches!(event, Event::AgentStarted { .. })), 2);
}

#[test]
fn a_bounded_run_ends_where_the_disk_is_full() {
    let (server, tools) = (Server::start(Mood::Miscounts), TempDir::new().unwrap());
    let world = on_a_small_disk(&tools).brain(&server.url).arg("--direct");
    let mut run =
        world.up(&["--brain-model", "big-one", "--turns", "9000", "--ask", "Count"]).unwrap();
    run.wait_for(|event| matches!(event, Event::TurnCommitted { .. }), LIMIT).unwrap();
    fill(&world, &run);
    let finished = run.finish_within(LIMIT).unwrap();
    assert_eq!(finished.code, Some(2), "{}\n{}", finished.stdout, finished.stderr);
    assert!(finished.stderr.contains("disk/home is full: "), "{}", finished.stderr);
}

/// Fills the disk by many files, at once and beside the turns.
const FILLING: &str = r#"
title = "a disk for everybody"
[[step]]
say = "I write and write."
[[step.call]]
tool = "exec"
arguments = { command = "n=0; while :; do n=$((n + 1)); head -c 1000000 /dev/zero > f$n || exit 3; sleep 0.05; done" }
[[step]]
expect.result.exec = "MB are left on the disk]"
say = "I do it beside my turns."
[[step.call]]
tool = "exec"
arguments = { command = "rm f*" }
[[step.call]]
tool = "start_process"
arguments = { command = "n=0; while :; do n=$((n + 1)); head -c 100000 /dev/zero > f$n || exit 3; sleep 0.02; done" }
[[step.call]]
tool = "read_process"
arguments = { process = 1, wait = 30000 }
[[step]]
expect.result.read_process = "MB are left on the disk]"
say = "Half of it is enough."
"#;

#[test]
fn a_command_takes_no_more_than_half_of_what_is_left() {
    let tools = TempDir::new().unwrap();
    let world = on_a_small_disk(&tools).story(FILLING).unwrap().arg("--direct");
    let finished = world.up(&["--ask", "Write."]).unwrap().finish_within(LIMIT).unwrap();
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.stdout, finished.stderr);
}

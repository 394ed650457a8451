//! A workspace that a command emptied comes back, through the real program.

use std::fs;
use std::path::Path;
use std::time::Duration;

use automaton_core::event::Event;
use serde_json::{Value, json};

use super::background::story;
use super::world;

const LIMIT: Duration = Duration::from_secs(120);

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

#[test]
fn what_a_command_deleted_is_restored_while_it_rests() {
    let exec = |command: &str| ("exec", json!({ "command": command }));
    let make = exec("mkdir -p site/css && echo '<p>' > site/index.html && echo a > notes.md && ls");
    let turns: &[&[(&str, Value)]] = &[
        &[make],
        &[exec("rm -rf site notes.md && rm -rf .")],
        &[exec("for f in site notes.md; do rm -rf $f; done; ls")],
    ];
    let world = world().story(&story(turns)).unwrap();
    let workspace = world.home().join("workspace");
    let none = world.command(&["workspace", "restore"]).unwrap();
    assert_eq!(none.code, Some(1), "nobody has lived here yet: {none:?}");
    let lived = world.up(&["--ask", "Go."]).unwrap().finish_within(LIMIT).unwrap();
    assert_eq!(lived.code, Some(0), "{lived:?}");
    assert!(!workspace.join("notes.md").exists() && !workspace.join("site").exists());
    let taken = |event: &Event| matches!(event, Event::SnapshotTaken(taken) if taken.complete);
    let told = lived.events.iter().filter(|it| taken(&it.event)).count();
    assert_eq!(told, 1, "the refused command takes none, and one does for a wake: {lived:?}");

    let list = || -> Vec<Value> {
        let told = world.command(&["workspace", "snapshots", "--json"]).unwrap().stdout;
        let told: Value = serde_json::from_str(&told).unwrap();
        told["snapshots"].as_array().unwrap().clone()
    };
    let snapshots = list();
    assert_eq!(snapshots.len(), 1, "{snapshots:?}");
    assert_eq!(snapshots[0]["cause"], "command");
    assert!(snapshots[0]["command"].as_str().unwrap().contains("rm -rf $f"), "{snapshots:?}");
    let shown = world.command(&["workspace", "snapshots"]).unwrap().stdout;
    assert!(shown.contains("before `for f in site notes.md"), "{shown}");
    let status = world.command(&["status"]).unwrap().stdout;
    assert!(status.contains("Snapshot") && status.contains("2 files"), "{status}");

    let asked = world.command(&["workspace", "restore"]).unwrap();
    assert_eq!(asked.code, Some(1), "{asked:?}");
    assert!(asked.stderr.contains("Missing, come back: 4 (notes.md, site,"), "{asked:?}");
    assert!(asked.stderr.contains("--yes"), "{asked:?}");
    assert_eq!(read(&workspace.join("notes.md")), None, "nothing was restored unasked");
    let part = world.command(&["workspace", "restore", "--path", "notes.md", "--yes"]).unwrap();
    assert_eq!(part.code, Some(0), "{part:?}");
    assert_eq!(read(&workspace.join("notes.md")).as_deref(), Some("a\n"));
    assert!(!workspace.join("site").exists());
    fs::write(workspace.join("notes.md"), "newer").unwrap();
    let done = world.command(&["workspace", "restore", "--yes"]).unwrap();
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stdout.contains("Changed since, get their old content: 1 (notes.md)"), "{done:?}");
    assert_eq!(read(&workspace.join("site/index.html")).as_deref(), Some("<p>\n"));
    assert_eq!(read(&workspace.join("notes.md")).as_deref(), Some("a\n"));
    let again = world.command(&["workspace", "restore", "--yes"]).unwrap();
    assert!(again.stdout.contains("Nothing to restore"), "{again:?}");

    let before = list().last().unwrap().clone();
    assert_eq!(before["cause"], "restore");
    let undone = before["id"].as_str().unwrap();
    let undo = world.command(&["workspace", "restore", undone, "--yes"]).unwrap();
    assert_eq!(undo.code, Some(0), "{undo:?}");
    assert_eq!(read(&workspace.join("notes.md")).as_deref(), Some("newer"));

    let beside = world.dir().join("beside");
    let folder = beside.display().to_string();
    let copied = world.command(&["workspace", "restore", "--to", &folder]).unwrap();
    assert_eq!(copied.code, Some(0), "{copied:?}");
    assert_eq!(read(&beside.join("notes.md")).as_deref(), Some("a\n"));
    let full = world.command(&["workspace", "restore", "--to", &folder]).unwrap();
    assert!(full.stderr.contains("is not empty"), "{full:?}");
    let inside = world.home().join("out").display().to_string();
    let refused = world.command(&["workspace", "restore", "--to", &inside]).unwrap();
    assert!(refused.stderr.contains("home"), "{refused:?}");
    let wrong = world.command(&["workspace", "restore", "--path", "none", "--yes"]).unwrap();
    assert!(wrong.stderr.contains("has no none"), "{wrong:?}");
}

#[test]
fn a_running_automaton_takes_snapshots_and_restores_for_its_creator() {
    let note = json!({ "path": "notes.md", "content": "one" });
    // The last step waits for what nobody says, so that it goes on to rest.
    let never = "[[step]]\nexpect.news = \"never said\"\nsay = \"Never.\"\n";
    let told = story(&[&[("write_file", note)]]) + never;
    let world = world().story(&told).unwrap();
    let mut run = world.up(&["--ask", "Go."]).unwrap();
    let rests = |event: &Event| matches!(event, Event::SleepStarted { .. });
    run.wait_for(rests, LIMIT).unwrap();
    let notes = world.home().join("workspace/notes.md");
    let taken = world.command(&["workspace", "snapshot", "--json"]).unwrap();
    assert_eq!(taken.code, Some(0), "{taken:?}");
    let taken: Value = serde_json::from_str(&taken.stdout).unwrap();
    assert_eq!((&taken["new"], &taken["snapshot"]["cause"]), (&json!(true), &json!("manual")));
    let again = world.command(&["workspace", "snapshot"]).unwrap().stdout;
    assert!(again.contains("Nothing has changed since"), "{again}");
    fs::write(&notes, "two").unwrap();
    let id = taken["snapshot"]["id"].as_str().unwrap();
    let done = world.command(&["workspace", "restore", id, "--yes", "--json"]).unwrap();
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(read(&notes).as_deref(), Some("one"));
    let is_told =
        |event: &Event| matches!(event, Event::WorkspaceRestored(done) if done.replaced == 1);
    run.wait_for(is_told, LIMIT).unwrap();
    world.command(&["stop"]).unwrap();
    run.finish_within(LIMIT).unwrap();
}

//! What is looked at before anything starts: all of it, at once, and nothing is made.

use std::fs;
use std::net::TcpListener;

use automaton_core::event::Event;
use automaton_testkit::world::World;
use serde_json::json;

use super::{paying_world, world};

/// Every file of a world, with what is in it, but those that any reader of the record
/// leaves beside it. The lock says who had it last.
fn files(world: &World) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![world.dir().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.ends_with("home/lock") {
                found.push((path.display().to_string(), Vec::new()));
            } else {
                found.push((path.display().to_string(), fs::read(&path).unwrap_or_default()));
            }
        }
    }
    found.retain(|(path, _)| !path.ends_with("-wal") && !path.ends_with("-shm"));
    found.sort();
    found
}

/// Checks that a start finds all of these, each with a hint, and leaves everything as it is.
fn finds(world: &World, arguments: &[&str], sentences: &[&str]) {
    let before = files(world);
    let finished = world.command(arguments).unwrap();
    let told = &finished.stderr;
    assert_eq!(finished.code, Some(1), "{told}");
    for sentence in sentences {
        assert!(told.contains(sentence), "'{sentence}' is not in:\n{told}");
    }
    let count = |word: &str| told.lines().filter(|line| line.starts_with(word)).count();
    assert_eq!((count("error: "), count("hint: ")), (sentences.len(), sentences.len()), "{told}");
    assert_eq!(finished.stdout, "", "nothing was started");
    let mut changed = files(world);
    changed.retain(|file| !before.contains(file));
    let changed: Vec<String> = changed.into_iter().map(|(path, _)| path).collect();
    assert_eq!(changed, [""; 0], "files that were made or changed");
}

#[test]
fn a_home_with_many_things_wrong_is_told_of_all_of_them_and_left_alone() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = taken.local_addr().unwrap().to_string();
    let config = json!({
        "name": "a", "genesisPrompt": "b", "metricsAddr": place,
        "brain": { "kind": "local", "model": "/no/model.gguf", "helper": "/no/helper" },
    });
    let world = world();
    world.write_home("automaton.json", &config.to_string()).unwrap();
    let schedule = "entries:\n- name: heartbeat_ping\n  schedule: \"*/5 * * *\"\n";
    world.write_home("heartbeat.yml", schedule).unwrap();
    let place = format!("cannot serve at {place}");
    let wrong = ["line 2: the entry", "/no/helper", "/no/model.gguf", &place];
    finds(&world, &["run", "--direct"], &wrong);
    finds(&world, &["up", "--direct"], &wrong);
    world.write_home("automaton.json", "{\"logLevel\": \"loud\"}").unwrap();
    finds(&world, &["run"], &["key `logLevel`", "line 2: the entry"]);
    world.write_home("automaton.json", "{\"dbPath\": \"/elsewhere\"}").unwrap();
    let all =
        ["`dbPath`", "no model to think with", "`name`", "`genesisPrompt`", "line 2: the entry"];
    finds(&world, &["run"], &all);
    let hosted = "{\"name\": \"a\", \"genesisPrompt\": \"b\", \"brain\": {\"kind\": \"http\", \
                  \"url\": \"https://api.openai.com/v1\"}}";
    world.write_home("automaton.json", hosted).unwrap();
    finds(&world, &["run"], &["not served without a key", "line 2: the entry"]);
}

#[test]
fn a_life_with_another_constitution_and_a_lost_passphrase_is_not_gone_on_with() {
    let world = paying_world();
    let first = world.up(&["--brain", "script", "--turns", "1"]).unwrap().finish().unwrap();
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    assert!(first.events.iter().any(|told| matches!(told.event, Event::WalletCreated { .. })));
    let law = world.home().join("constitution.md");
    fs::remove_file(&law).unwrap();
    fs::write(&law, "Do as you like.").unwrap();
    fs::remove_file(world.dir().join("home-signer/passphrase")).unwrap();
    let wrong = ["is not the constitution", "was made with a passphrase of its own"];
    finds(&world, &["up", "--brain", "script"], &wrong);
}

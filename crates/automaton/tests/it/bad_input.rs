//! What goes wrong, and what a person is told: one sentence, the remedy, the
//! code, and nothing lost.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use automaton_core::event::Event;
use automaton_core::record::CallStatus;
use automaton_testkit::world::{ProcessOutput, World};

use super::{told, world};

const CONFIG: &str = r#"{"name": "a", "genesisPrompt": "b", "conwayApiKey": "k"}"#;

/// Checks what a command says in a world, and that it left the files alone.
fn check(name: &str, world: &World, arguments: &[&str]) {
    let files = || {
        let read = |name| fs::read(world.home().join(name)).ok();
        ["automaton.json", "constitution.md", "state.db"].map(read)
    };
    let before = files();
    let finished = world.command(arguments).unwrap();
    assert!(before == files(), "{name}: a file was changed");
    assert_ne!(finished.code, Some(0), "{name}");
    insta::assert_snapshot!(name, told(world, &finished));
}

fn with_config(text: &str) -> World {
    let world = world();
    world.write_home("automaton.json", text).unwrap();
    world
}

#[test]
fn a_configuration_that_cannot_be_read() {
    check("config_not_json", &with_config("{\n  \"name\": \"a\",\n}"), &["run"]);
    check("config_truncated", &with_config("{\"name\": \"a"), &["up", "--brain", "script"]);
    check("config_empty", &with_config(""), &["init"]);
    check("config_type", &with_config("{\"name\": 7}"), &["status"]);
    check("config_range", &with_config("{\"maxTurnsPerCycle\": 0}"), &["run"]);
    check(
        "config_nested",
        &with_config("{\"soulConfig\": {\"soulAlignmentThreshold\": 2}}"),
        &["run"],
    );
    check("config_newer", &with_config("{\"configVersion\": 2}"), &["run"]);
    check("config_no_name", &with_config("{\"conwayApiKey\": \"k\"}"), &["run"]);
    check("config_no_brain", &with_config("{\"name\": \"a\", \"genesisPrompt\": \"b\"}"), &["run"]);
    let other = CONFIG.replace('}', ", \"dbPath\": \"/elsewhere/state.db\"}");
    check("config_db_path", &with_config(&other), &["run"]);
    let bad_url = CONFIG.replace('}', ", \"conwayApiUrl\": \"http://[\"}");
    check("config_url", &with_config(&bad_url), &["run"]);
}

#[test]
fn a_key_that_means_nothing_is_named() {
    let world = with_config(r#"{"name": "a", "genesisPrompt": "b", "maxTurnPerCycle": 3}"#);
    let finished = world.up(&["--brain", "script", "--turns", "1"]).unwrap().finish().unwrap();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert!(
        finished
            .stderr
            .contains("unknown key \"maxTurnPerCycle\". Did you mean \"maxTurnsPerCycle\"?"),
        "{}",
        finished.stderr
    );
    assert!(!world.state_db().exists(), "nothing is made");
}

#[test]
fn no_automaton() {
    for (name, arguments) in [
        ("none_run", &["run"][..]),
        ("none_send", &["send", "hi"]),
        ("none_stop", &["stop"]),
        ("none_turns", &["turns"]),
        ("none_prompt", &["prompt"]),
    ] {
        check(name, &world(), arguments);
    }
    check("unborn_send", &with_config(CONFIG), &["send", "hi"]);
    check("unborn_turns", &with_config(CONFIG), &["turns"]);
}

#[test]
fn a_life_without_its_configuration_is_not_replaced() {
    let world = world();
    assert_eq!(world.command(&["init"]).unwrap().code, Some(0));
    fs::remove_file(world.home().join("automaton.json")).unwrap();
    check("config_lost", &world, &["up", "--brain", "script"]);
}

#[test]
fn a_database_that_cannot_be_used() {
    let world = with_config(CONFIG);
    assert_eq!(world.command(&["init"]).unwrap().code, Some(0));
    let database = world.state_db();
    let good = fs::read(&database).unwrap();
    let mut newer = good.clone();
    // The user version is a big-endian number at offset 60 of the header.
    newer[60..64].copy_from_slice(&999_u32.to_be_bytes());
    fs::write(&database, newer).unwrap();
    check("database_newer", &world, &["run"]);
    let mut old = good.clone();
    // One from before the first release has no application id, which is at offset 68.
    old[60..64].copy_from_slice(&22_u32.to_be_bytes());
    old[68..72].fill(0);
    fs::write(&database, &old).unwrap();
    check("database_old", &world, &["run"]);
    check("database_old_status", &world, &["status"]);
    assert_eq!(fs::read(&database).unwrap(), old, "it was touched");
    fs::write(&database, b"this is no database, however long it may be").unwrap();
    check("database_foreign", &world, &["run"]);
    let mut corrupt = good;
    let half = corrupt.len() / 2;
    corrupt[4096..half].fill(0xa5);
    fs::write(&database, corrupt).unwrap();
    let finished = world.command(&["run"]).unwrap();
    assert_eq!(finished.code, Some(2), "{}", finished.stderr);
    assert!(finished.stderr.contains("hint: "), "{}", finished.stderr);
}

#[test]
fn a_constitution_that_was_changed() {
    let world = with_config(CONFIG);
    assert_eq!(world.command(&["init"]).unwrap().code, Some(0));
    let path = world.home().join("constitution.md");
    fs::remove_file(&path).unwrap();
    fs::write(&path, "Earn at any price.").unwrap();
    check("constitution_changed", &world, &["run"]);
    fs::remove_file(&path).unwrap();
    check("constitution_gone", &world, &["run"]);
}

#[test]
fn a_second_instance_names_the_first() {
    let story = "title = \"t\"\n[[step]]\nsay = \"x\"\n[[step]]\ncreator = \"y\"\nafter = \"asleep\"\n\
                 [[step]]\nsay = \"z\"\n[[step.call]]\ntool = \"exec\"\n\
                 arguments = { command = \"sleep 50\", timeout = 60000 }\n[[step]]\nsay = \"end\"\n";
    let world = world().story(story).unwrap();
    let mut first = world.up(&[]).unwrap();
    let started = |event: &Event| matches!(event, Event::AgentStarted { .. });
    first.wait_for(started, Duration::from_secs(30)).unwrap();
    let second = world.up(&[]).unwrap().finish().unwrap();
    assert_eq!(second.code, Some(1));
    let sentence = format!("already runs: process {}", first.pid());
    assert!(second.stderr.contains(&sentence), "{}", second.stderr);
    first.kill().unwrap();
}

#[test]
fn files_of_the_local_model_that_are_not_there() {
    let model = ["up", "--model", "no.gguf", "--helper", "/bin/true"];
    check("model_missing", &world(), &model);
    check("helper_missing", &world(), &["up", "--model", "/etc/passwd", "--helper", "nope"]);
    check("model_alone", &world(), &["up", "--model", "/etc/passwd"]);
    check("no_brain_at_all", &world(), &["up"]);
}

#[test]
fn a_helper_that_dies_and_a_model_that_is_another() {
    let world = world();
    let finished =
        world.up(&["--turns", "1", "--model", "/etc/passwd", "--helper", "/bin/true"]).unwrap();
    let finished = finished.finish().unwrap();
    assert_eq!(finished.code, Some(1), "{}\n{}", finished.stdout, finished.stderr);
    assert!(finished.stderr.contains("error: the local model failed"), "{}", finished.stderr);
    let hash = "0".repeat(64);
    let brain = format!(
        r#"{{"name": "Automaton", "genesisPrompt": "b", "brain": {{"kind": "local",
        "model": "/etc/passwd", "sha256": "{hash}", "helper": "/bin/true"}}}}"#
    );
    world.write_home("automaton.json", &brain).unwrap();
    let finished = world.command(&["run", "--turns", "1"]).unwrap();
    assert_ne!(finished.code, Some(0));
    assert!(finished.stderr.contains(&hash), "{}", finished.stderr);
}

#[test]
fn a_model_server_that_is_not_there() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let world = world().brain(&url);
    let run = world.up(&["--turns", "1"]).unwrap();
    let finished = run.finish_within(Duration::from_secs(90)).unwrap();
    assert_eq!(finished.code, Some(2), "{}\n{}", finished.stdout, finished.stderr);
    assert!(
        finished.stderr.contains(&url) && finished.stderr.contains("hint: "),
        "{}",
        finished.stderr
    );
}

#[test]
fn a_model_server_that_talks_garbage() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut question = [0; 65536];
            let _read = stream.read(&mut question).unwrap();
            let garbage = "<html>Welcome to my router</html>";
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close";
            let length = garbage.len();
            write!(stream, "{head}\r\ncontent-length: {length}\r\n\r\n{garbage}").unwrap();
        }
    });
    let world = world().brain(&url);
    let run = world.up(&["--turns", "1", "--ask", "Are you there?"]).unwrap();
    let finished = run.finish_within(Duration::from_secs(90)).unwrap();
    assert_eq!(finished.code, Some(1), "{}\n{}", finished.stdout, finished.stderr);
    assert!(finished.stderr.contains("answers with a web page"), "{}", finished.stderr);
    assert!(!finished.stderr.contains("router"), "its page is not quoted: {}", finished.stderr);
    assert!(!world.state_db().exists(), "nothing is made");
}

#[test]
fn a_story_that_is_none_or_cannot_be_met() {
    let story = |text: &str| {
        let world = world();
        fs::write(world.dir().join("s.toml"), text).unwrap();
        world
    };
    let up = ["up", "--brain", "script:s.toml"];
    check("story_broken", &story("title = \"t\"\n[[step]\n"), &up);
    check("story_missing", &world(), &up);
    let unmet = "title = \"t\"\n[[step]]\nsay = \"a\"\n[[step.call]]\ntool = \"exec\"\n\
                 arguments = { command = \"echo 4\" }\n\
                 [[step]]\nwhat = \"sees five\"\nexpect.result.exec = \"five and a half\"\nsay = \"five\"\n";
    let world = world().story(unmet).unwrap();
    let finished = world.up(&[]).unwrap().finish().unwrap();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert!(
        finished.stderr.contains("error: the story was not told: step 2 (sees five)"),
        "{}",
        finished.stderr
    );
    let unmet = finished.events.iter().any(|stamped| {
        matches!(&stamped.event, Event::StoryEnded { unmet: Some(step) } if step.contains("sees five"))
    });
    assert!(unmet);
}

/// Runs a script in namespaces of its own, with the program as `$1` and the
/// world's directory as `$2`. An ordinary user's script names the source when it mounts
/// anew: else `mount` repeats the owner that the system tells, who is unknown inside.
pub(super) fn unshared(world: &World, options: &[&str], script: &str) -> ProcessOutput {
    let path = world.dir().join("script.sh");
    fs::write(&path, script).unwrap();
    let unshare = World::new("/usr/bin/unshare").unwrap();
    let program = env!("CARGO_BIN_EXE_automaton");
    let (path, dir) = (path.to_str().unwrap(), world.dir().to_str().unwrap());
    let script = ["sh", "-e", path, program, dir];
    unshare.command(&[&["--map-root-user"], options, &script[..]].concat()).unwrap()
}

#[test]
fn a_full_disk_loses_nothing() {
    let script = r#"
        mkdir "$2/small"
        mount -t tmpfs -o size=190k,mode=700 tmpfs "$2/small"
        "$1" up --direct --brain script --home "$2/small/home" >/dev/null || echo "first: $?"
        mount -o remount,size=50m tmpfs "$2/small"
        printf 'title = "r"\n[[step]]\nsay = "I am still here."\n' > "$2/rest.toml"
        "$1" up --direct --brain "script:$2/rest.toml" --home "$2/small/home" >/dev/null
        "$1" status --home "$2/small/home" --json
    "#;
    let finished = unshared(&world(), &["--mount"], script);
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.stdout, finished.stderr);
    let (first, status) = finished.stdout.split_once('\n').unwrap();
    assert_eq!(first, "first: 2");
    assert!(finished.stderr.contains("small/home is full: "), "{}", finished.stderr);
    assert!(finished.stderr.contains("hint: Free some disk space"), "{}", finished.stderr);
    let status: serde_json::Value = serde_json::from_str(status).unwrap();
    assert_eq!(status["record"]["chain_whole"], true);
}

#[test]
fn a_machine_without_user_namespaces_runs_no_command_and_says_why() {
    let script = r#"
        echo 0 > /proc/sys/user/max_user_namespaces
        "$1" up --brain script --turns 2 --home "$2/lonely" --json
        "$1" status --home "$2/lonely" >&2
    "#;
    let finished = unshared(&world(), &["--mount"], script);
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.stdout, finished.stderr);
    let told = finished.events.iter().any(|stamped| match &stamped.event {
        Event::ErrorReported { error, hint, .. } => {
            error.starts_with("no command can run here: the sandbox needs") && hint.is_some()
        }
        _ => false,
    });
    assert!(told, "{}", finished.stdout);
    let refused = finished.events.iter().any(|stamped| match &stamped.event {
        Event::CallFinished { tool, status: CallStatus::Failed, .. } => tool == "exec",
        _ => false,
    });
    assert!(refused, "{}", finished.stdout);
    assert!(finished.stderr.contains("no command can run here"), "{}", finished.stderr);
}

#[test]
fn a_fault_is_rehearsed_on_a_home_for_rehearsal_alone() {
    let world = world();
    fs::remove_file(world.home().join(".rehearsal")).unwrap();
    let arguments = ["up", "--brain", "script", "--fault", "call-ran"];
    let finished = world.command(&arguments).unwrap();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("was not made for rehearsal"), "{}", finished.stderr);
}

//! Where an automaton may live, how it is reached there, and what waits there
//! for it at birth.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use automaton_core::event::Event;
use automaton_testkit::world::{ProcessOutput, World};

use super::world;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// A directory beside the home with one file in it, open to everybody.
fn directory(world: &World, file: &str, bits: u32) -> String {
    let path = world.dir().join("other");
    fs::create_dir(&path).unwrap();
    fs::write(path.join(file), "mine").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(bits)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Checks that every command that makes or runs an automaton refuses a
/// directory with a sentence, and leaves it as it was.
fn check_untouched(world: &World, home: &str, makes: &str) {
    let before = (mode(home.as_ref()), fs::read_dir(home).unwrap().count());
    let up = &["up", "--brain", "script"];
    let none = "no automaton lives in";
    for (arguments, sentence) in [(&["run"][..], none), (up, makes), (&["init"], makes)] {
        let finished = world.command(&[arguments, &["--home", home]].concat()).unwrap();
        assert!(finished.stderr.contains(sentence), "{arguments:?}: {}", finished.stderr);
        assert!(finished.stderr.contains("hint: "), "{arguments:?}: {}", finished.stderr);
        assert_eq!(finished.code, Some(1), "{arguments:?}");
        let after = (mode(home.as_ref()), fs::read_dir(home).unwrap().count());
        assert_eq!(before, after, "{arguments:?}");
    }
}

#[test]
fn a_directory_of_something_else_is_left_as_it_is() {
    let world = world();
    let home = directory(&world, "thesis.txt", 0o755);
    let makes = "other is not empty and no automaton lives there";
    check_untouched(&world, &home, makes);
}

#[test]
fn a_directory_that_many_share_is_left_as_it_is() {
    let world = world();
    let home = directory(&world, ".rehearsal", 0o1777);
    check_untouched(&world, &home, "it is shared");
}

#[test]
fn a_directory_of_another_user_is_left_as_it_is() {
    let world = world();
    let home = directory(&world, ".rehearsal", 0o755);
    // Only root can give a directory away; for all others the system refuses.
    if chown(&home, Some(12_345), None).is_ok() {
        check_untouched(&world, &home, "another user owns it");
    }
}

#[test]
fn a_home_is_made_of_what_an_earlier_attempt_left() {
    let world = world();
    let home = directory(&world, "lock", 0o755);
    fs::write(Path::new(&home).join("automaton.json.new"), "{").unwrap();
    for _ in 0..2 {
        let finished = world.command(&["init", "--home", &home]).unwrap();
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        assert_eq!(mode(home.as_ref()), 0o700);
    }
}

fn check_too_long(finished: &ProcessOutput, bytes: usize) {
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    let sentence = format!("too long for its control socket ({bytes} of 107 bytes)");
    assert!(finished.stderr.contains(&sentence), "{}", finished.stderr);
    assert!(finished.stderr.contains("hint: "), "{}", finished.stderr);
}

#[test]
fn a_home_whose_socket_has_no_address_is_refused() {
    let world = world();
    let around = world.dir().to_str().unwrap().len() + "//control.sock".len();
    let home = |bytes: usize| world.dir().join("x".repeat(bytes - around));
    let long = home(108);
    for arguments in [&["init"][..], &["run"], &["up", "--brain", "script"], &["send", "hi"]] {
        let arguments = [arguments, &["--home", long.to_str().unwrap()]].concat();
        check_too_long(&world.command(&arguments).unwrap(), 108);
    }
    assert!(!long.exists());
    let fits = home(107);
    let finished = world.command(&["init", "--home", fits.to_str().unwrap()]).unwrap();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
}

#[test]
fn a_scratch_home_whose_socket_has_no_address_is_refused() {
    let world = world();
    let temporary = world.dir().join("t".repeat(100));
    let script = "TMPDIR=\"$1\" exec \"$0\" up --brain script --scratch";
    let shell = World::new("/bin/sh").unwrap();
    let program = env!("CARGO_BIN_EXE_automaton");
    let finished = shell.command(&["-c", script, program, temporary.to_str().unwrap()]).unwrap();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("too long for its control socket"), "{}", finished.stderr);
    assert!(finished.stderr.contains("set TMPDIR"), "{}", finished.stderr);
    assert!(!temporary.exists());
}

#[test]
fn a_lost_answer_is_asked_for_again_and_a_wrong_one_is_not() {
    let world = world();
    assert_eq!(world.command(&["init"]).unwrap().code, Some(0));
    let listener = UnixListener::bind(world.home().join("control.sock")).unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut line = String::new();
            BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
            // The first is left without an answer.
            if counter.fetch_add(1, Ordering::SeqCst) > 0 {
                stream.write_all(b"garbage\n").unwrap();
            }
        }
    });
    let finished = world.command(&["send", "hi"]).unwrap();
    assert!(finished.stderr.contains("the automaton did not answer"), "{}", finished.stderr);
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[test]
fn the_creators_message_of_the_configuration_comes_once_in_a_life() {
    let config = r#"{"name": "a", "genesisPrompt": "b", "creatorMessage": "Hello, child."}"#;
    let story = "title = \"t\"\n[[step]]\nexpect.news = \"Hello, child.\"\nsay = \"Hello.\"\n";
    let world = world().story(story).unwrap();
    world.write_home("automaton.json", config).unwrap();
    let heard = |finished: &ProcessOutput| {
        assert_eq!(finished.code, Some(0), "{}\n{}", finished.stdout, finished.stderr);
        let of_creator = |event: &Event| match event {
            Event::MessageReceived { body, .. } => body.text == "Hello, child.",
            _ => false,
        };
        finished.events.iter().filter(|stamped| of_creator(&stamped.event)).count()
    };
    assert_eq!(heard(&world.up(&[]).unwrap().finish().unwrap()), 1);
    let more = "title = \"more\"\n[[step]]\nexpect.news = \"And now?\"\nsay = \"I am here.\"\n";
    fs::write(world.dir().join("story.toml"), more).unwrap();
    assert_eq!(heard(&world.up(&["--ask", "And now?"]).unwrap().finish().unwrap()), 0);
    let status = world.command(&["status", "--json"]).unwrap();
    let status: serde_json::Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["inbox"]["processed"], 2);
}

#[test]
fn a_lost_record_begins_no_second_life() {
    let world = world();
    let lived = world.up(&["--brain", "script", "--turns", "1"]).unwrap().finish().unwrap();
    assert_eq!(lived.code, Some(0), "{}", lived.stderr);
    for name in ["state.db", "state.db-wal", "state.db-shm"] {
        // Not each of them need be there.
        fs::remove_file(world.home().join(name)).unwrap_or_default();
    }
    for arguments in [&["up", "--brain", "script"][..], &["send", "Hello?"], &["init"], &["status"]]
    {
        let refused = world.command(arguments).unwrap();
        assert_eq!(refused.code, Some(1), "{arguments:?}: {}", refused.stderr);
        assert!(refused.stderr.contains("its record state.db is gone"), "{}", refused.stderr);
        assert!(refused.stderr.contains("from a backup"), "{}", refused.stderr);
    }
    assert!(!world.state_db().exists());
}

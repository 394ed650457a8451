//! The transcripts of the documentation that need nothing but the program are what it says.
//! Those of a first life and of drills are compared where these are tested.

use std::process::{Command, Stdio};

use automaton_testkit::transcript::{ShownCommand, commands_below, words};

use super::world;

const JUDGEMENT: &str = include_str!("../../../../docs/judgement.md");

/// Runs the commands of the first transcript below each heading, as a person's shell does.
#[expect(clippy::disallowed_methods, reason = "a transcript is of a shell")]
fn check(document: &str, headings: &[&str]) {
    for heading in headings {
        let shown = commands_below(document, heading);
        assert!(!shown.is_empty(), "{heading} has no transcript");
        for ShownCommand { command, told } in shown {
            let world = world();
            let script = format!("automaton() {{ \"$AUTOMATON\" \"$@\"; }}\n{command}");
            let ran = Command::new("bash")
                .args(["-c", &script])
                .env("AUTOMATON", env!("CARGO_BIN_EXE_automaton"))
                .env("AUTOMATON_HOME", world.home())
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&ran.stdout);
            let stderr = String::from_utf8_lossy(&ran.stderr);
            assert_eq!(words(&said), words(&told), "{heading}: {command}\n{said}\n{stderr}");
        }
    }
}

#[test]
fn what_is_judged_and_scanned_is_as_the_documentation_shows_it() {
    check(JUDGEMENT, &["## Set your own rules", "## The guard"]);
}

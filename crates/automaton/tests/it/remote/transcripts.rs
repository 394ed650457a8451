//! The transcripts of the documentation are what the program says.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use automaton_testkit::transcript::{ShownCommand, commands_below, words};

use super::elsewhere::{Elsewhere, LIMIT};
use crate::paying_world;

const CLOUDS: &str = include_str!("../../../../../docs/clouds.md");
/// What is thought in them.
const STORY: &str = r#"
title = "a first start"
[[step]]
say = "I am here, and I can pay for what I think with."
"#;

/// The words of a command line, of which some are quoted.
fn arguments(line: &str) -> Vec<String> {
    let parts = line.split('"').enumerate();
    let words = parts.flat_map(|(place, part)| match place % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}

#[test]
fn from_nothing_to_a_life_is_as_the_documentation_shows_it() {
    let town = Elsewhere::with(STORY, 31337, "dev", 20);
    let world = paying_world();
    let pass = world.dir().join("pass");
    fs::write(&pass, "correct horse\n").unwrap();
    fs::set_permissions(&pass, PermissionsExt::from_mode(0o600)).unwrap();
    let shown = commands_below(CLOUDS, "## From nothing to a life");
    assert_eq!(shown.len(), 7, "{shown:?}");
    for ShownCommand { command, told } in shown {
        let here = command
            .trim_start_matches("automaton ")
            .replace("http://127.0.0.1:8790", &town.cloud)
            .replace("http://127.0.0.1:8545", town.config["rpcUrl"].as_str().unwrap());
        let mut arguments = arguments(&here);
        if arguments[0] == "run" && !arguments.contains(&"--dry-run".to_owned()) {
            arguments.extend(["--turns", "1"].map(str::to_owned));
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let finished = world.start(&arguments).unwrap().finish_within(LIMIT).unwrap();
        assert_eq!(finished.code, Some(0), "{command}: {}", finished.stderr);
        // There everything is in the folder of a person.
        let said = finished.stdout.replace("~/home", "~/.automaton");
        let said = said.replace(&world.home().display().to_string(), "~/.automaton");
        let (said, told) = (words(&said), words(&told));
        let stderr = &finished.stderr;
        assert!(said.contains(&told), "{command}\n--- shown: {told}\n--- said: {said}\n{stderr}");
    }
}

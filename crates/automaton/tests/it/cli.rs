//! The words of the command line.

use super::{told, world};

fn check(name: &str, arguments: &[&str]) {
    let world = world();
    let finished = world.command(arguments).unwrap();
    insta::assert_snapshot!(name, told(&world, &finished));
}

#[test]
fn help() {
    check("help", &["--help"]);
    check("help_up", &["up", "--help"]);
    check("help_run", &["run", "--help"]);
    check("help_devnet", &["devnet", "--help"]);
    check("help_init", &["init", "--help"]);
    check("help_logs", &["logs", "--help"]);
    check("help_turn", &["turn", "--help"]);
    check("help_wake", &["wake", "--help"]);
    check("help_send", &["send", "--help"]);
    check("help_chat", &["chat", "--help"]);
    check("help_messages", &["messages", "--help"]);
}

#[test]
fn no_command_and_a_wrong_one() {
    check("nothing", &[]);
    check("unknown_command", &["fly"]);
    check("unknown_flag", &["up", "--fly"]);
    check("no_turns", &["up", "--turns", "0"]);
    check("no_brain", &["up", "--brain", "ftp://x"]);
    check("blank_name", &["up", "--name", " "]);
    check("scratch_and_home", &["up", "--scratch", "--home", "/x"]);
}

#[test]
fn flags_of_the_reference() {
    check("provision", &["--provision"]);
    check("configure", &["--configure"]);
    check("pick_model", &["--pick-model"]);
    check("status_flag", &["--status"]);
    check("run_flag", &["--run"]);
}

#[test]
fn version() {
    let finished = world().command(&["-v"]).unwrap();
    assert_eq!(finished.code, Some(0));
    assert_eq!(finished.stdout, format!("automaton {}", env!("CARGO_PKG_VERSION")));
}

#[test]
fn init_makes_a_home_once_and_says_the_same_afterwards() {
    let world = world();
    let first = world.command(&["--init"]).unwrap();
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let made: serde_json::Value = serde_json::from_str(&first.stdout).unwrap();
    assert_eq!((&made["created"], &made["name"]), (&true.into(), &"Automaton".into()));
    let second = world.command(&["--setup", "--json"]).unwrap();
    let found: serde_json::Value = serde_json::from_str(&second.stdout).unwrap();
    assert_eq!((&found["created"], &found["automaton"]), (&false.into(), &made["automaton"]));
    let mode = |name: &str| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::metadata(world.home().join(name)).unwrap().permissions().mode() & 0o7777
    };
    assert_eq!(mode(""), 0o700);
    assert_eq!(mode("workspace"), 0o700);
    assert_eq!(mode("automaton.json"), 0o600);
    assert_eq!(mode("state.db"), 0o600);
    assert_eq!(mode("constitution.md"), 0o444);
    let law = world.command(&["constitution"]).unwrap();
    let pinned = std::fs::read_to_string(world.home().join("constitution.md")).unwrap();
    assert_eq!(format!("{}\n", law.stdout), pinned);
}

#[test]
fn the_policy_shows_and_explains_itself_without_a_home() {
    let world = world();
    let shown = world.command(&["policy", "show", "--json"]).unwrap();
    let shown: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
    let row = |list: &str, key: &str, name: &str| {
        let rows = shown[list].as_array().unwrap();
        rows.iter().find(|row| row[key] == name).unwrap_or_else(|| panic!("{name}")).clone()
    };
    assert_eq!(row("tools", "name", "transfer_credits")["risk"], "dangerous");
    assert_eq!(row("tools", "name", "exec")["category"], "vm");
    assert!(row("authority", "kind", "look")["alone"].as_array().unwrap().len() == 5);
    assert_eq!(row("limits", "rule", "rate.commands")["window_ms"], 3_600_000);
    let rules = shown["rules"].as_array().unwrap();
    for rule in rules {
        let id = rule["id"].as_str().unwrap();
        let told = world.command(&["policy", "explain", id, "--json"]).unwrap();
        let told: serde_json::Value = serde_json::from_str(&told.stdout).unwrap();
        assert_eq!(&told, rule);
    }
    assert!(rules.len() > 25, "{rules:?}");
    let page = world.command(&["policy", "show"]).unwrap().stdout;
    for part in ["exec                 vm         caution", "  transfer", "command.kill"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let unknown = world.command(&["policy", "explain", "no.rule"]).unwrap();
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.stderr.contains("automaton policy show"), "{}", unknown.stderr);
}

#[test]
fn completions_and_schema_are_printed() {
    let world = world();
    for shell in ["bash", "zsh", "fish"] {
        let finished = world.command(&["completions", shell]).unwrap();
        assert!(finished.stdout.contains("constitution"), "{shell}");
    }
    let schema = world.command(&["schema"]).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&schema.stdout).unwrap();
    assert_eq!(schema["title"], "automaton.json");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let world = world();
    let program = env!("CARGO_BIN_EXE_automaton");
    let script = format!("{program} schema | head -n 1; test ${{PIPESTATUS[0]}} = 0 && echo well");
    std::fs::write(world.dir().join("pipe.sh"), script).unwrap();
    let shell = automaton_testkit::world::World::new("/bin/bash").unwrap();
    let path = world.dir().join("pipe.sh");
    let finished = shell.command(&[path.to_str().unwrap()]).unwrap();
    assert!(finished.stdout.ends_with("well"), "{}\n{}", finished.stdout, finished.stderr);
}

#[test]
fn without_the_laboratory_it_is_told_what_is_missing() {
    // Alone in a folder, which has to be on the same disk.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let alone = folder.path().join("automaton");
    std::fs::hard_link(env!("CARGO_BIN_EXE_automaton"), &alone).unwrap();
    let world = automaton_testkit::world::World::new(alone).unwrap();
    for arguments in [&["drill", "money"][..], &["bench", "--help"], &["bench", "--fly"]] {
        let finished = world.command(arguments).unwrap();
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""), "{finished:?}");
        let missing = "automaton-lab, which holds drills and benches, is not in";
        assert!(finished.stderr.contains(missing), "{finished:?}");
        assert!(finished.stderr.contains("--package automaton-lab`"), "{finished:?}");
    }
    let finished = world.command(&["drill", "money", "--seed", "7", "--json"]).unwrap();
    let told: serde_json::Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!((finished.code, &told["error"]["code"]), (Some(1), &"user".into()), "{told}");
    assert!(told["error"]["hint"].as_str().unwrap().contains("automaton-lab"), "{told}");
}

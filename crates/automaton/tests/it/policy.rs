//! The operator's rules, as the one who writes them meets them.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use automaton_core::event::Event;
use automaton_testkit::world::{ProcessOutput, World};
use serde_json::{Value, json};

use super::world;

/// A life that makes two calls.
const STORY: &str = "title = \"rules\"\n\
    [[step]]\nsay = \"I write.\"\n[[step.call]]\ntool = \"write_file\"\n\
    arguments = { path = \"notes/a.txt\", content = \"x\" }\n\
    [[step.call]]\ntool = \"write_file\"\narguments = { path = \"b.txt\", content = \"x\" }\n\
    [[step]]\nsay = \"Done.\"\n";

fn done(finished: &ProcessOutput) -> Value {
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    serde_json::from_str(&finished.stdout).unwrap()
}

/// A home in which somebody lives, with these rules.
fn home_with(rules: &str) -> World {
    let world = world().story(STORY).unwrap();
    assert_eq!(world.command(&["init"]).unwrap().code, Some(0));
    world.write_home("policy.cedar", rules).unwrap();
    close(&world.home().join("policy.cedar"), 0o600);
    world
}

fn close(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Judges a call that is given on stdin.
#[expect(clippy::disallowed_methods, reason = "tests start the program as a person would")]
fn judge(world: &World, call: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_automaton"))
        .args(["policy", "judge", "--json"])
        .env_clear()
        .env("AUTOMATON_HOME", world.home())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(call.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn a_file_with_mistakes_stops_the_start_and_each_is_told_with_its_place() {
    let world = home_with(
        "forbid (principal, action == Action::\"exec\", resource)\n\
         when { resource.path == \"a\" };\n\
         @aks(\"?\") forbid (principal, action, resource);\n",
    );
    let told = world.up(&[]).unwrap().finish().unwrap();
    assert_eq!(told.code, Some(1), "{}", told.stderr);
    for place in ["policy.cedar:2:8: ", "policy.cedar:3:1: @aks means nothing here"] {
        assert!(told.stderr.contains(place), "{place}: {}", told.stderr);
    }
    assert!(told.stderr.contains("hint: correct the file"), "{}", told.stderr);
    assert!(!told.events.iter().any(|one| matches!(one.event, Event::AgentStarted { .. })));
    let checked = world.command(&["policy", "check"]).unwrap();
    assert_eq!(checked.code, Some(1), "{}", checked.stderr);

    world.write_home("policy.cedar", "permit (principal, action, resource);").unwrap();
    close(&world.home().join("policy.cedar"), 0o666);
    let told = world.up(&[]).unwrap().finish().unwrap();
    assert_eq!(told.code, Some(1));
    assert!(told.stderr.contains("can be written by others"), "{}", told.stderr);
    close(&world.home().join("policy.cedar"), 0o600);
    let checked = done(&world.command(&["policy", "check", "--json"]).unwrap());
    assert_eq!((&checked["rules"], checked["notes"].as_array().unwrap().len()), (&0.into(), 1));
}

#[test]
fn a_rule_refuses_in_a_life_and_is_in_its_record() {
    let rules = "@id(\"notes\") @reason(\"they are mine\")\n\
        forbid (principal, action == Action::\"write_path\", resource)\n\
        when { resource.path like \"notes/*\" };";
    let world = home_with(rules);
    let lived = world.up(&["--turns", "1"]).unwrap().finish().unwrap();
    assert_eq!(lived.code, Some(0), "{}", lived.stderr);
    assert!(!world.home().join("workspace/notes").exists());
    assert!(world.home().join("workspace/b.txt").exists());
    let turn = done(&world.command(&["turn", "1", "--json"]).unwrap());
    let decision = &turn["decisions"][0];
    assert_eq!(decision["code"], "OPERATOR_RULE", "{decision}");
    assert_eq!(decision["rules_triggered"], json!(["operator.notes"]));
    assert!(decision["reason"].as_str().unwrap().contains("they are mine"), "{decision}");
    assert_eq!((&decision["input"], &decision["authority"]), (&"self".into(), &"self".into()));
    assert!(decision["latency_ms"].is_i64(), "{decision}");
    let other = &turn["decisions"][1];
    assert_eq!(other["code"], "ALLOWED");
    let asked = other["rules_evaluated"].as_array().unwrap();
    assert!(asked.contains(&"operator.notes".into()), "{other}");
    let shown = world.command(&["turn", "1"]).unwrap().stdout;
    assert!(shown.contains("acts for itself") && shown.contains("operator.notes"), "{shown}");
}

#[test]
fn the_file_that_init_writes_holds_and_is_never_written_over() {
    let world = world();
    assert_eq!(world.command(&["init"]).unwrap().code, Some(0));
    let missing = world.command(&["policy", "check"]).unwrap();
    assert!(missing.stderr.contains("automaton policy init"), "{}", missing.stderr);
    done(&world.command(&["policy", "init", "--json"]).unwrap());
    let path = world.home().join("policy.cedar");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let checked = done(&world.command(&["policy", "check", "--json"]).unwrap());
    assert_eq!((&checked["rules"], &checked["notes"]), (&3.into(), &json!([])));
    assert_eq!(world.command(&["policy", "init"]).unwrap().code, Some(1), "it is there");

    let call = |command: &str| {
        let asked = json!({ "tool": "exec", "arguments": { "command": command } }).to_string();
        let judged = judge(&world, &asked);
        assert!(judged.status.success(), "{}", String::from_utf8_lossy(&judged.stderr));
        serde_json::from_slice::<Value>(&judged.stdout).unwrap()
    };
    let refused = call("true && nc -l 80");
    assert_eq!(refused["outcome"], "deny");
    assert_eq!(refused["rules_triggered"], json!(["operator.listeners"]));
    assert_eq!(call("ls")["outcome"], "allow");
    assert_eq!(call("ls")["intents"][0]["kind"], "exec");
    fs::remove_file(&path).unwrap();
    assert_eq!(call("nc -l 80")["outcome"], "allow", "the sandbox has no network to listen on");
    let mut asked = json!({ "tool": "exec", "arguments": { "command": 7 } });
    let judged = judge(&world, &asked.to_string());
    assert_eq!(serde_json::from_slice::<Value>(&judged.stdout).unwrap()["outcome"], "invalid");
    asked["label"] = "web".into();
    assert_eq!(judge(&world, &asked.to_string()).status.code(), Some(1), "what is misspelt");
    assert_eq!(judge(&world, "ls").status.code(), Some(1));
}

#[test]
fn cases_come_out_as_they_say_or_the_command_fails() {
    let world = world();
    let rules = "@id(\"web\") forbid (principal, action == Action::\"write_path\", resource)\n\
        when { context.heard == Label::\"web\" };\n\
        @id(\"nights\") @ask(\"it is night\") forbid (principal, action, resource)\n\
        when { context.hour < 6 };";
    fs::write(world.dir().join("rules.cedar"), rules).unwrap();
    let case = |name: &str, more: &str, expect: &str| {
        format!(
            "[[case]]\nname = \"{name}\"\ntool = \"write_file\"\n\
             arguments = {{ path = \"a\", content = \"b\" }}\n{more}\nexpect = {{ {expect} }}\n"
        )
    };
    let noon = "state = { hour = 12 }";
    let right = [
        case("by day", noon, "outcome = \"allow\""),
        case("by night", "", "outcome = \"ask\", rule = \"operator.nights\""),
        case(
            "of the web",
            "labels = { input = \"creator\", heard = \"web\" }",
            "outcome = \"deny\", rule = \"operator.web\"",
        ),
    ]
    .concat();
    let tried = |text: &str| {
        fs::write(world.dir().join("cases.toml"), text).unwrap();
        let with = ["policy", "test", "--case", "cases.toml", "--rules", "rules.cedar"];
        world.command(&with).unwrap()
    };
    let fine = tried(&right);
    assert_eq!((fine.code, fine.stdout.matches("ok  ").count()), (Some(0), 3), "{}", fine.stderr);
    let wrong = tried(&(right + &case("wrong", noon, "outcome = \"deny\"")));
    assert_eq!(wrong.code, Some(1));
    assert!(wrong.stdout.contains("FAIL wrong: allowed"), "{}", wrong.stdout);
    assert!(wrong.stderr.contains("1 of 4 cases"), "{}", wrong.stderr);
    let misspelt = tried(&case("misspelt", "labels = { inputs = \"web\" }", "outcome = \"deny\""));
    assert_eq!(misspelt.code, Some(1));
    assert!(misspelt.stderr.contains("inputs"), "{}", misspelt.stderr);
}

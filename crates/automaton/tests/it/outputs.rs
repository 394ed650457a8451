//! The `--json` output of commands against the JSON Schemas that `schema --output` prints.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use automaton_core::event::Event;
use automaton_testkit::world::World;
use serde_json::Value;

use super::world;

/// Long enough for a loaded machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A rule of the operator's that asks about each file that is written.
const RULE: &str = "@id(\"all\") @ask(\"show me first\")\n\
    forbid (principal, action == Action::\"write_path\", resource);\n";

const STORY: &str = r#"title = "outputs"
[[step]]
say = "I am born."
[[step]]
expect.news = "Write"
say = "I write."
[[step.call]]
tool = "write_file"
arguments = { path = "a.txt", content = "text" }
[[step]]
say = "I asked."
[[step]]
expect.news = "never said"
say = "Never."
"#;

/// Prints what a command says with `--json`, one document a line, and checks each against the
/// schema of this name.
fn check(world: &World, name: &str, arguments: &[&str]) -> Vec<Value> {
    let schema = world.command(&["schema", "--output", name]).unwrap();
    assert_eq!(schema.code, Some(0), "{name}: {}", schema.stderr);
    let schema: Value = serde_json::from_str(&schema.stdout).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let done = world.command(&[arguments, &["--json"]].concat()).unwrap();
    assert_eq!(done.code, Some(0), "{arguments:?}: {}", done.stderr);
    let printed: Vec<Value> =
        done.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!printed.is_empty(), "{arguments:?} prints nothing");
    for document in &printed {
        let faults: Vec<String> =
            schema.iter_errors(document).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "{arguments:?}: {faults:?} in {document}");
        assert!(!schema.is_valid(&Value::from(7)), "{name} takes anything");
    }
    printed
}

/// Names a model in the configuration; nothing serves it.
fn name_model(world: &World) {
    let path = world.home().join("automaton.json");
    let mut config: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    config["brain"] = serde_json::json!({
        "kind": "http", "url": "http://127.0.0.1:9/v1", "model": "none",
        "contextTokens": 65536, "maxOutputTokens": 8192,
        "prices": { "inputPerMillion": "1", "cachedPerMillion": "1", "outputPerMillion": "1" },
    });
    world.write_home("automaton.json", &config.to_string()).unwrap();
}

#[test]
fn output_is_valid_by_the_schema_of_its_name() {
    let world = world().story(STORY).unwrap();
    check(&world, "model-list", &["model", "list"]);
    assert_eq!(world.command(&["init"]).unwrap().code, Some(0));
    check(&world, "status", &["status"]);
    world.write_home("policy.cedar", RULE).unwrap();
    let mut run = world.up(&[]).unwrap();
    let asleep = |event: &Event| matches!(event, Event::SleepStarted { .. });
    run.wait_for(asleep, LIMIT).unwrap();
    check(&world, "send", &["send", "Write, please."]);
    run.wait_for(asleep, LIMIT).unwrap();
    let status = check(&world, "status", &["status"]);
    assert!(status[0]["running"].is_object(), "{status:?}");
    let asked = check(&world, "approvals-list", &["approvals", "list"]);
    let id = asked[0]["id"].as_str().unwrap();
    check(&world, "approvals-show", &["approvals", "show", id]);
    check(&world, "approvals-message", &["approvals", "message", id]);
    let said = check(&world, "messages", &["messages"]);
    let id = said[0]["id"].as_str().unwrap();
    check(&world, "messages-show", &["messages", "show", id]);
    check(&world, "turns", &["turns"]);
    check(&world, "turn", &["turn", "2"]);
    name_model(&world);
    let models = check(&world, "model-list", &["model", "list"]);
    assert!(models[0]["models"].is_array(), "{models:?}");
    check(&world, "model-why", &["model", "why"]);
    check(&world, "model-spend", &["model", "spend"]);
    for (name, arguments) in OTHERS {
        check(&world, name, arguments);
    }
}

/// Commands that need nothing but an automaton that has lived.
const OTHERS: [(&str, &[&str]); 12] = [
    ("alerts", &["alerts"]),
    ("audit-show", &["audit", "show"]),
    ("audit-verify", &["audit", "verify"]),
    ("egress", &["egress"]),
    ("heartbeat", &["heartbeat"]),
    ("memory-search", &["memory", "search"]),
    ("pnl", &["pnl"]),
    ("policy-check", &["policy", "check"]),
    ("policy-show", &["policy", "show"]),
    ("soul-history", &["soul", "history"]),
    ("soul-show", &["soul", "show"]),
    ("worklog", &["worklog"]),
];

#[test]
fn limits_are_valid_by_their_schema() {
    let world = world();
    world.write_home("pass", "a long passphrase").unwrap();
    let file = world.home().join("pass");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let file = file.to_str().unwrap();
    let made = world.command(&["wallet", "new", "--passphrase-file", file]).unwrap();
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    check(&world, "limits-show", &["limits", "show"]);
    check(&world, "limits-set", &["limits", "set", "--per-payment", "1"]);
}

#[test]
fn a_name_without_a_schema_is_refused_with_the_names_that_have_one() {
    let world = world();
    let listed = world.command(&["schema", "--list"]).unwrap();
    assert!(listed.stdout.lines().any(|line| line.starts_with("status ")), "{}", listed.stdout);
    check(&world, "schema", &["schema", "--list"]);
    let unknown = world.command(&["schema", "--output", "stats"]).unwrap();
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.stderr.contains("approvals-list"), "{}", unknown.stderr);
}

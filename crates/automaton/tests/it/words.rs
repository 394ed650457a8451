//! What a person reads, and what a script reads of a failure.

use std::fs;

use automaton_core::event::Event;
use serde_json::{Value, json};

use super::{paying_world, world};

/// Names of databases that once stood on the screen.
const RAW: [&str; 9] = [
    "turns_used",
    "birth",
    "(born)",
    "inbox (",
    ": asked",
    ": said",
    "is in the record",
    "low_compute",
    "not_started",
];

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn a_first_run_is_told_in_everyday_english() {
    let world = paying_world();
    let run =
        world.command(&["up", "--brain", "script", "--turns", "2", "--ask", "Hello"]).unwrap();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let workspace = world.home().join("workspace").display().to_string();
    let sum = fs::metadata(world.home().join("workspace/sum.sh")).unwrap().len();
    let place = workspace.replace(&world.dir().display().to_string(), "~");
    for part in [
        "with 20.00 USDC on a chain of its own",
        "Bought $5.00 of credits for 5.00 USDC",
        "First start; a message is waiting",
        "Message from you: Hello",
        "  Turn 1 saved: 1 call\n",
        "all four books agree",
        "Stopped: 2 of 2 turns used",
        &format!("Made {place}/sum.sh ({sum} bytes)"),
        " send \"…\"",
        " up --brain script ",
    ] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    // Nobody wrote down a model with which `run` could think: what is told is tried.
    let again = run.stdout.lines().find(|line| line.ends_with("starts it again")).unwrap();
    let words = again.split_once(" up ").unwrap().1.trim_end_matches("starts it again");
    let typed: Vec<&str> = ["up"].into_iter().chain(words.split_whitespace()).collect();
    let more = world.command(&[&typed[..], &["--turns", "1"]].concat()).unwrap();
    assert_eq!(more.code, Some(0), "{typed:?}: {}", more.stderr);
    for raw in RAW {
        assert!(!run.stdout.contains(raw), "{raw}: {}", run.stdout);
    }
    let hash =
        |line: &str| line.split_whitespace().any(|word| word.starts_with("0x") && word.len() > 60);
    assert!(!run.stdout.lines().any(hash), "hashes are for the log: {}", run.stdout);
    let log = world.command(&["logs"]).unwrap().stdout;
    assert!(log.lines().any(hash), "{log}");
    for raw in RAW {
        assert!(!log.contains(raw), "{raw}: {log}");
    }
    let status = world.command(&["status"]).unwrap().stdout;
    let balance = status.lines().find(|line| line.starts_with("Balance")).unwrap();
    assert!(balance.contains(" ago)") || balance.contains("(just now)"), "{status}");
}

#[test]
fn a_home_that_is_thrown_away_says_so() {
    let run = world().command(&["up", "--brain", "script", "--direct", "--scratch"]).unwrap();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let last = run.stdout.lines().last().unwrap();
    assert_eq!(last, "Its home is thrown away now; without --scratch it stays in ~/.automaton");
    let made = "Made sum.sh (172 bytes) in its workspace";
    for part in ["The story is complete", made] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    assert!(!run.stdout.contains("Next:"), "{}", run.stdout);
}

#[test]
fn every_view_is_in_words_and_in_utc_where_that_is_asked_for() {
    let world = world();
    let run = world.up(&["--brain", "script"]).unwrap().finish().unwrap();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let told = |words: &[&str]| {
        let told = world.command(&[words, &["--utc"]].concat()).unwrap();
        assert_eq!(told.code, Some(0), "{words:?}: {}", told.stderr);
        for raw in RAW {
            assert!(!told.stdout.contains(raw), "{raw} in {words:?}: {}", told.stdout);
        }
        told.stdout
    };
    let status = told(&["status"]);
    for part in ["No alerts", "not read yet", "no messages waiting, 1 answered", " UTC (", "~/home"]
    {
        assert!(status.contains(part), "{part}: {status}");
    }
    let turns = told(&["turns"]);
    assert!(turns.contains(" UTC  write_file: “I am new here."), "{turns}");
    let turn = told(&["turn", "1"]);
    assert!(turn.starts_with("Turn 1: saved, begun "), "{turn}");
    assert!(turn.contains("Allowed by policy"), "{turn}");
    assert!(turn.contains(": first start\n") && turn.contains("wrote "), "{turn}");
    assert!(told(&["heartbeat"]).contains("built in"));
    assert!(told(&["heartbeat", "heartbeat_ping"]).contains("  done  "));
    assert_eq!(told(&["approvals", "list"]), "No question waits for your answer");
    assert!(told(&["pnl"]).contains("Credits bought: $0.00 for 0.00 USDC"));
    assert!(told(&["logs", "-n", "1000"]).contains(" UTC  Turn 1\n"));
    assert!(told(&["audit", "show"]).lines().next().unwrap().contains(" UTC  "));
    assert!(told(&["audit", "verify"]).starts_with("The record is whole: "));
    let call = world.command(&["turn", "1", "--json"]).unwrap().stdout;
    let call = parsed(&call)["turn"]["calls"][0]["id"].as_str().unwrap().to_owned();
    let explained = told(&["policy", "explain", &call]);
    assert!(explained.contains("allowed by policy") && explained.contains(" UTC ("), "{explained}");
}

#[test]
fn a_failure_under_json_is_one_document_with_a_code_and_a_remedy() {
    let world = world();
    let nobody = world.command(&["status", "--json"]).unwrap();
    assert_eq!(nobody.code, Some(1));
    let told = parsed(&nobody.stdout);
    let home = world.home().display().to_string();
    assert_eq!(
        told,
        json!({ "error": {
            "code": "user",
            "message": format!("no automaton lives in {home}"),
            "hint": "make one with `automaton up` or `automaton init`, or name another --home",
            "causes": [],
        } })
    );
    assert!(nobody.stderr.starts_with("error: no automaton lives in"), "{}", nobody.stderr);
    // Without it stdout is for data alone.
    assert_eq!(world.command(&["status"]).unwrap().stdout, "");

    for (words, message) in [
        (&["up", "--fly", "--json"][..], "unexpected argument '--fly' found"),
        (&["--json"], "no command was given"),
        (&["--configure", "--json"], "this automaton has no --configure"),
    ] {
        let mistake = world.command(words).unwrap();
        assert_eq!(mistake.code, Some(1), "{words:?}");
        let error = &parsed(&mistake.stdout)["error"];
        assert_eq!((&error["code"], &error["message"]), (&json!("user"), &json!(message)));
        assert!(error["hint"].is_string() && !mistake.stderr.is_empty(), "{error}");
    }
}

#[test]
fn all_that_is_wrong_is_in_the_document_and_a_stream_ends_with_an_event() {
    let world = world();
    let file = r#"{"name": "a", "genesisPrompt": "b", "webhookUrl": "http://example.com/hook"}"#;
    world.write_home("automaton.json", file).unwrap();
    world.write_home("heartbeat.yml", "entries: 7").unwrap();
    let run = world.up(&["--brain", "script"]).unwrap().finish().unwrap();
    let error = &parsed(&run.stdout)["error"];
    assert_eq!(
        error["others"].as_array().unwrap().len(),
        run.stderr.matches("error: ").count() - 1
    );
    assert!(error["others"][0]["message"].is_string(), "{error}");

    let story = "title = \"t\"\n[[step]]\nsay = \"a\"\n[[step.call]]\ntool = \"exec\"\n\
                 arguments = { command = \"echo 4\" }\n\
                 [[step]]\nexpect.result.exec = \"five and a half\"\nsay = \"five\"\n";
    let run = super::world().story(story).unwrap().up(&[]).unwrap().finish().unwrap();
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    let last = run.events.last().unwrap();
    assert!(matches!(last.event, Event::ErrorReported { .. }), "{last:?}");
    assert!(!run.stdout.contains("{\"error\":{"), "{}", run.stdout);
}

//! Credits that a real life gives away: with the creator's word, once, and in the books
//! of both clouds' accounts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use automaton_core::event::{Event, Service};
use automaton_testkit::world::{ProcessOutput, World};
use serde_json::Value;

use super::paying_world;

/// Long enough for key derivations on a loaded machine.
const LIMIT: Duration = Duration::from_secs(120);

/// The same automaton, told to give to an address.
fn story(to: &str) -> String {
    let words = |what: &str| format!("[[step]]\nsay = \"{what}\"\n");
    format!(
        "title = \"a gift\"\n{}[[step]]\nsay = \"I give.\"\n[[step.call]]\n\
         tool = \"transfer_credits\"\narguments = {{ to_address = \"{to}\", amount_cents = 150, \
         reason = \"a new roof\", goal = \"home\" }}\n{}",
        words("Ready."),
        // It lives for as long as the story has something to say.
        (1..10).map(|day| words(&format!("Day {day}."))).collect::<String>(),
    )
}

/// Runs a command of the friend, who has a home of its own.
fn friend(world: &World, home: &Path, arguments: &[&str]) -> ProcessOutput {
    let home = home.display().to_string();
    let all: Vec<&str> = ["--home", &home].into_iter().chain(arguments.iter().copied()).collect();
    let finished = world.command(&all).unwrap();
    assert_eq!(finished.code, Some(0), "{arguments:?}: {}", finished.stderr);
    finished
}

fn json(finished: &ProcessOutput) -> Value {
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    serde_json::from_str(&finished.stdout).unwrap()
}

#[test]
fn a_gift_waits_for_the_creators_word_and_is_given_once() {
    let world = paying_world();
    let other = world.dir().join("friend");
    let passphrase = world.dir().join("passphrase");
    fs::write(&passphrase, "a word of twelve").unwrap();
    fs::set_permissions(&passphrase, PermissionsExt::from_mode(0o600)).unwrap();
    let passphrase = passphrase.display().to_string();
    friend(&world, &other, &["init"]);
    let made =
        friend(&world, &other, &["wallet", "new", "--passphrase-file", &passphrase, "--json"]);
    let to = json(&made)["address"].as_str().unwrap().to_owned();

    let world = world.story(&story(&to)).unwrap();
    let limits = r#""minimumReserveCents": 0, "requireConfirmationAboveCents": 100"#;
    let config =
        format!(r#"{{"name": "Ada", "genesisPrompt": "Give.", "treasuryPolicy": {{{limits}}}}}"#);
    world.write_home("automaton.json", &config).unwrap();
    let mut run = world.up(&[]).unwrap();
    let is_cloud =
        |event: &Event| matches!(event, Event::ServiceReady { service: Service::Cloud, .. });
    let ready = run.wait_for(is_cloud, LIMIT).unwrap_or_else(|error| panic!("{error}"));
    let Event::ServiceReady { url: Some(cloud), .. } = ready.event else {
        panic!("the cloud is somewhere")
    };
    let asleep = |event: &Event| matches!(event, Event::SleepStarted { .. });
    run.wait_for(asleep, LIMIT).unwrap();
    friend(&world, &other, &["provision", "--cloud", &cloud, "--passphrase-file", &passphrase]);
    let ask = format!("Give it to {to} now.");
    json(&world.command(&["send", &ask, "--json"]).unwrap());
    run.wait_for(|event| matches!(event, Event::ApprovalAsked { .. }), LIMIT).unwrap();
    run.wait_for(asleep, LIMIT).unwrap();
    let credits = |world: &World| {
        json(&friend(world, &other, &["credits", "--json"]))["balance_cents"].as_i64()
    };
    assert_eq!(credits(&world), Some(0), "nothing without a word");

    let asked = json(&world.command(&["approvals", "list", "--json"]).unwrap());
    assert!(asked["reason"].as_str().unwrap().contains("$1.50 is more than the $1.00"), "{asked}");
    let id = asked["id"].as_str().unwrap();
    for _ in 0..2 {
        json(&world.command(&["approvals", "approve", id, "--json"]).unwrap());
    }
    let given = |event: &Event| matches!(event, Event::CreditsTransferred { .. });
    run.wait_for(given, LIMIT).unwrap();
    assert_eq!(world.command(&["approvals", "deny", id]).unwrap().code, Some(1), "it was answered");
    run.wait_for(asleep, LIMIT).unwrap();
    assert_eq!(credits(&world), Some(150));
    assert_eq!(world.command(&["stop"]).unwrap().code, Some(0));
    let finished = run.finish_within(LIMIT).unwrap();
    let agree = |event: &Event| matches!(event, Event::BooksChecked { agree: true, .. });
    assert!(finished.events.iter().any(|stamped| agree(&stamped.event)), "{}", finished.stdout);
    let account = json(&world.command(&["pnl", "--by", "goal", "--json"]).unwrap());
    let home = account["lines"].as_array().unwrap().iter().find(|line| line["name"] == "home");
    assert_eq!(home.unwrap()["cost"], 150_000_000, "{account}");
}

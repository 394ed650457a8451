//! Credits that a real life gives away: with the creator's word, once, and in the books
//! of both clouds' accounts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use automaton_core::event::{Event, Service, StampedEvent};
use automaton_testkit::world::{ProcessOutput, ProcessRun, World};
use serde_json::{Value, json};

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

/// A world with an automaton's home, and the home of a friend who has a wallet.
struct Friends {
    world: World,
    other: PathBuf,
    /// The file with the friend's passphrase.
    passphrase: String,
    /// The friend's address.
    to: String,
}

impl Friends {
    fn new() -> Self {
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
        Self { world, other, passphrase, to }
    }
}

/// Starts the automaton of a story; the friend gets an account with its cloud.
fn begin(world: &World, other: &Path, passphrase: &str, policy: &str) -> ProcessRun {
    let config =
        format!(r#"{{"name": "Ada", "genesisPrompt": "Give.", "treasuryPolicy": {{{policy}}}}}"#);
    world.write_home("automaton.json", &config).unwrap();
    let mut run = world.up(&[]).unwrap();
    let is_cloud =
        |event: &Event| matches!(event, Event::ServiceReady { service: Service::Cloud, .. });
    let ready = run.wait_for(is_cloud, LIMIT).unwrap_or_else(|error| panic!("{error}"));
    let Event::ServiceReady { url: Some(cloud), .. } = ready.event else {
        panic!("the cloud is somewhere")
    };
    run.wait_for(asleep, LIMIT).unwrap();
    friend(world, other, &["provision", "--cloud", &cloud, "--passphrase-file", passphrase]);
    run
}

const fn asleep(event: &Event) -> bool {
    matches!(event, Event::SleepStarted { .. })
}

fn json(finished: &ProcessOutput) -> Value {
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    serde_json::from_str(&finished.stdout).unwrap()
}

#[test]
fn a_gift_waits_for_the_creators_word_and_is_given_once() {
    let Friends { world, other, passphrase, to } = Friends::new();
    let world = world.story(&story(&to)).unwrap();
    let limits = r#""minimumReserveCents": 0, "requireConfirmationAboveCents": 100"#;
    let mut run = begin(&world, &other, &passphrase, limits);
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

/// A story of an automaton that runs a command, and then would give to an address that nobody has
/// named: two sums in one turn.
fn unnamed_story(to: &str) -> String {
    let gift = |cents: u32| {
        format!(
            "[[step.call]]\ntool = \"transfer_credits\"\narguments = {{ to_address = \"{to}\", \
             amount_cents = {cents}, reason = \"a new roof\" }}\n"
        )
    };
    let says = |words: &str| format!("[[step]]\nsay = \"{words}\"\n");
    let on = |news: &str| format!("[[step]]\nexpect.news = \"{news}\"\nsay = \"{news}: I see.\"\n");
    let run = "[[step.call]]\ntool = \"exec\"\narguments = { command = \"echo 2 3 5\" }\n";
    let rest: String = (1..12).map(|day| says(&format!("Day {day}."))).collect();
    let steps = [
        says("Ready."),
        on("Primes"),
        run.to_owned(),
        says("They are 2, 3 and 5."),
        on("leaks"),
        gift(150),
        gift(151),
        says("I asked."),
        rest,
    ];
    format!("title = \"a roof\"\n{}", steps.concat())
}

/// The questions that wait, as JSON.
fn waiting(world: &World) -> Vec<Value> {
    let listed = world.command(&["approvals", "list", "--json"]).unwrap();
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    listed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn an_approved_gift_to_somebody_unnamed_is_given_once_though_a_tool_was_read() {
    let Friends { world, other, passphrase, to } = Friends::new();
    let world = world.story(&unnamed_story(&to)).unwrap();
    let mut run = begin(&world, &other, &passphrase, r#""minimumReserveCents": 0"#);
    let credits =
        || json(&friend(&world, &other, &["credits", "--json"]))["balance_cents"].as_i64();
    for text in ["Primes, please.", "My neighbour's roof leaks: do something."] {
        json(&world.command(&["send", text, "--json"]).unwrap());
        run.wait_for(asleep, LIMIT).unwrap();
    }
    let asked = waiting(&world);
    assert_eq!(asked.len(), 2, "other arguments are another question: {asked:?}");
    let is_smaller = |it: &&Value| it["summary"]["text"].as_str().unwrap().contains("150");
    let smaller = asked.iter().find(is_smaller).unwrap();
    let reason = smaller["reason"].as_str().unwrap();
    assert!(reason.contains("No word of the creator names"), "{reason}");
    assert_eq!(credits(), Some(0), "nothing without a word");
    let id = smaller["id"].as_str().unwrap();
    json(&world.command(&["approvals", "approve", id, "--json"]).unwrap());
    run.wait_for(|event| matches!(event, Event::CreditsTransferred { .. }), LIMIT).unwrap();
    run.wait_for(asleep, LIMIT).unwrap();
    assert_eq!(credits(), Some(150));
    // The same answer again is no second yes.
    json(&world.command(&["approvals", "approve", id, "--json"]).unwrap());
    json(&world.command(&["send", "Is there anything else?", "--json"]).unwrap());
    run.wait_for(asleep, LIMIT).unwrap();
    assert_eq!(credits(), Some(150));
    assert_eq!(waiting(&world).len(), 1, "the other question waits");
    let given = |event: &Event| matches!(event, Event::CreditsTransferred { .. });
    let count = run.events().iter().filter(|stamped| given(&stamped.event)).count();
    assert_eq!(count, 1);
}

#[test]
fn a_gift_that_a_limit_would_refuse_after_the_yes_is_not_asked_about() {
    let Friends { world, other, passphrase, to } = Friends::new();
    let world = world.story(&unnamed_story(&to)).unwrap();
    // Of the five dollars that it bought ten have to be left.
    let mut run = begin(&world, &other, &passphrase, r#""minimumReserveCents": 1000"#);
    for text in ["Primes, please.", "My neighbour's roof leaks: do something."] {
        json(&world.command(&["send", text, "--json"]).unwrap());
        run.wait_for(asleep, LIMIT).unwrap();
    }
    assert!(waiting(&world).is_empty());
    let refused = |stamped: &StampedEvent| match &stamped.event {
        Event::DecisionMade { tool, code, reason, .. } if tool == "transfer_credits" => {
            Some((code.clone(), reason.clone()))
        }
        _ => None,
    };
    let decided: Vec<(String, String)> = run.events().iter().filter_map(refused).collect();
    assert_eq!(decided.len(), 2);
    for (code, reason) in decided {
        assert_eq!(code, "MINIMUM_RESERVE");
        assert!(reason.contains("$10.00 have to be left"), "{reason}");
    }
}

#[test]
fn a_running_automaton_buys_credits_when_its_creator_says_so() {
    let day = |day: u32| format!("[[step]]\nsay = \"Day {day}.\"\n");
    let story = format!("title = \"rest\"\n{}", (0..10).map(day).collect::<String>());
    let world = paying_world().story(&story).unwrap();
    let config = r#"{"name": "Ada", "genesisPrompt": "Rest."}"#;
    world.write_home("automaton.json", config).unwrap();
    let mut run = world.up(&[]).unwrap();
    run.wait_for(|event| matches!(event, Event::SleepStarted { .. }), LIMIT).unwrap();
    // At its start it had none and bought once; its creator buys more.
    let bought = json(&world.command(&["topup", "5", "--json"]).unwrap());
    assert_eq!((&bought["credits_usd"], &bought["settled"]), (&json!(5), &json!(true)));
    let settled = |event: &Event| matches!(event, Event::TopupSettled { .. });
    run.wait_for(settled, LIMIT).unwrap();
    let dear = world.command(&["topup", "100"]).unwrap();
    assert!(dear.code == Some(1) && dear.stderr.contains("USDC"), "{dear:?}");
    let none = world.command(&["topup", "7"]).unwrap();
    assert!(none.stderr.contains("US dollars, not for 7"), "{none:?}");
    let elsewhere = world.command(&["topup", "5", "--cloud", "http://127.0.0.1:1"]).unwrap();
    assert!(elsewhere.stderr.contains("the automaton runs, and buys with"), "{elsewhere:?}");
    // Another start has no reason to buy.
    run.kill().unwrap();
    let mut run = world.up(&[]).unwrap();
    let read = |event: &Event| matches!(event, Event::BalancesRead { credits: Some(_), .. });
    let balance = run.wait_for(read, LIMIT).unwrap();
    let Event::BalancesRead { credits: Some(credits), .. } = balance.event else { panic!() };
    assert!(credits.cents_floor() >= 990, "{credits}");
    run.kill().unwrap();
}

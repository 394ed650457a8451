//! Profit and loss of a real life, and the stop-loss that ends it until its creator
//! says otherwise. The cloud's ledger is the other witness.

use std::fs;
use std::time::Duration;

use automaton_core::event::{Event, StampedEvent};
use automaton_core::record::StopReason;
use automaton_testkit::world::{ProcessRun, World};
use serde_json::Value;

use super::paying_world;
use super::remote::model;

/// Long enough for key derivations on a loaded machine.
const LIMIT: Duration = Duration::from_secs(120);

/// A dollar for a thousand tokens: one answer costs more than a cent.
const DEAR: &str = r#"{
    "input_microcents_per_million": 1000000000,
    "cached_microcents_per_million": 1000000000,
    "output_microcents_per_million": 1000000000
}"#;

const STORY: &str = "title = \"words\"\n[[step]]\nsay = \"One.\"\n[[step]]\nsay = \"Two.\"\n\
    [[step]]\nsay = \"Three.\"\n";

fn configured(world: &World, more: &str) {
    let config = format!(r#"{{"name": "Ada", "genesisPrompt": "Say something."{more}}}"#);
    world.write_home("automaton.json", &config).unwrap();
    let dev = world.home().with_file_name("home-dev");
    fs::create_dir(&dev).unwrap();
    fs::write(dev.join("prices.json"), DEAR).unwrap();
}

fn json(world: &World, arguments: &[&str]) -> Value {
    let finished = world.command(arguments).unwrap();
    assert_eq!(finished.code, Some(0), "{arguments:?}: {}", finished.stderr);
    serde_json::from_str(&finished.stdout).unwrap()
}

/// Waits for the hibernation, and gives its reason.
fn hibernation(run: &mut ProcessRun) -> String {
    let found = run.wait_for(|event| matches!(event, Event::HibernationStarted { .. }), LIMIT);
    match found.unwrap().event {
        Event::HibernationStarted { reason, .. } => reason,
        other => unreachable!("{other:?}"),
    }
}

/// What the cloud's ledger says is gone: what was bought without what is left there.
fn gone(events: &[StampedEvent]) -> i64 {
    let books = events.iter().rev().find_map(|stamped| match stamped.event {
        Event::BooksChecked { books, agree } => Some((books, agree)),
        _ => None,
    });
    let (books, agree) = books.unwrap();
    assert!(agree, "{books:?}");
    books.bought.minus(books.left.unwrap()).unwrap().units()
}

fn cost(world: &World, by: &str) -> i64 {
    let account = json(world, &["pnl", "--by", by, "--days", "2", "--json"]);
    let lines = account["lines"].as_array().unwrap();
    let sum: i64 = lines.iter().map(|line| line["cost"].as_i64().unwrap()).sum();
    let total = account["total"]["cost"].as_i64().unwrap();
    assert_eq!((sum, account["net"].as_i64()), (total, Some(-total)), "{account}");
    assert_eq!(account["exchanged"]["got"], 500_000_000, "{account}");
    total
}

#[test]
fn a_stop_loss_hibernates_and_the_creators_message_wakes() {
    let (model, _served) = model(STORY);
    let world = paying_world().brain(&model);
    configured(&world, r#", "stopLoss": {"totalCents": 1}"#);
    let mut run = world.up(&[]).unwrap();
    let reason = hibernation(&mut run);
    assert!(reason.contains("and $0.01 is what `stopLoss.totalCents` allows"), "{reason}");
    let status = json(&world, &["status", "--json"]);
    assert_eq!(status["state"], "hibernating");
    assert!(status["hibernation"].as_str().unwrap().contains("automaton wake"), "{status}");
    let first = cost(&world, "category");
    assert!(first > 1_000_000, "an answer for {first}");

    json(&world, &["send", "Say more.", "--json"]);
    hibernation(&mut run);
    assert!(cost(&world, "turn") > first, "it thought once more");
    assert_eq!(world.command(&["stop"]).unwrap().code, Some(0));
    let finished = run.finish_within(LIMIT).unwrap();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let stops = finished.events.iter().filter_map(|stamped| match stamped.event {
        Event::WakeEnded { reason, .. } => Some(reason),
        _ => None,
    });
    assert_eq!(stops.collect::<Vec<_>>(), [StopReason::StopLoss; 2]);
    for by in ["category", "day", "goal", "turn", "service"] {
        assert_eq!(cost(&world, by), gone(&finished.events), "by {by}");
    }
    let shown = world.command(&["pnl"]).unwrap().stdout;
    assert!(shown.starts_with("Category ") && shown.contains("\nthinking "), "{shown}");

    // Where it is to end by itself nobody waits for money: it says why, and ends.
    let bounded = world.up(&["--turns", "1"]).unwrap().finish_within(LIMIT).unwrap();
    assert_eq!(bounded.code, Some(1), "{}", bounded.stdout);
    assert!(bounded.stderr.contains("it hibernates: $0.0"), "{}", bounded.stderr);
}

#[test]
fn a_day_without_budget_is_said_and_asks_no_model() {
    let world = paying_world().story(STORY).unwrap();
    configured(&world, r#", "treasuryPolicy": {"maxInferenceDailyCents": 1}"#);
    let finished = world.up(&[]).unwrap().finish_within(LIMIT).unwrap();
    assert_eq!(finished.code, Some(1), "{}", finished.stdout);
    assert!(finished.stderr.contains("maxInferenceDailyCents"), "{}", finished.stderr);
    assert_eq!(gone(&finished.events), 0);
    let status = json(&world, &["status", "--json"]);
    assert_eq!((&status["state"], &status["spent"]), (&"sleeping".into(), &"$0.00".into()));
    assert_eq!(status["sleep"]["reason"], "budget");
}

//! What an operator sees: metrics, alerts, status, and a log that is asked for parts.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use automaton_core::event::Event;
use serde_json::{Value, json};

use super::world;

const LIMIT: Duration = Duration::from_secs(60);

/// What a server of this machine answers to a plain request.
fn scrape(url: &str, host: &str) -> String {
    let rest = url.strip_prefix("http://").unwrap();
    let (address, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_life_is_scraped_listed_and_filtered() {
    let world = world();
    let creator = "0x1111111111111111111111111111111111111111";
    let file = json!({
        "name": "Ada", "genesisPrompt": "Look around.", "metricsAddr": 0, "creatorAddress": creator,
    });
    world.write_home("automaton.json", &file.to_string()).unwrap();
    let mut run = world.up(&["--brain", "script"]).unwrap();
    let served = run.wait_for(|event| matches!(event, Event::MetricsServed { .. }), LIMIT).unwrap();
    let Event::MetricsServed { url } = served.event else { panic!("{served:?}") };
    run.wait_for(|event| matches!(event, Event::TurnCommitted { .. }), LIMIT).unwrap();
    let page = scrape(&url, "127.0.0.1");
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    assert!(page.contains("\nautomaton_alert_active{rule=\"zero_turns_last_hour\""), "{page}");
    assert!(!page.contains("automaton_turns_total 0\n"), "{page}");
    assert!(scrape(&url, "rebound.example").starts_with("HTTP/1.1 403"));
    let finished = run.finish().unwrap();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);

    let answer = |arguments: &[&str]| {
        let finished = world.command(arguments).unwrap();
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        finished.stdout
    };
    let status: Value = serde_json::from_str(&answer(&["status", "--json"])).unwrap();
    assert_eq!(status["means"]["credits"], Value::Null);
    assert_eq!(
        (&status["creator"], &status["address"], &status["sandbox"]),
        (&json!(creator), &Value::Null, &Value::Null)
    );
    let told = answer(&["status"]);
    assert!(told.contains("none: it has no wallet") && told.contains(creator), "{told}");
    assert_eq!((&status["means"]["broke_for_ms"], &status["alerts"]), (&Value::Null, &json!([])));
    assert!(status["next_heartbeat"]["at"].is_i64(), "{status}");
    assert_eq!(answer(&["alerts"]), "No alerts");
    assert_eq!(answer(&["alerts", "--json"]), "[]");
    let turns = answer(&["logs", "-n", "1000", "--event", "turn.committed", "--json"]);
    assert!(turns.lines().count() > 1);
    assert!(turns.lines().all(|line| line.contains("\"event\":\"turn.committed\"")));
    assert_eq!(answer(&["logs", "-n", "1000", "--event", "turn", "--level", "error"]), "");
}

#[test]
fn a_webhook_in_the_open_is_refused_before_anything_starts() {
    let world = world();
    let file = json!({
        "name": "Ada", "genesisPrompt": "Look around.", "webhookUrl": "http://example.com/hook",
    });
    world.write_home("automaton.json", &file.to_string()).unwrap();
    let finished = world.up(&["--brain", "script"]).unwrap().finish().unwrap();
    assert_ne!(finished.code, Some(0));
    let told = "key `webhookUrl` of automaton.json names http://example.com, which is not \
        encrypted";
    assert!(finished.stderr.contains(told), "{}", finished.stderr);
    assert!(!finished.stderr.contains("/hook"), "{}", finished.stderr);
}

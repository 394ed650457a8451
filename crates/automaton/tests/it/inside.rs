//! What it does inside: diagnostics on stderr, traces for a collector, and no secret in
//! either.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use automaton_core::event::Event;
use automaton_testkit::world::World;
use serde_json::{Value, json};

use super::{paying_world, world};

const LIMIT: Duration = Duration::from_secs(120);

/// A collector of this machine, as far as an exporter sees one: every body that is
/// posted, with its path.
fn collector() -> (String, Receiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (got, received) = sync_channel(64);
    std::thread::spawn(move || {
        for stream in listener.incoming().map(Result::unwrap) {
            let mut lines = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                lines.read_line(&mut line).unwrap();
                match line.trim().split_once(": ") {
                    Some(("content-length", value)) => length = value.parse().unwrap(),
                    None if line.trim().is_empty() => break,
                    None => head = line.trim().to_owned(),
                    Some(_) => {}
                }
            }
            let mut body = vec![0; length];
            lines.read_exact(&mut body).unwrap();
            let mut stream = stream;
            let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
            stream.write_all(answer.as_bytes()).unwrap();
            if got.send((head, String::from_utf8(body).unwrap())).is_err() {
                return;
            }
        }
    });
    (url, received)
}

/// Lives for some turns, and gives what a collector got of them.
pub(super) fn exported(world: &World, arguments: &[&str]) -> Vec<String> {
    let (url, received) = collector();
    let file = json!({
        "name": "Ada", "genesisPrompt": "Look around.", "otlpEndpoint": url, "allowedOrigins": [url],
    });
    world.write_home("automaton.json", &file.to_string()).unwrap();
    let finished = world.up(arguments).unwrap().finish_within(LIMIT).unwrap();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let lost = |event: &Event| matches!(event, Event::TraceLost { .. });
    assert!(!finished.events.iter().any(|stamped| lost(&stamped.event)), "{}", finished.stdout);
    let bodies: Vec<(String, String)> = received.try_iter().collect();
    assert!(bodies.iter().all(|(head, _)| head == "POST /v1/traces HTTP/1.1"), "{bodies:?}");
    bodies.into_iter().map(|(_, body)| body).collect()
}

fn spans(body: &str) -> Vec<Value> {
    let body: Value = serde_json::from_str(body).unwrap();
    body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()
}

fn nanos(span: &Value, name: &str) -> u64 {
    span[name].as_str().unwrap().parse().unwrap()
}

#[test]
fn each_turn_is_a_trace_with_the_times_of_the_record() {
    let world = world();
    let bodies = exported(&world, &["--brain", "script", "--turns", "3"]);
    assert_eq!(bodies.len(), 3);
    let turn = world.command(&["turn", "2", "--json"]).unwrap().stdout;
    let turn: Value = serde_json::from_str(&turn).unwrap();
    let spans = spans(&bodies[1]);
    let names: Vec<&str> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert_eq!((names[0], names[2]), ("turn", "execute_tool exec"), "{names:?}");
    assert!(names[1].starts_with("chat "), "{names:?}");
    let root = &spans[0];
    assert_eq!(root["parentSpanId"], Value::Null);
    let hex = |span: &Value, name: &str, digits: usize| {
        let text = span[name].as_str().unwrap();
        text.len() == digits
            && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    for span in &spans {
        assert!(hex(span, "traceId", 32) && hex(span, "spanId", 16), "{span}");
        assert_eq!(span["traceId"], root["traceId"]);
        assert!(span["parentSpanId"].is_null() || span["parentSpanId"] == root["spanId"]);
        assert!(nanos(root, "startTimeUnixNano") <= nanos(span, "startTimeUnixNano"), "{span}");
        assert!(nanos(span, "endTimeUnixNano") <= nanos(root, "endTimeUnixNano"), "{span}");
        assert_eq!(span["status"]["code"], 1);
    }
    let opened = turn["turn"]["opened_at"].as_u64().unwrap();
    assert_eq!(nanos(root, "startTimeUnixNano"), opened * 1_000_000);
    let asked = turn["asked_at"].as_u64().unwrap();
    assert_eq!(nanos(&spans[1], "startTimeUnixNano"), asked * 1_000_000);
    let tool = json!({ "key": "gen_ai.tool.name", "value": { "stringValue": "exec" } });
    assert!(spans[2]["attributes"].as_array().unwrap().contains(&tool), "{}", spans[2]);
    let attribute = |key: &str| {
        let all = spans[1]["attributes"].as_array().unwrap();
        let found = all.iter().find(|it| it["key"] == key).map(|it| it["value"].clone());
        found.unwrap_or_else(|| panic!("{key}: {}", spans[1]))
    };
    let model = attribute("gen_ai.response.model");
    assert_eq!(attribute("gen_ai.request.model"), model);
    assert_eq!(attribute("gen_ai.provider.name"), json!({ "stringValue": "openai" }));
    assert_eq!(attribute("server.address"), json!({ "stringValue": "127.0.0.1" }));
    let session = turn["turn"]["session"].clone();
    assert_eq!(attribute("gen_ai.conversation.id"), json!({ "stringValue": session }));
    let command = turn["turn"]["calls"][0]["arguments"].as_str().unwrap();
    assert!(!bodies[1].contains(command), "what is said and done is not sent");
}

#[test]
fn a_collector_that_is_not_there_is_told_and_delays_nobody() {
    let world = world();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let file = json!({
        "name": "Ada", "genesisPrompt": "Look around.", "otlpEndpoint": url, "allowedOrigins": [url],
    });
    world.write_home("automaton.json", &file.to_string()).unwrap();
    let finished = world.up(&["--brain", "script"]).unwrap().finish_within(LIMIT).unwrap();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let open = json!({
        "name": "Ada", "genesisPrompt": "Look around.", "otlpEndpoint": "http://example.com:4318",
    });
    world.write_home("automaton.json", &open.to_string()).unwrap();
    let finished = world.up(&["--brain", "script"]).unwrap().finish().unwrap();
    let told = "key `otlpEndpoint` of automaton.json names http://example.com:4318, which is not";
    assert!(finished.code != Some(0) && finished.stderr.contains(told), "{}", finished.stderr);
}

#[test]
fn diagnostics_come_from_every_process_and_are_quiet_unless_asked_for() {
    let world = paying_world();
    let run = |arguments: &[&str]| {
        let arguments = [&["--brain", "script", "--turns", "1"], arguments].concat();
        let finished = world.up(&arguments).unwrap().finish_within(LIMIT).unwrap();
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        finished.stderr
    };
    let loud = run(&["--log", "automaton=debug", "--log-format", "json"]);
    let lines: Vec<Value> = loud.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for process in ["supervisor", "agent", "signer", "cloud", "chain"] {
        assert!(lines.iter().any(|line| line["process"] == process), "{process}: {loud}");
    }
    let closed = |name: &str| {
        lines.iter().any(|line| {
            let spans = line["spans"].as_array().unwrap();
            let last = spans.last().and_then(Value::as_str).unwrap_or_default();
            line["message"] == "close" && last.starts_with(name)
        })
    };
    for span in ["turn{id=", "model{", "tool{", "task{", "payment{", "request{", "served{"] {
        assert!(closed(span), "{span}: {loud}");
    }
    assert_eq!(run(&[]), "", "nothing is told that was not asked for");
    let some = run(&["--log", "off,automaton_agent::turn=info"]);
    assert!(
        some.lines().count() == 1 && some.contains(" INFO agent automaton_agent::turn turn{id="),
        "{some}"
    );
    let bad = world.up(&["--brain", "script", "--log", "info,loud"]).unwrap().finish().unwrap();
    assert_eq!(bad.code, Some(1));
    assert!(bad.stderr.contains("'loud' is neither a level (off, error, warn"), "{}", bad.stderr);
}

#[test]
fn no_secret_is_in_any_log_whatever_is_told() {
    const CANARY: &str = "sk-canary-that-nobody-sings";
    let world = paying_world();
    let file = json!({
        "name": "Ada", "genesisPrompt": "Look around.", "openaiApiKey": CANARY,
        "anthropicApiKey": CANARY, "webhookUrl": format!("https://127.0.0.1:1/{CANARY}"),
    });
    world.write_home("automaton.json", &file.to_string()).unwrap();
    let arguments = ["--brain", "script", "--turns", "2", "--log", "trace"];
    let finished = world.up(&arguments).unwrap().finish_within(LIMIT).unwrap();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert!(finished.stderr.contains(" TRACE "), "the rest of the program speaks, too");
    let passphrase = world.dir().join("home-signer/passphrase");
    let export = ["export-key", "--passphrase-file", passphrase.to_str().unwrap()];
    let key = world.command(&export).unwrap().stdout;
    let account = fs::read_to_string(world.home().join("cloud-key.json")).unwrap();
    let account: Value = serde_json::from_str(&account).unwrap();
    let secrets = [
        CANARY.to_owned(),
        key.trim().trim_start_matches("0x").to_owned(),
        fs::read_to_string(&passphrase).unwrap().trim().to_owned(),
        account["key"].as_str().unwrap().to_owned(),
    ];
    let events = fs::read_to_string(world.home().join("events.jsonl")).unwrap();
    let turn = world.command(&["turn", "last", "--prompt", "--json"]).unwrap().stdout;
    for log in [&finished.stderr, &finished.stdout, &events, &turn] {
        assert!(!log.is_empty());
        for secret in &secrets {
            assert!(secret.len() > 8 && !log.contains(secret.as_str()), "{secret}");
        }
    }
}

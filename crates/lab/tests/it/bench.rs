//! `bench run` against a small scripted world, and against what is none.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::{told, world};

/// Questions until the script's sleep.
const TURNS: u64 = 3;

/// What the world has seen.
struct Seen {
    begun: Instant,
    turn: u64,
    watched: Value,
    log: Vec<Value>,
}

type Shared = State<Arc<Mutex<Seen>>>;

impl Seen {
    fn note(&mut self, path: &str, turn: Option<u64>) {
        let now = u64::try_from(self.begun.elapsed().as_nanos()).unwrap();
        self.log.push(json!({
            "path": path, "t_in": now, "t_out": now, "turn": turn, "cpu_ns": now / 2,
            "rss_kb": 4096, "db_bytes": self.watched["db"].as_str().map(|_| now),
        }));
    }
}

async fn chat(State(seen): Shared, Json(asked): Json<Value>) -> Json<Value> {
    let mut seen = seen.lock().unwrap();
    seen.turn += 1;
    let (turn, tools) = (seen.turn, asked["tools"].as_array().map_or(0, Vec::len));
    assert!(tools > 5, "it offers its tools");
    seen.note("/v1/chat/completions", Some(turn));
    let (name, arguments) = match turn {
        ..=TURNS => (
            "remember_fact",
            json!({"category": "domain", "key": format!("k{turn}"), "value": "b"}),
        ),
        _ => ("sleep", json!({"duration_seconds": 3600, "reason": "done"})),
    };
    let call = json!({ "index": 0, "id": "c", "type": "function",
        "function": { "name": name, "arguments": arguments.to_string() } });
    Json(json!({ "id": "a", "object": "chat.completion", "created": 1, "model": asked["model"],
        "choices": [{ "index": 0, "finish_reason": "tool_calls",
            "message": { "role": "assistant", "content": "So.", "tool_calls": [call] } }],
        "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 } }))
}

async fn models(State(seen): Shared) -> Json<Value> {
    seen.lock().unwrap().note("/v1/models", None);
    Json(json!({ "object": "list", "data": [] }))
}

async fn standing(State(seen): Shared) -> Json<Value> {
    let turn = seen.lock().unwrap().turn;
    Json(json!({ "turn": turn, "asleep": turn > TURNS, "unknown_tools": {"fly": 2},
        "not_found": {} }))
}

async fn watch(State(seen): Shared, Json(watched): Json<Value>) -> Json<Value> {
    seen.lock().unwrap().watched = watched;
    Json(json!({}))
}

async fn reset(State(seen): Shared) -> Json<Value> {
    let mut seen = seen.lock().unwrap();
    (seen.turn, seen.watched) = (0, Value::Null);
    seen.log.clear();
    Json(json!({}))
}

async fn log(State(seen): Shared) -> Json<Value> {
    Json(Value::Array(seen.lock().unwrap().log.clone()))
}

/// Serves for as long as the process lives; where.
#[expect(clippy::disallowed_methods, reason = "a world has a clock of its own")]
fn serve() -> String {
    let seen = Seen { begun: Instant::now(), turn: 0, watched: Value::Null, log: Vec::new() };
    let app = Router::new()
        .route("/v1/chat/completions", post(chat))
        .route("/v1/models", get(models))
        .route("/__mock/state", get(standing))
        .route("/__mock/watch", post(watch))
        .route("/__mock/reset", post(reset))
        .route("/__mock/log", get(log))
        .with_state(Arc::new(Mutex::new(seen)));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, app).await.unwrap();
        });
    });
    url
}

#[test]
fn a_life_is_measured_by_the_worlds_clock_and_the_systems_words() {
    let url = serve();
    let arguments = [
        "bench", "run", "--world", &url, "--life", "bare", "--starts", "2", "--asleep", "1",
        "--json",
    ];
    let run = world().start(&arguments).unwrap();
    let finished = run.finish_within(Duration::from_secs(120)).unwrap();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let measured: Value = serde_json::from_str(&finished.stdout).unwrap();
    let number = |key: &str| measured[key].as_u64().unwrap_or_else(|| panic!("{key}: {measured}"));
    // It may be told once that somebody waits, before it is stopped in its sleep.
    assert!((TURNS + 1..=TURNS + 2).contains(&number("turns")), "{measured}");
    assert_eq!(measured["life"].as_str(), Some("bare"));
    let starts = measured["starts_us"].as_array().unwrap();
    assert!(starts.len() == 2 && starts[0].as_u64() > Some(1000), "{starts:?}");
    // The world says that half of the time was the processor's.
    assert!(number("cpu_us") > 0 && number("overhead_us") > 0 && number("sent_us") > 0);
    assert!(measured["overhead_early_us"].is_null(), "there were too few turns");
    assert_eq!((number("at_work_kib"), measured["in_vain"][0][1].as_u64()), (4096, Some(2)));
    let names: Vec<_> = measured["asleep"].as_array().unwrap().iter().collect();
    assert_eq!(
        names.iter().map(|part| part["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["supervisor", "agent"]
    );
    assert!(names.iter().all(|part| part["rss_kib"].as_u64() > Some(4000)), "{names:?}");
}

#[test]
fn what_is_no_world_is_told_at_once() {
    let world = world();
    for (url, told_of) in [
        ("nonsense", "'nonsense' is no URL"),
        ("http://127.0.0.1:9", "http://127.0.0.1:9 cannot be reached"),
    ] {
        let finished = world.command(&["bench", "run", "--world", url]).unwrap();
        assert_ne!(finished.code, Some(0));
        assert!(told(&finished).contains(told_of), "{finished:?}");
    }
}

#[test]
fn jobs_are_done_or_skipped_with_a_reason_and_an_unknown_one_is_refused() {
    let world = world();
    let names = ["owners", "watching", "terminals", "time-zones"];
    let arguments = [&["bench", "jobs", "--json"][..], &names].concat();
    let finished = world.start(&arguments).unwrap();
    let finished = finished.finish_within(Duration::from_secs(120)).unwrap();
    assert_eq!(finished.code, Some(0), "{}", told(&finished));
    let reports: Vec<Value> = serde_json::from_str(&finished.stdout).unwrap();
    let mut found: Vec<&str> = reports.iter().map(|it| it["job"].as_str().unwrap()).collect();
    found.sort_unstable();
    assert_eq!(found, ["owners", "terminals", "time-zones", "watching"]);
    for report in &reports {
        let reason = report["said"].as_str().unwrap();
        match report["outcome"].as_str().unwrap() {
            "works" => assert_eq!(reason, ""),
            "skipped" => {
                assert!(reason.contains(" is not there") || reason.contains("there "), "{report}")
            }
            other => panic!("{other}: {report}"),
        }
    }
    let owners = reports.iter().find(|it| it["job"] == "owners").unwrap();
    assert_eq!(owners["outcome"], "works", "{owners}");

    let refused = world.command(&["bench", "jobs", "knitting"]).unwrap();
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("there is no job \"knitting\""), "{}", refused.stderr);
}

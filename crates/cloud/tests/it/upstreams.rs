//! Several upstreams: who is asked, in which order, and that the answer is charged once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use automaton_core::time::Span;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post as route;
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::sync::Semaphore;

use crate::chat::{PRICES, funded_before, serve};
use crate::messages::{self, event};
use crate::world::{Reply, World, post};

/// The number of questions to each upstream.
type Asked = Arc<AtomicUsize>;

/// The conduct of a server.
#[derive(Debug, Clone, Copy)]
enum Conduct {
    Answers(u32),
    Refuses(u16),
    Hangs,
    /// An opening of a stream, and then the connection breaks.
    BreaksAtOnce,
    /// The same, but as if that were all.
    EndsAtOnce,
    /// An opening, and then an error in the place of a word.
    Fails,
    Empty,
}

fn conduct(what: Conduct, asked: &Value) -> Response {
    let piece = |delta: Value| event(&json!({ "choices": [{ "index": 0, "delta": delta }] }));
    let broken = |pieces: Vec<String>| {
        let pieces = pieces.into_iter().map(Ok);
        let error = std::io::Error::other("broken");
        let body = Body::from_stream(stream::iter(pieces).chain(stream::iter([Err(error)])));
        ([("content-type", "text/event-stream")], body).into_response()
    };
    let opening = piece(json!({ "role": "assistant", "content": "" }));
    let word = |text: &str| piece(json!({ "content": text }));
    match what {
        Conduct::Refuses(status) => {
            let status = StatusCode::from_u16(status).unwrap();
            (status, [("retry-after", "20")], r#"{"error":{"message":"no"}}"#).into_response()
        }
        Conduct::Hangs => {
            let never = stream::pending::<Result<String, std::io::Error>>();
            let kind = [("content-type", "text/event-stream")];
            (kind, Body::from_stream(never)).into_response()
        }
        Conduct::BreaksAtOnce => broken(vec![opening]),
        Conduct::Fails => {
            let error = event(&json!({ "error": { "message": "overloaded", "code": 529 } }));
            ([("content-type", "text/event-stream")], [opening, error].concat()).into_response()
        }
        Conduct::EndsAtOnce => ([("content-type", "text/event-stream")], opening).into_response(),
        Conduct::Empty => ([("content-type", "text/event-stream")], "").into_response(),
        Conduct::Answers(tokens) => {
            let usage = json!({ "prompt_tokens": 7, "completion_tokens": tokens });
            let model = asked["model"].as_str().unwrap();
            if asked["stream"] == true {
                let end = json!([{ "index": 0, "delta": {}, "finish_reason": "stop" }]);
                let last = event(&json!({ "choices": end, "usage": usage }));
                let all = [opening, word(model), last, "data: [DONE]\n\n".to_owned()].concat();
                return ([("content-type", "text/event-stream")], all).into_response();
            }
            let message = json!({ "role": "assistant", "content": model });
            let choices = json!([{ "index": 0, "message": message, "finish_reason": "stop" }]);
            axum::Json(json!({ "choices": choices, "usage": usage })).into_response()
        }
    }
}

/// A server of this conduct, which may be changed.
async fn server(what: Conduct) -> (String, Asked, Arc<Mutex<Conduct>>) {
    let (asked, conducts) = (Asked::default(), Arc::new(Mutex::new(what)));
    let (count, now) = (Arc::clone(&asked), Arc::clone(&conducts));
    let answer = move |question: axum::Json<Value>| {
        count.fetch_add(1, Ordering::SeqCst);
        let response = conduct(*now.lock().unwrap(), &question);
        async move { response }
    };
    (serve(Router::new().route("/v1/chat/completions", route(answer))).await, asked, conducts)
}

fn chat(more: &str) -> String {
    format!(
        r#"{{"model":"script","max_tokens":50,"messages":[{{"role":"user","content":"Hi"}}]{more}}}"#
    )
}

async fn ask(world: &World, key: &str, body: &str) -> Reply {
    post(world.at(), "/v1/chat/completions", &[("Authorization", key)], body).await
}

/// Returns the cost of an answer of so many tokens here.
fn price(tokens: i64) -> i64 {
    7 * PRICES.0 + tokens * PRICES.1
}

/// A cloud before a server of this conduct and one that answers after it.
async fn pair(first: &str, more: &str) -> (World, String, Asked) {
    let (second, asked, _) = server(Conduct::Answers(9)).await;
    let list = format!(
        r#"[{{"name":"first","base_url":"{first}"{more}}},
            {{"name":"second","base_url":"{second}","upstream_ids":{{"script":"theirs"}}}}]"#
    );
    let (world, key) = funded_before(list).await;
    (world, key, asked)
}

#[tokio::test]
async fn whatever_the_first_does_the_second_answers_and_is_charged_once() {
    let conducts = [
        Conduct::Refuses(429),
        Conduct::Refuses(500),
        Conduct::Refuses(529),
        Conduct::Refuses(401),
        Conduct::Refuses(403),
        Conduct::Refuses(402),
        Conduct::Refuses(404),
        Conduct::BreaksAtOnce,
        Conduct::EndsAtOnce,
        Conduct::Fails,
        Conduct::Empty,
    ];
    for what in conducts {
        let (first, asked, _) = server(what).await;
        let (world, key, seconds) = pair(&first, "").await;
        let before = world.balance(&key).await;
        for (nth, more) in [r#","stream":true"#, r#","stream":false"#].into_iter().enumerate() {
            let reply = ask(&world, &key, &chat(more)).await;
            assert_eq!(reply.status, 200, "{what:?}: {reply:?}");
            assert!(reply.body.contains("theirs"), "{what:?}: {reply:?}");
            let times = i64::try_from(nth + 1).unwrap();
            assert_eq!(before - world.balance(&key).await, times * price(9), "{what:?}");
        }
        let reply = messages::ask(&world, &key, &messages::body(r#","stream":true"#)).await;
        assert!(reply.body.contains("theirs"), "{what:?}: {reply:?}");
        assert_eq!(before - world.balance(&key).await, 3 * price(9), "{what:?}");
        assert_eq!(world.held(&key).await, 0, "{what:?}");
        assert!(asked.load(Ordering::SeqCst) >= 1, "{what:?}");
        assert_eq!(seconds.load(Ordering::SeqCst), 3, "{what:?}");
    }
}

#[tokio::test]
async fn who_hangs_or_is_not_there_gives_way() {
    let (hanging, _, _) = server(Conduct::Hangs).await;
    for (first, more) in [(hanging.as_str(), r#","idle_seconds":1"#), ("http://127.0.0.1:9/v1", "")]
    {
        let (world, key, _) = pair(first, more).await;
        let before = world.balance(&key).await;
        let reply = ask(&world, &key, &chat(r#","stream":true"#)).await;
        assert!(reply.body.contains("theirs"), "{first}: {reply:?}");
        assert_eq!(before - world.balance(&key).await, price(9), "{first}");
    }
}

#[tokio::test]
async fn after_a_word_nobody_else_is_asked() {
    let gate = Arc::new(Semaphore::new(0));
    let heard = Arc::clone(&gate);
    let answer = move || {
        let gate = Arc::clone(&gate);
        let word = event(&json!({ "choices": [{ "index": 0, "delta": { "content": "Half" } }] }));
        let end = stream::once(async move {
            gate.acquire().await.unwrap().forget();
            Err(std::io::Error::other("broken"))
        });
        let body = Body::from_stream(stream::iter([Ok(word)]).chain(end));
        async move { ([("content-type", "text/event-stream")], body) }
    };
    let first = serve(Router::new().route("/v1/chat/completions", route(answer))).await;
    let (world, key, seconds) = pair(&first, "").await;
    let before = world.balance(&key).await;
    let (line, headers) = ("POST /v1/chat/completions", [("Authorization", key.as_str())]);
    let asked = chat(r#","stream":true"#);
    let mut stream = crate::world::open(world.at(), line, &headers, &asked).await;
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains("Half") {
        assert!(stream.read_buf(&mut read).await.unwrap() > 0);
    }
    heard.add_permits(1);
    stream.read_to_end(&mut read).await.unwrap();
    let read = String::from_utf8(read).unwrap();
    assert!(!read.contains("[DONE]") && !read.contains("theirs"), "{read}");
    assert!(read.contains(r#"data: {"error":{"message":"the model did not answer""#), "{read}");
    crate::world::until("nothing is held", async || world.held(&key).await == 0).await;
    assert_eq!(seconds.load(Ordering::SeqCst), 0);
    assert_eq!((world.balance(&key).await, world.held(&key).await), (before, 0));
}

#[tokio::test]
async fn what_the_client_can_mend_is_told_by_the_first() {
    let (first, _, _) = server(Conduct::Refuses(400)).await;
    let (world, key, seconds) = pair(&first, "").await;
    assert_eq!(ask(&world, &key, &chat("")).await.status, 400);
    assert_eq!(seconds.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn one_that_fails_rests_and_is_tried_again() {
    let (first, asked, conducts) = server(Conduct::Refuses(500)).await;
    let (world, key, _) = pair(&first, "").await;
    let firsts = async |world: &World, times: usize| {
        for _ in 0..times {
            assert_eq!(ask(world, &key, &chat("")).await.status, 200);
        }
        asked.load(Ordering::SeqCst)
    };
    assert_eq!(firsts(&world, 6).await, 3, "it rests after three failures");
    world.clock.step(Span::from_secs(30));
    assert_eq!(firsts(&world, 3).await, 4, "one question tries it");
    *conducts.lock().unwrap() = Conduct::Answers(5);
    world.clock.step(Span::from_secs(30));
    assert_eq!(firsts(&world, 3).await, 7, "it works again");
}

#[tokio::test]
async fn where_all_fail_the_client_is_told_when_to_ask_again() {
    let (busy, _, _) = server(Conduct::Refuses(429)).await;
    let (down, _, _) = server(Conduct::Refuses(500)).await;
    let list = format!(r#"[{{"base_url":"{busy}"}},{{"base_url":"{down}"}}]"#);
    let (world, key) = funded_before(list).await;
    let before = world.balance(&key).await;
    let reply = ask(&world, &key, &chat("")).await;
    assert_eq!((reply.status, reply.header("retry-after")), (429, Some("20")), "{reply:?}");
    assert_eq!((world.balance(&key).await, world.held(&key).await), (before, 0));
}

#[tokio::test]
async fn a_refused_key_gives_way_to_the_next_of_the_same_server() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&seen);
    let answer = move |headers: HeaderMap, question: axum::Json<Value>| {
        let key = headers["authorization"].to_str().unwrap().to_owned();
        noted.lock().unwrap().push(key.clone());
        let what = match key.as_str() {
            "Bearer one" => Conduct::Refuses(401),
            "Bearer two" => Conduct::Refuses(429),
            _ => Conduct::Answers(9),
        };
        let response = conduct(what, &question);
        async move { response }
    };
    let url = serve(Router::new().route("/v1/chat/completions", route(answer))).await;
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<String> = ["one", "two", "three"]
        .into_iter()
        .map(|key| {
            use std::os::unix::fs::PermissionsExt as _;
            let path = folder.path().join(key);
            std::fs::write(&path, format!("{key}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            format!("\"{}\"", path.display())
        })
        .collect();
    let upstream = format!(r#"{{"base_url":"{url}","key_files":[{}]}}"#, files.join(","));
    let (world, key) = funded_before(upstream).await;
    let before = world.balance(&key).await;
    for _ in 0..2 {
        assert_eq!(ask(&world, &key, &chat("")).await.status, 200);
    }
    assert_eq!(
        *seen.lock().unwrap(),
        ["one", "two", "three", "three"].map(|it| format!("Bearer {it}"))
    );
    world.clock.step(Span::from_secs(20));
    assert_eq!(ask(&world, &key, &chat("")).await.status, 200);
    assert_eq!(seen.lock().unwrap()[4..], ["Bearer two", "Bearer three"], "it has rested");
    assert_eq!(before - world.balance(&key).await, 3 * price(9));
}

#[tokio::test]
async fn a_model_is_asked_where_it_is_served() {
    let (first, asked, _) = server(Conduct::Answers(5)).await;
    let (world, key, _) = pair(&first, r#","models":[]"#).await;
    assert!(ask(&world, &key, &chat("")).await.body.contains("theirs"));
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_key_has_so_many_calls_at_once_and_in_a_minute() {
    let (url, _, conducts) = server(Conduct::Hangs).await;
    let limits = r#"},"call_limits":{"at_once_per_key":2,"per_minute_per_key":4"#;
    let (world, key) = funded_before(format!(r#"{{"base_url":"{url}"{limits}}}"#)).await;
    let headers = [("Authorization", key.as_str())];
    let (line, asked) = ("POST /v1/chat/completions", chat(r#","stream":true"#));
    let mut open = Vec::new();
    for nth in 1..=2 {
        open.push(crate::world::open(world.at(), line, &headers, &asked).await);
        let held = async || world.held(&key).await;
        crate::world::until("it is under way", async || held().await >= nth * 50 * PRICES.1).await;
    }
    let third = ask(&world, &key, &chat("")).await;
    assert_eq!((third.status, third.header("retry-after")), (429, Some("1")), "{third:?}");
    assert_eq!(third.json()["error"]["type"], "rate_limit_error");
    let third = messages::ask(&world, &key, &messages::body("")).await;
    assert_eq!((third.status, third.header("retry-after")), (429, Some("1")), "{third:?}");
    assert_eq!(third.json()["error"]["type"], "rate_limit_error");
    // Another key has its own.
    *conducts.lock().unwrap() = Conduct::Answers(5);
    let other = world.key(&crate::world::Wallet::new(1)).await;
    for nth in 1..=5 {
        let reply = ask(&world, &other, &chat("")).await;
        let wanted = if nth <= 4 { (200, None) } else { (429, Some("15")) };
        assert_eq!((reply.status, reply.header("retry-after")), wanted, "{nth}: {reply:?}");
    }
    world.clock.step(Span::from_secs(15));
    assert_eq!(ask(&world, &other, &chat("")).await.status, 200);
}

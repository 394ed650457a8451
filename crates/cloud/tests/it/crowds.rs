//! Hundreds of calls at once, of which some fail, some are repeated and some are given up: what is
//! set aside is given back, nobody owes anything, and what was answered was charged once.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use automaton_core::entropy::Entropy as _;
use automaton_testkit::entropy::SeededEntropy;
use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post as route;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::chat::{PRICES, serve};
use crate::messages::event;
use crate::world::{Wallet, World, open, post};

/// Calls of one crowd.
const CALLS: u64 = 240;
/// Tokens of each answer.
const TOKENS: (i64, i64) = (7, 9);

/// Returns a server's answer to a question that names it.
fn answer(what: char, asked: &Value, answered: &AtomicI64) -> Response {
    let refuse = |status| (StatusCode::from_u16(status).unwrap(), "{}").into_response();
    match what {
        'b' => return refuse(429),
        'd' => return refuse(500),
        'k' => return refuse(401),
        'm' => return refuse(400),
        _ => {}
    }
    let opening = event(&json!({ "choices": [{ "index": 0, "delta": { "role": "assistant" } }] }));
    let is_stream = asked["stream"] == true;
    if what == 'h' && is_stream {
        return ([("content-type", "text/event-stream")], opening).into_response();
    }
    answered.fetch_add(1, Ordering::SeqCst);
    let usage = json!({ "prompt_tokens": TOKENS.0, "completion_tokens": TOKENS.1 });
    let choice =
        |name: &str| json!([{ "index": 0, name: { "content": "x" }, "finish_reason": "stop" }]);
    if is_stream {
        let last = event(&json!({ "choices": choice("delta"), "usage": usage }));
        let all = [opening, last, "data: [DONE]\n\n".to_owned()].concat();
        return ([("content-type", "text/event-stream")], all).into_response();
    }
    axum::Json(json!({ "choices": choice("message"), "usage": usage })).into_response()
}

/// A server that does what the letter at this place of a question says.
async fn server(place: usize, answered: Arc<AtomicI64>) -> String {
    let answer = move |asked: axum::Json<Value>| {
        let text = asked["messages"][0]["content"].as_str().unwrap();
        let response = answer(text.chars().nth(place).unwrap(), &asked, &answered);
        async move { response }
    };
    serve(Router::new().route("/v1/chat/completions", route(answer))).await
}

/// One call of a crowd.
struct Caller {
    path: &'static str,
    key: usize,
    body: String,
    name: String,
    hangs_up: bool,
}

fn crowd(seed: u64) -> Vec<Caller> {
    let dice = SeededEntropy::new(seed);
    let of = |kinds: &str| {
        let at = usize::try_from(dice.below(u32::try_from(kinds.len()).unwrap())).unwrap();
        kinds.chars().nth(at).unwrap()
    };
    let call = |nth: u64| {
        let text: String = [of("ooobdkmh"), of("oooodh")].into_iter().collect();
        let stream = dice.below(2) == 0;
        let is_messages = dice.below(3) == 0;
        // The last one's calls are so large that not all can be set aside for.
        let key = usize::try_from(dice.below(3)).unwrap();
        let most = match (is_messages, key) {
            (false, 2) => r#""n":8,"max_tokens":1000"#,
            (true, 2) => r#""max_tokens":1000"#,
            _ => r#""max_tokens":20"#,
        };
        let body = json!([{ "role": "user", "content": text }]);
        Caller {
            path: if is_messages { "/v1/messages" } else { "/v1/chat/completions" },
            key,
            body: format!(r#"{{"model":"script","stream":{stream},{most},"messages":{body}}}"#),
            name: format!("call {nth}"),
            hangs_up: dice.below(4) == 0,
        }
    };
    let mut calls: Vec<Caller> = (0..CALLS).map(call).collect();
    // Some are sent again while they are under way.
    for nth in (0..calls.len()).step_by(5) {
        let Caller { path, key, body, name, .. } = &calls[nth];
        let (path, key, body, name) = (*path, *key, body.clone(), name.clone());
        calls.push(Caller { path, key, body, name, hangs_up: false });
    }
    calls
}

async fn send(world: &World, keys: &[String], call: &Caller) {
    let key = keys[call.key].as_str();
    let headers = [("Authorization", key), ("Idempotency-Key", call.name.as_str())];
    if call.hangs_up {
        let line = format!("POST {}", call.path);
        drop(open(world.at(), &line, &headers, &call.body).await);
        return;
    }
    let reply = post(world.at(), call.path, &headers, &call.body).await;
    assert!([200, 400, 402, 429, 502].contains(&reply.status), "{reply:?}");
}

#[tokio::test]
async fn a_crowd_leaves_nothing_set_aside_and_pays_for_each_answer_once() {
    for seed in 1..=2 {
        let answered = Arc::new(AtomicI64::new(0));
        let first = server(0, Arc::clone(&answered)).await;
        let second = server(1, Arc::clone(&answered)).await;
        let limits = r#","call_limits":{"at_once":1000,"at_once_per_key":1000"#;
        let list = format!(r#"[{{"base_url":"{first}"}},{{"base_url":"{second}"}}]{limits}}}"#);
        let world = World::with(list, None).await;
        let (mut keys, mut before) = (Vec::new(), Vec::new());
        for nth in 1..=3 {
            let wallet = Wallet::new(nth);
            let key = world.key(&wallet).await;
            world.give(&wallet, 20);
            assert_eq!(world.pay(&wallet, wallet.authorize(5, nth)).await.status, 200);
            before.push(world.balance(&key).await);
            keys.push(key);
        }
        let calls = crowd(seed);
        join_all(calls.iter().map(|call| send(&world, &keys, call))).await;
        let mut paid = 0;
        for (key, before) in keys.iter().zip(&before) {
            crate::world::until("nothing is set aside", async || world.held(key).await == 0).await;
            let after = world.balance(key).await;
            assert!((0..=*before).contains(&after), "{after} of {before}");
            paid += before - after;
        }
        let price = TOKENS.0 * PRICES.0 + TOKENS.1 * PRICES.1;
        let answered = answered.load(Ordering::SeqCst);
        assert!(answered > 50, "{answered}");
        assert_eq!(paid, answered * price, "of seed {seed}");
        // What was killed has its books checked when it starts.
        let world = world.crash().await;
        for key in &keys {
            assert_eq!(world.held(key).await, 0);
        }
    }
}

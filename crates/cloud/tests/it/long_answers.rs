//! Answers that are long: honest ones come to their end, and nobody has one for nothing.

use axum::Router;
use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse as _;
use axum::routing::post as route;
use futures_util::stream;
use serde_json::{Value, json};

use crate::chat::{PRICES, cost, funded, serve};
use crate::world::{Reply, World, get, post};

/// Words of one piece.
const WORD: &str = "tok ";

fn piece(delta: &Value, usage: Option<&Value>) -> String {
    let choices = if usage.is_some() { json!([]) } else { json!([{ "index": 0, "delta": delta }]) };
    let piece = json!({
        "id": "chatcmpl-0123456789012345678901234567890", "object": "chat.completion.chunk",
        "created": 1_700_000_000, "model": "m", "choices": choices, "usage": usage,
    });
    format!("data: {piece}\n\n")
}

/// An upstream that streams so many pieces, each with this beside its word.
async fn talkative(pieces: usize, beside: fn(usize) -> Value) -> String {
    let answer = move || async move {
        let words = (0..pieces).map(move |nth| {
            let mut delta = json!({ "content": WORD });
            delta.as_object_mut().unwrap().extend(beside(nth).as_object().cloned().unwrap());
            piece(&delta, None)
        });
        let usage = json!({ "prompt_tokens": 10, "completion_tokens": 1000, "total_tokens": 1010 });
        let end = [piece(&json!({}), Some(&usage)), "data: [DONE]\n\n".to_owned()];
        let all = words.chain(end).map(Ok::<_, std::convert::Infallible>);
        ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(stream::iter(all)))
            .into_response()
    };
    serve(Router::new().route("/v1/chat/completions", route(answer))).await
}

async fn ask(world: &World, key: &str, more: &str) -> Reply {
    let body =
        format!(r#"{{"model":"script","messages":[{{"role":"user","content":"x"}}]{more}}}"#);
    let headers = [("Authorization", key), ("Content-Type", "application/json")];
    post(world.at(), "/v1/chat/completions", &headers, &body).await
}

#[tokio::test]
async fn an_honest_answer_of_many_mebibytes_comes_to_its_end() {
    // Each piece has twelve kibibytes of probabilities: a thousand of them are eleven mebibytes.
    let wide = |nth: usize| json!({ "logprobs": "p".repeat(12_000), "nth": nth });
    let (world, key) = funded(&talkative(1000, wide).await).await;
    let before = world.balance(&key).await;
    let more = r#","stream":true,"max_tokens":1000,"logprobs":true,"top_logprobs":50"#;
    let reply = ask(&world, &key, more).await;
    assert_eq!(reply.body.matches(WORD).count(), 1000);
    assert!(reply.body.ends_with("data: [DONE]\n\n"));
    let told = json!({ "prompt_tokens": 10, "completion_tokens": 1000 });
    assert_eq!(before - world.balance(&key).await, cost(&told));
}

#[tokio::test]
async fn what_was_passed_on_of_an_answer_that_passed_our_limit_is_charged() {
    // A server that sends more than what was asked for may have, words or thoughts.
    let thoughts = |nth: usize| match nth {
        0 => json!({}),
        _ => json!({ "content": null, "reasoning_content": "t".repeat(4000) }),
    };
    for beside in [(|_| json!({ "content": "w".repeat(4000) })) as fn(usize) -> Value, thoughts] {
        let (world, key) = funded(&talkative(2000, beside).await).await;
        let before = world.balance(&key).await;
        let reply = ask(&world, &key, r#","stream":true,"max_tokens":50"#).await;
        assert_eq!(reply.status, 200);
        assert!(reply.body.len() < 2 << 20 && !reply.body.contains("[DONE]"));
        assert_eq!(world.held(&key).await, 0);
        // All fifty tokens of the answer, and the prompt's bytes by three.
        let paid = before - world.balance(&key).await;
        assert!((50 * PRICES.1..50 * PRICES.1 + 60 * PRICES.0).contains(&paid), "{paid}");
        let authorized = [("Authorization", key.as_str())];
        let history = get(world.at(), "/v1/credits/history?limit=1", &authorized).await;
        let newest = history.json()["history"][0].clone();
        assert_eq!(
            (&newest["type"], newest["amount_microcents"].as_i64()),
            (&json!("charge"), Some(-paid))
        );
    }
}

#[tokio::test]
async fn a_document_too_large_to_be_held_is_refused_before_it_is_made() {
    let (world, key) = funded(&talkative(1, |_| json!({})).await).await;
    let before = world.balance(&key).await;
    // Eight answers of a thousand tokens, each with a hundred others.
    let more = r#","n":8,"max_tokens":1000,"logprobs":true,"top_logprobs":100"#;
    let refused = ask(&world, &key, more).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.body.contains("come only as a stream"), "{refused:?}");
    assert_eq!(world.balance(&key).await, before);
}

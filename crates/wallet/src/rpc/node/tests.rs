//! Accepted answers, repeated questions, and the texts of errors.

use automaton_core::error::{Classified as _, ErrorClass};
use serde_json::{Value, json};

use super::*;
use crate::test_node::{TestNode, reply};

async fn ask(node: &TestNode, retry: Retry) -> Result<Value, ChainError> {
    NodeClient::new(node.client(), node.url.clone()).ask(retry, "eth_call", [(); 0]).await
}

fn refusal(code: i64, message: &str) -> Value {
    json!({ "error": { "code": code, "message": message } })
}

#[tokio::test]
async fn a_busy_node_is_asked_again_whatever_its_status() {
    let good = reply(200, &json!({ "result": 7 }));
    for busy in [
        reply(200, &refusal(-32007, "50/second request limit reached")),
        reply(200, &refusal(-32016, "over rate limit")),
        reply(200, &json!({ "error": "slow down" })),
        reply(200, &json!({ "error": { "code": "RATE_LIMITED", "message": "no" } })),
        reply(429, &json!({})),
        reply(403, &refusal(-32005, "limit exceeded")),
        reply(503, &json!("down")),
        reply(200, &json!("Too many requests")),
    ] {
        for retry in [Retry::Question, Retry::WhenRefused] {
            let node = TestNode::start(vec![busy.clone(), busy.clone(), good.clone()]);
            assert_eq!(ask(&node, retry).await.unwrap(), json!(7), "{busy}");
            assert_eq!(node.asked().len(), 3, "{busy}");
        }
        let node = TestNode::start(vec![busy.clone(), good.clone()]);
        let error = ask(&node, Retry::Never).await.unwrap_err();
        assert!(matches!(error, ChainError::Busy { .. }), "{busy}: {error}");
    }
}

#[tokio::test]
async fn a_node_that_stays_busy_is_named_with_its_words() {
    let busy = reply(200, &refusal(-32007, "50/second request limit reached"));
    let node = TestNode::start(vec![busy; 4]);
    let error = ask(&node, Retry::Question).await.unwrap_err();
    let told = format!(
        "{} is too busy to answer eth_call: 50/second request limit reached (-32007)",
        redact::url(&node.url)
    );
    assert_eq!((error.to_string(), error.kind()), (told, ErrorClass::Transient));
    assert_eq!(node.asked().len(), 4);
}

#[tokio::test]
async fn a_refusal_is_told_and_not_asked_again() {
    for (refused, words) in [
        (refusal(-32000, "execution reverted"), "execution reverted (-32000)"),
        (refusal(3, "execution reverted: rate limit"), "execution reverted: rate limit (3)"),
        (json!({ "error": "no such block" }), "no such block"),
        (json!({ "error": { "code": "BAD" }, "result": null }), r#"{"code":"BAD"} (BAD)"#),
    ] {
        let node = TestNode::start(vec![reply(200, &refused)]);
        let error = ask(&node, Retry::Question).await.unwrap_err();
        assert!(error.to_string().ends_with(&format!("refused eth_call: {words}")), "{error}");
        assert_eq!(node.asked().len(), 1);
    }
}

#[tokio::test]
async fn null_is_an_answer_and_nothing_is_none() {
    let node = TestNode::start(vec![reply(200, &json!({ "result": null, "error": null }))]);
    assert_eq!(ask(&node, Retry::Never).await.unwrap(), Value::Null);
    let node = TestNode::start(vec![reply(200, &json!({ "id": 1 }))]);
    let error = ask(&node, Retry::Never).await.unwrap_err();
    assert!(error.to_string().ends_with("it has no result"), "{error}");
}

#[tokio::test]
async fn a_limit_that_is_hit_names_itself() {
    let long = reply(200, &json!({ "result": "x".repeat(17 << 20) }));
    let node = TestNode::start(vec![long]);
    let error = ask(&node, Retry::Never).await.unwrap_err();
    let told = format!(
        "the answer of {} to eth_call is larger than 16777216 bytes and is not read",
        redact::url(&node.url)
    );
    assert_eq!(error.to_string(), told);
    assert!(error.hint().unwrap().contains("--rpc"), "{:?}", error.hint());
}

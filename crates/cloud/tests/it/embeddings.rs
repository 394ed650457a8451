//! Vectors of texts in front of a scripted server.

use axum::routing::post as route;
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::chat::{funded, serve};
use crate::world::{Reply, World, post};

/// The price of a token of what is embedded.
pub(crate) const VECTOR_PRICE: i64 = 20;

/// A server that gives each text the same vector and counts two tokens a text; one that is `silent`
/// counts nothing, and one that is `broken` gives no vectors.
pub(crate) async fn embedding() -> String {
    let answer = async |Json(question): Json<Value>| {
        assert_eq!(question["model"], "small");
        let texts = question["input"].as_array().map_or(1, Vec::len);
        if question["input"] == "broken" {
            return Json(json!({ "data": null }));
        }
        // As OpenAI writes numbers in base 64: little-endian, four bytes each.
        // Many servers know no such form.
        let is_packed = question["encoding_format"] == "base64" && question["input"] != "plain";
        let vector = match is_packed {
            true => json!("AAAAPwAAgD8="),
            false => json!([0.5, 1.0]),
        };
        let row = |index| json!({ "object": "embedding", "index": index, "embedding": vector });
        let data: Vec<Value> = (0..texts).map(row).collect();
        let tokens = texts * 2;
        let usage = match question["input"] == "silent" {
            true => Value::Null,
            false => json!({ "prompt_tokens": tokens, "total_tokens": tokens }),
        };
        Json(json!({ "object": "list", "model": "small", "data": data, "usage": usage }))
    };
    serve(Router::new().route("/v1/embeddings", route(answer))).await
}

async fn embed(world: &World, key: &str, body: &Value) -> Reply {
    let headers = [("Authorization", key), ("Content-Type", "application/json")];
    post(world.at(), "/v1/embeddings", &headers, &body.to_string()).await
}

#[tokio::test]
async fn vectors_cost_what_the_upstream_counted_and_a_failure_nothing() {
    let (world, key) = funded(&embedding().await).await;
    let before = world.balance(&key).await;
    let reply = embed(&world, &key, &json!({"model": "vectors", "input": ["a", "b"]})).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let json = reply.json();
    assert_eq!((&json["model"], &json["usage"]["prompt_tokens"]), (&json!("vectors"), &json!(4)));
    assert_eq!(json["data"][1]["embedding"], json!([0.5, 1.0]));
    let after = world.balance(&key).await;
    assert_eq!(before - after, 4 * VECTOR_PRICE);
    // Where nobody counts, the cloud does, and says so.
    let reply = embed(&world, &key, &json!({"model": "vectors", "input": "silent"})).await;
    let counted = reply.json()["usage"]["prompt_tokens"].as_i64().unwrap();
    assert!(counted > 0 && reply.header("x-usage-estimated").is_some(), "{reply:?}");
    let spent = after - world.balance(&key).await;
    assert_eq!(spent, counted * VECTOR_PRICE);
    let broken = embed(&world, &key, &json!({"model": "vectors", "input": "broken"})).await;
    assert_eq!(broken.status, 502, "{broken:?}");
    assert_eq!(world.balance(&key).await, after - spent);
    assert_eq!(world.held(&key).await, 0);
}

#[tokio::test]
async fn vectors_come_in_the_form_that_was_asked_for_whatever_the_upstream_knows() {
    let (world, key) = funded(&embedding().await).await;
    let vector = async |more: Value| {
        let mut body = json!({ "model": "vectors" });
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        let reply = embed(&world, &key, &body).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()["data"][0]["embedding"].clone()
    };
    for input in ["plain", "packed"] {
        let packed = vector(json!({ "input": input, "encoding_format": "base64" })).await;
        assert_eq!(packed, "AAAAPwAAgD8=", "{input}");
        let numbers = vector(json!({ "input": input, "encoding_format": "float" })).await;
        assert_eq!(numbers, json!([0.5, 1.0]), "{input}");
        assert_eq!(vector(json!({ "input": input })).await, json!([0.5, 1.0]), "{input}");
    }
    let before = world.balance(&key).await;
    let body = json!({ "model": "vectors", "input": "a", "encoding_format": "hex" });
    let refused = embed(&world, &key, &body).await;
    assert_eq!((refused.status, world.balance(&key).await), (400, before), "{refused:?}");
}

#[tokio::test]
async fn a_model_is_for_talk_or_for_vectors() {
    let (world, key) = funded(&embedding().await).await;
    let before = world.balance(&key).await;
    let talker = embed(&world, &key, &json!({"model": "script", "input": "a"})).await;
    assert_eq!(talker.status, 400, "{talker:?}");
    let told = talker.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(told.contains("makes no embeddings"), "as OpenAI's clients read it: {told}");
    let headers = [("Authorization", key.as_str()), ("Content-Type", "application/json")];
    let body = r#"{"model":"vectors","messages":[{"role":"user","content":"Hello"}]}"#;
    let mute = post(world.at(), "/v1/chat/completions", &headers, body).await;
    assert!(mute.status == 400 && mute.json().to_string().contains("/v1/embeddings"), "{mute:?}");
    for bad in [json!({"model": "vectors"}), json!({"model": "vectors", "input": "a", "n": 2})] {
        assert_eq!(embed(&world, &key, &bad).await.status, 400, "{bad}");
    }
    assert_eq!(world.balance(&key).await, before);
}

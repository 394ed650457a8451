//! The metered models in the responses format of OpenAI, before servers of others.

use serde_json::{Value, json};

use crate::chat::{PRICES, funded};
use crate::messages::{calling, event, events, upstream};
use crate::world::{Reply, World, post};

pub(crate) fn cost(usage: &Value) -> i64 {
    let of = |name: &str| usage[name].as_i64().unwrap();
    of("input_tokens") * PRICES.0 + of("output_tokens") * PRICES.1
}

async fn ask(world: &World, key: &str, body: &Value) -> Reply {
    let bearer = format!("Bearer {key}");
    post(world.at(), "/v1/responses", &[("Authorization", &bearer)], &body.to_string()).await
}

#[tokio::test]
async fn a_conversation_with_calls_is_put_to_chat_completions_and_charged_exactly() {
    let (url, sent) = calling().await;
    let (world, key) = funded(&url).await;
    let before = world.balance(&key).await;
    let called = |id: &str, name: &str, arguments: &str| json!({ "type": "function_call", "call_id": id, "name": name, "arguments": arguments });
    let result = |id: &str, output: Value| json!({ "type": "function_call_output", "call_id": id, "output": output });
    let asked = json!({
        "model": "script", "max_output_tokens": 50, "instructions": "Rules.", "store": false,
        "metadata": { "a": "b" }, "reasoning": { "effort": "low" },
        "text": { "format": { "type": "json_schema", "name": "s", "schema": { "type": "object" } } },
        "tools": [{ "type": "function", "name": "weather", "strict": true,
            "parameters": { "type": "object" } }],
        "tool_choice": { "type": "function", "name": "weather" }, "parallel_tool_calls": false,
        "input": [
            { "role": "developer", "content": "More rules." },
            { "role": "user", "content": [{ "type": "input_text", "text": "Go" }] },
            { "type": "reasoning", "summary": [], "encrypted_content": "c2ln" },
            { "type": "message", "role": "assistant",
                "content": [{ "type": "output_text", "text": "Well." }] },
            called("c1", "weather", r#"{"city":"Oslo"}"#),
            called("c2", "weather", ""),
            result("c1", json!("Rain.")),
            result("c2", json!([{ "type": "input_text", "text": "Sun." }])),
        ],
    });
    let reply = ask(&world, &key, &asked).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let whole = reply.json();
    assert_eq!(
        (&whole["object"], &whole["status"], &whole["model"], &whole["metadata"]),
        (&json!("response"), &json!("completed"), &json!("script"), &json!({ "a": "b" }))
    );
    let output = whole["output"].as_array().unwrap();
    assert_eq!(output[0]["content"][0]["text"], "Let me look.");
    let calls: Vec<_> = output[1..].iter().map(|it| (&it["call_id"], &it["arguments"])).collect();
    let oslo = json!(r#"{"city":"Oslo"}"#);
    assert_eq!(calls, [(&json!("call_a"), &oslo), (&json!("call_b"), &json!("{}"))]);
    let usage = &whole["usage"];
    assert_eq!(usage["input_tokens_details"], json!({ "cached_tokens": 10 }));
    assert_eq!((&usage["input_tokens"], &usage["total_tokens"]), (&json!(30), &json!(42)));
    assert_eq!(before - world.balance(&key).await, cost(usage));
    let asked = sent.lock().unwrap()[0].1.clone();
    let call = |id: &str, arguments: &str| {
        let function = json!({ "name": "weather", "arguments": arguments });
        json!({ "id": id, "type": "function", "function": function })
    };
    let calls = [call("c1", r#"{"city":"Oslo"}"#), call("c2", "{}")];
    assert_eq!(
        asked["messages"],
        json!([
            { "role": "system", "content": "Rules.\n\nMore rules." },
            { "role": "user", "content": "Go" },
            { "role": "assistant", "content": "Well.", "tool_calls": calls },
            { "role": "tool", "tool_call_id": "c1", "content": "Rain." },
            { "role": "tool", "tool_call_id": "c2", "content": "Sun." },
        ])
    );
    assert_eq!(
        asked["tool_choice"],
        json!({ "type": "function", "function": { "name": "weather" } })
    );
    assert_eq!(asked["tools"][0]["function"]["strict"], true);
    let schema = json!({ "name": "s", "schema": { "type": "object" } });
    assert_eq!(asked["response_format"], json!({ "type": "json_schema", "json_schema": schema }));
    assert_eq!(
        (&asked["reasoning_effort"], &asked["parallel_tool_calls"], &asked["max_tokens"]),
        (&json!("low"), &json!(false), &json!(50))
    );
    assert!(asked.get("metadata").is_none() && asked.get("instructions").is_none(), "{asked}");
}

#[tokio::test]
async fn a_stream_says_what_is_charged_at_its_end_alone() {
    let (url, _) = calling().await;
    let (world, key) = funded(&url).await;
    let before = world.balance(&key).await;
    let asked = json!({ "model": "script", "input": "Go", "stream": true });
    let reply = ask(&world, &key, &asked).await;
    let events = events(&reply);
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    let text = ["output_text.delta", "output_text.delta", "output_text.done", "content_part.done"];
    let call = "function_call_arguments";
    let mut wanted = vec!["created", "in_progress", "output_item.added", "content_part.added"];
    wanted.extend(text);
    wanted.extend(["output_item.done", "output_item.added"]);
    let (more, done) = (format!("{call}.delta"), format!("{call}.done"));
    wanted.extend([&*more, &*more, &*done, "output_item.done", "output_item.added"]);
    // A call without arguments has an empty object.
    wanted.extend([&*more, &*done, "output_item.done", "completed"]);
    let wanted: Vec<String> = wanted.iter().map(|name| format!("response.{name}")).collect();
    assert_eq!(names, wanted);
    for (place, (name, data)) in events.iter().enumerate() {
        assert_eq!((&data["type"], &data["sequence_number"]), (&json!(name), &json!(place)));
    }
    assert_eq!(events[0].1["response"]["usage"], Value::Null);
    let usage = &events[events.len() - 1].1["response"]["usage"];
    assert_eq!(before - world.balance(&key).await, cost(usage));
}

#[tokio::test]
async fn an_answer_that_is_cut_off_says_so_and_which_item_is() {
    let message = json!({ "role": "assistant", "content": "Let" });
    let choices = json!([{ "index": 0, "message": message, "finish_reason": "length" }]);
    let whole =
        json!({ "choices": choices, "usage": { "prompt_tokens": 3, "completion_tokens": 1 } });
    let (url, _) = upstream("/v1/chat/completions", whole, Vec::new()).await;
    let (world, key) = funded(&url).await;
    let reply = ask(&world, &key, &json!({ "model": "script", "input": "Go" })).await.json();
    assert_eq!(reply["status"], "incomplete");
    assert_eq!(reply["incomplete_details"], json!({ "reason": "max_output_tokens" }));
    assert_eq!(reply["output"][0]["status"], "incomplete");
}

#[tokio::test]
async fn a_stream_that_breaks_ends_with_an_error_and_costs_nothing() {
    let piece = json!({ "choices": [{ "index": 0, "delta": { "content": "Well" } }] });
    let error = json!({ "error": { "message": "overloaded" } });
    let broken = vec![event(&piece), event(&error)];
    let (url, _) = upstream("/v1/chat/completions", json!({}), broken).await;
    let (world, key) = funded(&url).await;
    let before = world.balance(&key).await;
    let asked = json!({ "model": "script", "input": "Go", "stream": true });
    let events = events(&ask(&world, &key, &asked).await);
    let (name, data) = events.last().unwrap();
    assert_eq!(
        (name.as_str(), &data["error"]["type"]),
        ("error", &json!("server_error")),
        "{data}"
    );
    assert_eq!(data["sequence_number"], events.len() - 1);
    assert_eq!((world.balance(&key).await, world.held(&key).await), (before, 0));
}

#[tokio::test]
async fn what_cannot_be_said_to_a_model_is_refused_in_the_form_of_openai() {
    let (world, key) = funded("http://127.0.0.1:9/v1").await;
    let image = json!([{ "type": "input_image", "image_url": "data:image/png;base64,aa" }]);
    for (asked, named) in [
        (json!({ "input": [{ "role": "user", "content": image }] }), "input_image"),
        (
            json!({ "input": [{ "role": "user", "content": [{ "type": "input_file" }] }] }),
            "input_file",
        ),
        (json!({ "input": [{ "type": "item_reference", "id": "i" }] }), "item_reference"),
        (json!({ "input": [{ "type": "function_call_output", "output": "x" }] }), "call_id"),
        (json!({ "input": "Go", "max_output_tokens": 0 }), "1 token"),
        (json!({ "input": "Go", "store": true }), "store"),
        (json!({ "input": "Go", "tools": [{ "type": "function" }] }), "has no name"),
        (json!({ "input": "Go", "tools": [{ "type": "custom", "name": "x" }] }), "custom"),
    ] {
        let mut body = asked.clone();
        body["model"] = "script".into();
        let reply = ask(&world, &key, &body).await;
        assert_eq!(reply.status, 400, "{asked}: {reply:?}");
        let error = &reply.json()["error"];
        assert_eq!(error["type"], "invalid_request_error", "{asked}");
        assert!(error["message"].as_str().unwrap().contains(named), "{asked}: {error}");
    }
    assert_eq!(world.held(&key).await, 0);
}

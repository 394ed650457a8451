//! The metered models in Anthropic's format, before servers of either.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post as route;
use serde_json::{Value, json};

use crate::chat::{PRICES, funded, funded_before, script, serve};
use crate::world::{Reply, Wallet, World, get, post};

/// The headers and the body that an upstream was sent.
pub(crate) type Sent = Arc<Mutex<Vec<(HeaderMap, Value)>>>;

/// An upstream that answers at this path: what is asked for as a stream with these events, and
/// else with this document.
pub(crate) async fn upstream(
    path: &'static str,
    whole: Value,
    events: Vec<String>,
) -> (String, Sent) {
    let sent = Sent::default();
    let seen = Arc::clone(&sent);
    let answer = move |headers: HeaderMap, body: String| {
        let asked: Value = serde_json::from_str(&body).unwrap();
        let (kind, said) = match asked["stream"].as_bool() {
            Some(true) => ("text/event-stream", events.concat()),
            _ => ("application/json", whole.to_string()),
        };
        seen.lock().unwrap().push((headers, asked));
        async move { (StatusCode::OK, [("content-type", kind)], said) }
    };
    (serve(Router::new().route(path, route(answer))).await, sent)
}

pub(crate) fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// An upstream of chat completions that calls two tools after a word.
pub(crate) async fn calling() -> (String, Sent) {
    // The first piece of each says more than the others.
    let more =
        |n: usize, arguments: &str| json!({ "index": n, "function": { "arguments": arguments } });
    let call = |n: usize, id: &str, name: &str, arguments: &str| {
        let function = json!({ "name": name, "arguments": arguments });
        json!({ "index": n, "id": id, "type": "function", "function": function })
    };
    let calls = [call(0, "call_a", "weather", r#"{"city":"Oslo"}"#), call(1, "call_b", "time", "")];
    let usage = json!({ "prompt_tokens": 30, "completion_tokens": 12,
        "prompt_tokens_details": { "cached_tokens": 10 } });
    let message = json!({ "role": "assistant", "content": "Let me look.", "tool_calls": calls });
    let choices = json!([{ "index": 0, "message": message, "finish_reason": "tool_calls" }]);
    let piece = |delta: Value| event(&json!({ "choices": [{ "index": 0, "delta": delta }] }));
    let called = |call: Value| piece(json!({ "tool_calls": [call] }));
    let end = json!([{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }]);
    let events = vec![
        piece(json!({ "role": "assistant", "content": "" })),
        piece(json!({ "content": "Let me " })),
        piece(json!({ "content": "look." })),
        called(call(0, "call_a", "weather", "")),
        called(more(0, r#"{"city":"#)),
        called(call(1, "call_b", "time", "")),
        called(more(0, r#""Oslo"}"#)),
        event(&json!({ "choices": end })),
        event(&json!({ "choices": [], "usage": usage })),
        "data: [DONE]\n\n".to_owned(),
    ];
    upstream("/v1/chat/completions", json!({ "choices": choices, "usage": usage }), events).await
}

/// An upstream of chat completions that calls a tool until it has its result, and answers in
/// JSON where a form is asked for.
pub(crate) async fn running() -> (String, Sent) {
    let sent = Sent::default();
    let seen = Arc::clone(&sent);
    let answer = move |headers: HeaderMap, body: String| {
        let asked: Value = serde_json::from_str(&body).unwrap();
        let has_result =
            asked["messages"].as_array().unwrap().iter().any(|it| it["role"] == "tool");
        let call = json!({ "id": "call_a", "type": "function",
            "function": { "name": "weather", "arguments": r#"{"city":"Oslo"}"# } });
        let says = |text: &str| (json!({ "role": "assistant", "content": text }), "stop");
        let (message, end) = match (asked["response_format"]["type"] == "json_schema", has_result) {
            (true, _) => says(r#"{"name":"Oslo","people":700000}"#),
            (false, true) => says("It rains in Oslo."),
            (false, false) => (
                json!({ "role": "assistant", "content": null, "tool_calls": [call] }),
                "tool_calls",
            ),
        };
        let said = json!({ "choices": [{ "index": 0, "message": message, "finish_reason": end }],
            "usage": { "prompt_tokens": 30, "completion_tokens": 12 } });
        seen.lock().unwrap().push((headers, asked));
        async move { (StatusCode::OK, [("content-type", "application/json")], said.to_string()) }
    };
    (serve(Router::new().route("/v1/chat/completions", route(answer))).await, sent)
}

/// An upstream of Anthropic's format that thinks and then speaks.
pub(crate) async fn thinking() -> (String, Sent) {
    let usage = json!({ "input_tokens": 20, "cache_read_input_tokens": 5,
        "cache_creation_input_tokens": 3, "output_tokens": 7, "service_tier": "standard" });
    let thought = json!({ "type": "thinking", "thinking": "Hm.", "signature": "c2ln" });
    let whole = json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "theirs",
        "content": [thought, { "type": "text", "text": "I am here." }],
        "stop_reason": "end_turn", "stop_sequence": null, "usage": usage });
    let start = json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "theirs",
        "content": [], "stop_reason": null, "usage": usage });
    let block = |index: usize, block: Value| {
        event(&json!({ "type": "content_block_start", "index": index, "content_block": block }))
    };
    let delta = |index: usize, delta: Value| {
        event(&json!({ "type": "content_block_delta", "index": index, "delta": delta }))
    };
    let stop = |index: usize| event(&json!({ "type": "content_block_stop", "index": index }));
    let events = vec![
        event(&json!({ "type": "message_start", "message": start })),
        block(0, json!({ "type": "thinking", "thinking": "" })),
        event(&json!({ "type": "ping" })),
        delta(0, json!({ "type": "thinking_delta", "thinking": "Hm." })),
        delta(0, json!({ "type": "signature_delta", "signature": "c2ln" })),
        stop(0),
        block(1, json!({ "type": "text", "text": "" })),
        delta(1, json!({ "type": "text_delta", "text": "I am here." })),
        stop(1),
        event(&json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" },
            "usage": { "output_tokens": 7 } })),
        event(&json!({ "type": "message_stop" })),
    ];
    upstream("/v1/messages", whole, events).await
}

/// A cloud before a server of Anthropic's format, which calls the model otherwise.
pub(crate) async fn funded_before_thinking() -> (World, String, Sent) {
    let (url, sent) = thinking().await;
    let format = r#""format":"anthropic_messages","upstream_ids":{"script":"theirs"}"#;
    let (world, key) = funded_before(format!(r#"{{"base_url":"{url}",{format}}}"#)).await;
    (world, key, sent)
}

pub(crate) fn body(more: &str) -> String {
    format!(
        r#"{{"model":"script","max_tokens":50,"messages":[{{"role":"user","content":"Hello"}}]{more}}}"#
    )
}

pub(crate) async fn ask(world: &World, key: &str, body: &str) -> Reply {
    let headers = [("x-api-key", key), ("Content-Type", "application/json")];
    post(world.at(), "/v1/messages", &headers, body).await
}

/// Returns the cost of a usage in the world, where a cache makes no difference.
pub(crate) fn cost(usage: &Value) -> i64 {
    let of = |name: &str| usage[name].as_i64().unwrap_or(0);
    let prompt = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
    prompt.into_iter().map(of).sum::<i64>() * PRICES.0 + of("output_tokens") * PRICES.1
}

/// The events of a stream, each with its name.
pub(crate) fn events(reply: &Reply) -> Vec<(String, Value)> {
    let frames = reply.body.split("\n\n").filter(|frame| frame.starts_with("event: "));
    let event = |frame: &str| {
        let (name, data) = frame.strip_prefix("event: ")?.split_once("\ndata: ")?;
        Some((name.to_owned(), serde_json::from_str(data).ok()?))
    };
    frames.map(|frame| event(frame).unwrap_or_else(|| panic!("{frame}"))).collect()
}

#[tokio::test]
async fn a_tool_is_called_over_chat_completions_and_charged_exactly() {
    let (url, sent) = calling().await;
    let (world, key) = funded(&url).await;
    let before = world.balance(&key).await;
    let tools = r#","system":[{"type":"text","text":"Rules.","cache_control":{"type":"ephemeral"}}],
        "tools":[{"name":"weather","description":"d","input_schema":{"type":"object"}},
        {"name":"time","input_schema":{"type":"object"}}],
        "tool_choice":{"type":"any","disable_parallel_tool_use":true},"stop_sequences":["END"]"#;
    let reply = ask(&world, &key, &body(tools)).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let whole = reply.json();
    assert_eq!(
        (&whole["type"], &whole["role"], &whole["model"], &whole["stop_reason"]),
        (&json!("message"), &json!("assistant"), &json!("script"), &json!("tool_use"))
    );
    assert_eq!(
        whole["content"],
        json!([
            { "type": "text", "text": "Let me look." },
            { "type": "tool_use", "id": "call_a", "name": "weather", "input": { "city": "Oslo" } },
            { "type": "tool_use", "id": "call_b", "name": "time", "input": {} },
        ])
    );
    let usage = &whole["usage"];
    assert_eq!(
        (&usage["input_tokens"], &usage["cache_read_input_tokens"], &usage["output_tokens"]),
        (&json!(20), &json!(10), &json!(12))
    );
    assert_eq!(before - world.balance(&key).await, cost(usage));
    let asked = sent.lock().unwrap()[0].1.clone();
    assert_eq!(asked["messages"][0], json!({ "role": "system", "content": "Rules." }));
    assert_eq!(
        (&asked["tool_choice"], &asked["parallel_tool_calls"], &asked["stop"]),
        (&json!("required"), &json!(false), &json!(["END"]))
    );
    assert_eq!(asked["tools"][0]["function"]["parameters"], json!({ "type": "object" }));
}

#[tokio::test]
async fn results_of_tools_and_pictures_become_messages_of_their_own() {
    let (url, sent) = calling().await;
    let (world, key) = funded(&url).await;
    let asked = |last: &str| {
        format!(
            r#"{{"model":"script","max_tokens":50,"messages":[{{"role":"user","content":"Go"}},
            {{"role":"assistant","content":[{{"type":"thinking","thinking":"x","signature":"y"}},
              {{"type":"text","text":"Well."}},
              {{"type":"tool_use","id":"a","name":"weather","input":{{"z":1,"b":2}}}}]}},
            {{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a","is_error":true,
              "content":[{{"type":"text","text":"none"}}]}},{{"type":"text","text":"And now?"}}{last}]}}]}}"#
        )
    };
    assert_eq!(ask(&world, &key, &asked("")).await.status, 200);
    let body = sent.lock().unwrap()[0].1.clone();
    let call = json!({ "id": "a", "type": "function",
        "function": { "name": "weather", "arguments": r#"{"z":1,"b":2}"# } });
    assert_eq!(
        body["messages"],
        json!([
            { "role": "user", "content": "Go" },
            { "role": "assistant", "content": "Well.", "tool_calls": [call] },
            { "role": "tool", "content": "Error: none", "tool_call_id": "a" },
            { "role": "user", "content": "And now?" },
        ])
    );
    // What this model cannot be told is refused by name, and costs nothing.
    let before = world.balance(&key).await;
    let picture =
        r#",{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aa"}}"#;
    let document = r#",{"type":"document","source":{"type":"text","data":"x"}}"#;
    for (last, words) in [(picture, "sees no pictures"), (document, "block 'document'")] {
        let reply = ask(&world, &key, &asked(last)).await;
        let error = reply.json()["error"].clone();
        assert_eq!((reply.status, &error["type"]), (400, &json!("invalid_request_error")));
        assert!(error["message"].as_str().unwrap().contains(words), "{error}");
    }
    assert_eq!((world.balance(&key).await, world.held(&key).await), (before, 0));
}

#[tokio::test]
async fn a_stream_has_anthropics_events_and_ends_with_what_was_charged() {
    let (url, _) = calling().await;
    let (world, key) = funded(&url).await;
    let before = world.balance(&key).await;
    let reply = ask(&world, &key, &body(r#","stream":true"#)).await;
    assert_eq!(reply.header("content-type"), Some("text/event-stream"));
    let events = events(&reply);
    assert!(events.iter().all(|(name, data)| data["type"] == *name), "{}", reply.body);
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    let block = |deltas: usize| {
        let mut names = vec!["content_block_delta"; deltas];
        names.insert(0, "content_block_start");
        names.push("content_block_stop");
        names
    };
    let wanted = [vec!["message_start"], block(2), block(2), block(1)].concat();
    assert_eq!(names, [wanted, vec!["message_delta", "message_stop"]].concat());
    let joined = |index: u64, field: &str| -> String {
        let of = events.iter().filter(|(_, data)| data["index"] == index);
        of.filter_map(|(_, data)| data["delta"][field].as_str()).collect()
    };
    assert_eq!(joined(0, "text"), "Let me look.");
    assert_eq!(joined(1, "partial_json"), r#"{"city":"Oslo"}"#);
    let last = &events[events.len() - 2].1;
    assert_eq!(last["delta"]["stop_reason"], "tool_use");
    assert_eq!(last["usage"]["cache_read_input_tokens"], 10);
    assert_eq!(before - world.balance(&key).await, cost(&last["usage"]));
}

#[tokio::test]
async fn between_two_that_speak_anthropics_format_nothing_is_lost() {
    let (world, key, sent) = funded_before_thinking().await;
    let before = world.balance(&key).await;
    let more = r#","thinking":{"type":"enabled","budget_tokens":1024},"top_k":3,
        "system":[{"type":"text","text":"R","cache_control":{"type":"ephemeral"}}]"#;
    let betas = "interleaved-thinking-2025-05-14,context-1m-2025-08-07";
    let headers = [("x-api-key", key.as_str()), ("anthropic-beta", betas)];
    let reply = post(world.at(), "/v1/messages", &headers, &body(more)).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let whole = reply.json();
    assert_eq!((&whole["model"], &whole["id"]), (&json!("script"), &json!("msg_1")));
    assert_eq!(whole["content"][0]["signature"], "c2ln");
    let usage = &whole["usage"];
    assert_eq!(
        *usage,
        json!({ "input_tokens": 20, "cache_read_input_tokens": 5, "service_tier": "standard",
            "cache_creation_input_tokens": 3, "output_tokens": 7 })
    );
    assert_eq!(before - world.balance(&key).await, cost(usage));
    let (told, asked) = sent.lock().unwrap()[0].clone();
    assert_eq!(told["anthropic-beta"], "interleaved-thinking-2025-05-14");
    let mut wanted: Value = serde_json::from_str(&body(more)).unwrap();
    wanted["model"] = "theirs".into();
    assert_eq!(asked, wanted);

    let before = world.balance(&key).await;
    let reply = ask(&world, &key, &body(r#","stream":true"#)).await;
    let events = events(&reply);
    assert_eq!(events[0].1["message"]["model"], "script");
    assert_eq!(events[0].1["message"]["usage"]["input_tokens"], 20);
    assert!(events.iter().any(|(_, data)| data["delta"]["signature"] == "c2ln"), "{events:?}");
    assert!(events.iter().all(|(name, _)| name != "ping"), "{events:?}");
    let last = &events[events.len() - 2].1;
    assert_eq!(
        (&last["delta"]["stop_reason"], &last["usage"]["input_tokens"]),
        (&json!("end_turn"), &json!(20))
    );
    assert_eq!(events.last().unwrap().0, "message_stop");
    assert_eq!(before - world.balance(&key).await, cost(&last["usage"]));
}

#[tokio::test]
async fn a_count_that_cannot_be_is_told_as_an_estimate() {
    for usage in [json!(null), json!({ "input_tokens": 9000, "output_tokens": 3 })] {
        let whole = json!({ "type": "message", "role": "assistant", "model": "x", "id": "m",
            "content": [{ "type": "text", "text": "012345678" }], "stop_reason": "end_turn",
            "usage": usage });
        let (url, _) = upstream("/v1/messages", whole, Vec::new()).await;
        let format = r#""format":"anthropic_messages""#;
        let (world, key) = funded_before(format!(r#"{{"base_url":"{url}",{format}}}"#)).await;
        let before = world.balance(&key).await;
        let reply = ask(&world, &key, &body("")).await;
        assert_eq!(reply.header("x-usage-estimated"), Some("true"), "{usage}: {reply:?}");
        let told = reply.json()["usage"].clone();
        assert_eq!(told["estimated"], true, "{usage}: {told}");
        assert_eq!(before - world.balance(&key).await, cost(&told), "{usage}");
    }
}

#[tokio::test]
async fn a_refusal_has_the_form_that_clients_of_anthropic_read() {
    let server = script(&["Never."]).await;
    let (world, key) = funded(&server.base_url()).await;
    let poor = world.key(&Wallet::new(2)).await;
    let check = |reply: &Reply, status: u16, kind: &str, code: &str| {
        let json = reply.json();
        assert_eq!(reply.status, status, "{}", reply.body);
        assert_eq!((&json["type"], &json["error"]["type"]), (&json!("error"), &json!(kind)));
        assert_eq!(json["code"], code, "{}", reply.body);
        assert!(!json["error"]["message"].as_str().unwrap().is_empty(), "{}", reply.body);
    };
    let asked = body("");
    let broke = ask(&world, &poor, &asked).await;
    check(&broke, 402, "billing_error", "INSUFFICIENT_CREDITS");
    let told = broke.json();
    assert_eq!(told["details"]["current_balance_cents"], 0);
    assert!(told["details"]["required_cents"].as_i64() > Some(0), "{told}");
    check(&ask(&world, "nonsense", &asked).await, 401, "authentication_error", "UNAUTHORIZED");
    check(
        &post(world.at(), "/v1/messages", &[], &asked).await,
        401,
        "authentication_error",
        "UNAUTHORIZED",
    );
    let invalid = "invalid_request_error";
    check(&ask(&world, &key, "{").await, 400, invalid, "INVALID_REQUEST");
    check(&ask(&world, &key, r#"{"model":"script"}"#).await, 400, invalid, "INVALID_REQUEST");
    let search = body(r#","tools":[{"type":"web_search_20250305","name":"s"}]"#);
    check(&ask(&world, &key, &search).await, 400, invalid, "INVALID_REQUEST");
    let other = asked.replace("script", "other");
    check(&ask(&world, &key, &other).await, 404, "not_found_error", "MODEL_NOT_FOUND");
    check(&get(world.at(), "/v1/messages", &[]).await, 405, invalid, "METHOD_NOT_ALLOWED");
    assert!(server.open_step().is_some(), "the upstream was asked");
    // Either header tells the key.
    let bearer = format!("Bearer {key}");
    let headers = [("Authorization", bearer.as_str())];
    let reply = post(world.at(), "/v1/messages", &headers, &asked).await;
    assert_eq!(reply.json()["content"][0]["text"], "Never.", "{reply:?}");
}

#[tokio::test]
async fn a_named_question_is_one_and_belongs_to_its_format() {
    let server = script(&["One.", "Two."]).await;
    let (world, key) = funded(&server.base_url()).await;
    let headers = [("x-api-key", key.as_str()), ("Authorization", &key), ("Idempotency-Key", "k")];
    let first = post(world.at(), "/v1/messages", &headers, &body("")).await;
    let before = world.balance(&key).await;
    let again = post(world.at(), "/v1/messages", &headers, &body("")).await;
    assert_eq!((first.status, &again.body), (200, &first.body));
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    let other = post(world.at(), "/v1/chat/completions", &headers, &body("")).await;
    assert_eq!(other.status, 409, "{other:?}");
    assert_eq!(world.balance(&key).await, before);
}

#[tokio::test]
async fn tokens_are_estimated_for_nothing() {
    let (world, key) = funded("http://127.0.0.1:9/v1").await;
    let before = world.balance(&key).await;
    let asked = body("");
    let headers = [("x-api-key", key.as_str())];
    let reply = post(world.at(), "/v1/messages/count_tokens", &headers, &asked).await;
    assert_eq!(reply.json(), json!({ "input_tokens": asked.len().div_ceil(3) }));
    assert_eq!(world.balance(&key).await, before);
}

#[tokio::test]
async fn a_stream_that_breaks_ends_with_an_error_and_costs_nothing() {
    let piece = json!({ "choices": [{ "index": 0, "delta": { "content": "Well" } }] });
    let error = json!({ "error": { "message": "overloaded" } });
    let (url, _) =
        upstream("/v1/chat/completions", json!({}), vec![event(&piece), event(&error)]).await;
    let (world, key) = funded(&url).await;
    let before = world.balance(&key).await;
    let reply = ask(&world, &key, &body(r#","stream":true"#)).await;
    let events = events(&reply);
    let (name, data) = events.last().unwrap();
    assert_eq!((name.as_str(), &data["error"]["type"]), ("error", &json!("api_error")), "{data}");
    assert_eq!((world.balance(&key).await, world.held(&key).await), (before, 0));
}

#[tokio::test]
async fn a_thread_is_refused_as_agreed_and_costs_nothing() {
    let (url, sent) = running().await;
    let (world, key) = funded(&url).await;
    let before = world.balance(&key).await;
    let refused = ask(&world, &key, &body(r#","thread":{"type":"create"}"#)).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    let error = &refused.json()["error"];
    assert_eq!(error["type"], "invalid_request_error");
    let agreed = json!({ "error_code": "thread_unsupported_request", "unsupported": ["thread"] });
    assert_eq!(error["details"], agreed);
    assert!(sent.lock().unwrap().is_empty());
    assert_eq!(world.balance(&key).await, before);
    let other = ask(&world, &key, &body(r#","container":"c""#)).await;
    assert_eq!(other.json()["error"].get("details"), None, "{other:?}");
}

#[tokio::test]
async fn an_answer_by_a_schema_is_asked_for_with_it() {
    let (url, sent) = running().await;
    let (world, key) = funded(&url).await;
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } },
        "required": ["name"], "additionalProperties": false });
    let format = json!({ "type": "json_schema", "schema": schema });
    for more in [
        format!(r#","output_format":{format}"#),
        format!(r#","output_config":{{"format":{format}}}"#),
    ] {
        let reply = ask(&world, &key, &body(&more)).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(reply.json()["content"][0]["text"], r#"{"name":"Oslo","people":700000}"#);
        assert_eq!(reply.json()["model"], "script");
        let asked = sent.lock().unwrap().pop().unwrap().1["response_format"].clone();
        assert_eq!(asked["json_schema"]["schema"], schema);
        assert_eq!(
            (&asked["type"], &asked["json_schema"]["strict"]),
            (&json!("json_schema"), &json!(true))
        );
    }
}

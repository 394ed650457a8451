//! Requests and replies in Anthropic's format.

use std::sync::Arc;

use automaton_core::tool::{Effect, Risk, ToolCategory, ToolSpec};
use automaton_core::wire::chat::ChatUsage;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::MessagesReader;
use crate::catalogue;
use crate::provider::{
    CompletionRequest, FinishReason, Message, MessageCall, NoTokenSink, RawCall,
};
use crate::providers::http::ApiFormat;
use crate::providers::http::assemble::{AssembledReply, Assembler, AssemblyError};
use crate::providers::http::format::KeptChat;

const ID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.parse().unwrap(),
        description: "Runs.".into(),
        category: ToolCategory::Vm,
        risk: Risk::Safe,
        effect: Effect::Mutates,
        parameters: json!({"type": "object"}).into(),
    }
}

fn ask(messages: Vec<Message>) -> CompletionRequest {
    CompletionRequest {
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: Arc::new([tool("exec"), tool("sleep")]),
        left_out: vec!["exec".parse().unwrap()],
        max_tokens: 64,
        seed: 1,
        temperature_milli: 700,
        name: None,
        silence: None,
    }
}

fn written(messages: Vec<Message>) -> Value {
    let info = catalogue::model("claude-sonnet-4-5").unwrap();
    let body = ApiFormat::AnthropicMessages.body(
        &info,
        &ask(messages),
        &mut KeptChat::new(ApiFormat::AnthropicMessages),
    );
    serde_json::from_slice(&body.unwrap()).unwrap()
}

fn called(arguments: &str) -> MessageCall {
    let id = ID.parse().unwrap();
    MessageCall { id, tool: "exec".into(), arguments: arguments.into() }
}

#[test]
fn a_request_is_what_the_format_says() {
    let id = ID.parse().unwrap();
    let body = written(vec![
        Message::system("rules"),
        Message::user("go"),
        Message::assistant("", vec![called(r#"{"a":1}"#)]),
        Message::tool(id, "done"),
        Message::user("and now?"),
    ]);
    let kept = json!({"type": "ephemeral"});
    assert_eq!(
        body,
        json!({
            "model": "claude-sonnet-4-5",
            "max_tokens": 64,
            "stream": true,
            "system": [{"type": "text", "text": "rules", "cache_control": kept}],
            "tools": [{"name": "sleep", "description": "Runs.",
                       "input_schema": {"type": "object"}, "cache_control": kept}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "go"}]},
                {"role": "assistant", "content": [
                    {"type": "tool_use", "id": ID, "name": "exec", "input": {"a": 1},
                     "cache_control": kept}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": ID, "content": "done"},
                    {"type": "text", "text": "and now?"}]},
            ],
        })
    );
}

#[test]
fn arguments_that_are_no_object_are_sent_back_in_one() {
    let input = |arguments: &str| {
        let calls = vec![called(arguments)];
        let body = written(vec![Message::user("go"), Message::assistant("", calls)]);
        body["messages"][1]["content"][0]["input"].clone()
    };
    assert_eq!(input(r#"{"a": [1]}"#), json!({"a": [1]}));
    assert_eq!(input(""), json!({}));
    assert_eq!(input(r#"{"a":"#), json!({"INVALID_JSON": r#"{"a":"#}));
    assert_eq!(input("[1]"), json!({"INVALID_JSON": "[1]"}));
}

/// A reply as it is documented: thoughts, text, a call with arguments and one without.
const EVENTS: &[&str] = &[
    r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":30,"cache_read_input_tokens":45,"output_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"Eq"}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"ping"}"#,
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Grüß "}}"#,
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"dich"}}"#,
    r#"{"type":"content_block_stop","index":1}"#,
    r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"exec","input":{}}}"#,
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}"#,
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"command\":"}}"#,
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"ls\"}"}}"#,
    r#"{"type":"content_block_stop","index":2}"#,
    r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_2","name":"sleep","input":{}}}"#,
    r#"{"type":"content_block_stop","index":3}"#,
    r#"{"type":"from_the_future","what":1}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":10}}"#,
    r#"{"type":"message_stop"}"#,
];

/// The same as one document.
const WHOLE: &str = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-x",
    "content":[{"type":"thinking","thinking":"hm","signature":"Eq"},
        {"type":"text","text":"Grüß dich"},
        {"type":"tool_use","id":"toolu_1","name":"exec","input":{"command":"ls"}},
        {"type":"tool_use","id":"toolu_2","name":"sleep","input":{}}],
    "stop_reason":"tool_use","stop_sequence":null,
    "usage":{"input_tokens":25,"cache_creation_input_tokens":30,"cache_read_input_tokens":45,
        "output_tokens":10}}"#;

fn assembled(events: &[&str]) -> Result<AssembledReply, AssemblyError> {
    let mut reader = MessagesReader::default();
    let mut assembler = Assembler::default();
    for event in events {
        assembler.add_piece(reader.piece(event)?, &NoTokenSink)?;
    }
    assembler.finish()
}

#[test]
fn a_stream_and_a_document_are_the_same_reply() {
    let reply = assembled(EVENTS).unwrap();
    assert_eq!((reply.text.as_str(), reply.finish), ("Grüß dich", FinishReason::ToolCalls));
    let call = |id: &str, tool: &str, arguments: &str| RawCall {
        provider_id: Some(id.to_owned()),
        tool: tool.to_owned(),
        arguments: arguments.to_owned(),
    };
    let calls = [call("toolu_1", "exec", r#"{"command":"ls"}"#), call("toolu_2", "sleep", "{}")];
    assert_eq!(reply.calls, calls);
    let ChatUsage { prompt_tokens, completion_tokens, prompt_tokens_details, .. } =
        reply.usage.unwrap();
    let details = prompt_tokens_details.unwrap();
    assert_eq!((prompt_tokens, completion_tokens), (100, 10));
    assert_eq!((details.cached_tokens, details.cache_write_tokens), (45, 30));
    assert_eq!(assembled(&[WHOLE]).unwrap(), reply);
}

#[test]
fn a_reply_that_ends_early_is_none() {
    for end in 1..EVENTS.len() - 2 {
        assert_eq!(assembled(&EVENTS[..end]), Err(AssemblyError::Cut), "{end}");
    }
    // Why it ended is said before its end.
    assert!(assembled(&EVENTS[..EVENTS.len() - 1]).is_ok());
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let told = assembled(&[EVENTS[0], error]);
    assert!(matches!(told, Err(AssemblyError::Failed(said)) if said.text == "Overloaded"));
}

#[test]
fn each_end_has_its_reason() {
    for (stop, wanted) in [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::Stop),
        ("max_tokens", FinishReason::Length),
        ("model_context_window_exceeded", FinishReason::Length),
        ("refusal", FinishReason::Filtered),
        ("pause_turn", FinishReason::Stop),
    ] {
        let whole = json!({"type": "message", "content": [{"type": "text", "text": "a"}],
            "stop_reason": stop});
        assert_eq!(assembled(&[&whole.to_string()]).unwrap().finish, wanted, "{stop}");
    }
}

#[test]
fn a_request_of_anybody_is_put_into_the_format() {
    let chat = json!({
        "model": "m", "max_tokens": 9, "stream": true, "stream_options": {"include_usage": true},
        "temperature": 0.5, "stop": "END", "user": "u",
        "messages": [
            {"role": "developer", "content": "rules"},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "call_2", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "one"},
            {"role": "tool", "tool_call_id": "call_2", "content": "two"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
        "tool_choice": "required",
    });
    let translated = |chat: &Value| {
        ApiFormat::AnthropicMessages.body_from_chat(chat.to_string().into_bytes(), 1000)
    };
    let body: Value = serde_json::from_slice(&translated(&chat).unwrap()).unwrap();
    assert_eq!(body["system"][0]["text"], "rules");
    assert_eq!(body["messages"][0]["content"][0]["text"], "a\nb");
    let results = body["messages"][2]["content"].as_array().unwrap();
    assert_eq!(results.len(), 2, "both results stand in one message");
    assert_eq!(results[1]["tool_use_id"], "call_2");
    assert_eq!(body["tool_choice"], json!({"type": "any"}));
    assert_eq!((&body["stop_sequences"], &body["stream"]), (&json!(["END"]), &json!(true)));
    assert!(body.get("user").is_none() && body.get("stream_options").is_none());
    for (field, value) in [
        ("n", json!(2)),
        ("response_format", json!({"type": "json_object"})),
        ("messages", json!([{"role": "user", "content": [{"type": "image_url"}]}])),
        ("messages", json!("hello")),
    ] {
        let mut other = chat.clone();
        other[field] = value;
        assert!(translated(&other).is_err(), "{field}");
    }
}

#[test]
fn a_reply_is_passed_on_as_a_document_of_the_other_format() {
    let document = |body| ApiFormat::AnthropicMessages.reader().document(body);
    let reply = serde_json::to_value(document(WHOLE).unwrap()).unwrap();
    let message = &reply["choices"][0]["message"];
    assert_eq!(reply["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(message["content"], "Grüß dich");
    assert_eq!(message["tool_calls"][0]["function"]["arguments"], r#"{"command":"ls"}"#);
    assert_eq!(message["tool_calls"][1]["function"]["arguments"], "{}");
    assert_eq!(reply["usage"]["total_tokens"], 110);
    assert!(document("{}").is_err());
    assert!(document("nothing").is_err());
}

proptest! {
    #[test]
    fn sides_take_turns_whatever_was_said(
        said in prop::collection::vec((0_u8..3, "[ a-z]{0,3}"), 0..12),
    ) {
        let id = ID.parse().unwrap();
        let messages = said.into_iter().map(|(who, text)| match who {
            0 => Message::user(text),
            1 => Message::assistant(text, vec![]),
            _ => Message::tool(id, text),
        });
        let body = written(messages.collect());
        let roles: Vec<&str> =
            body["messages"].as_array().unwrap().iter().map(|it| it["role"].as_str().unwrap()).collect();
        prop_assert!(roles.windows(2).all(|pair| pair[0] != pair[1]), "{:?}", roles);
        for message in body["messages"].as_array().unwrap() {
            let blocks = message["content"].as_array().unwrap();
            prop_assert!(!blocks.is_empty());
            prop_assert!(blocks.iter().all(|it| it["text"].as_str().is_none_or(|text| !text.trim().is_empty())));
        }
    }

    #[test]
    fn no_event_is_a_panic(data in ".{0,200}", at in 0_usize..20, cut in 0_usize..200) {
        let event = EVENTS[at % EVENTS.len()];
        let cut = event.floor_char_boundary(cut.min(event.len()));
        let mut reader = MessagesReader::default();
        drop(reader.piece(&data));
        drop(reader.piece(&event[..cut]));
        drop(reader.piece(&format!("{}{data}{}", &event[..cut], &event[cut..])));
    }
}

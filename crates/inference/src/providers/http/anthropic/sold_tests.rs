//! Models of others, sold in Anthropic's format: what is asked and answered stays the same.

use automaton_core::wire::chat::ChatUsage;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{MessagesReader, chat_from_messages, messages_writer};
use crate::providers::http::ApiFormat;
use crate::providers::http::assemble::{AssembledReply, Assembler, StreamPiece};
use crate::providers::http::chat_completions;

/// A reply in chat completions, out of pieces.
pub(in crate::providers::http) fn direct(pieces: &[Value]) -> AssembledReply {
    let mut reply = Assembler::default();
    for piece in pieces {
        let Ok(StreamPiece::Chunk(chunk)) = chat_completions::piece(&piece.to_string()) else {
            panic!("{piece}");
        };
        reply.take(chunk).unwrap();
    }
    reply.finish().unwrap()
}

/// The same after it was written in Anthropic's format and read again.
fn written(pieces: &[Value]) -> AssembledReply {
    let mut writer = messages_writer("msg".to_owned(), "m".to_owned());
    let mut frames = Vec::new();
    for piece in pieces {
        frames.extend(writer.take(&piece.to_string()).unwrap().0);
    }
    assert!(writer.is_whole());
    frames.extend(writer.end(&ChatUsage::default()).unwrap());
    let mut reader = MessagesReader::default();
    let mut reply = Assembler::default();
    let mut open: Option<(u64, bool)> = None;
    for frame in &frames {
        let data: Value = serde_json::from_str(&frame.data).unwrap();
        // One block at a time, each number once, in their order.
        let index = data["index"].as_u64();
        match frame.name {
            "content_block_start" => {
                assert_eq!(index, open.map_or(Some(0), |(last, _)| Some(last + 1)));
                assert!(open.is_none_or(|(_, is_open)| !is_open));
                open = index.map(|index| (index, true));
            }
            "content_block_delta" => assert_eq!(open, index.map(|index| (index, true))),
            "content_block_stop" => open = index.map(|index| (index, false)),
            _ => {}
        }
        match reader.piece(&frame.data).unwrap() {
            StreamPiece::Chunk(chunk) | StreamPiece::Last(chunk) => {
                reply.take(chunk).unwrap();
            }
            StreamPiece::Done => {}
        }
    }
    reply.finish().unwrap()
}

/// Text in pieces, and calls with their arguments in pieces, in any order of pieces.
pub(in crate::providers::http) fn replies() -> impl Strategy<Value = Vec<Value>> {
    let text = proptest::collection::vec("[a-z\"é\n]{1,6}", 0..4);
    let arguments = proptest::collection::vec("[a-z\\\\{}:\"]{0,5}", 0..4);
    let calls = proptest::collection::vec(arguments, 0..4);
    (text, calls, any::<prop::sample::Index>()).prop_map(|(text, calls, order)| {
        let piece = |delta: Value| json!({ "choices": [{ "index": 0, "delta": delta }] });
        let mut pieces = vec![piece(json!({ "role": "assistant", "content": "" }))];
        pieces.extend(text.iter().map(|text| piece(json!({ "content": text }))));
        let mut more = Vec::new();
        for (index, arguments) in calls.iter().enumerate() {
            let function = json!({ "name": format!("tool_{index}"), "arguments": "" });
            let call = json!({ "index": index, "id": format!("id_{index}"), "function": function });
            pieces.push(piece(json!({ "tool_calls": [call] })));
            more.extend(arguments.iter().enumerate().map(|(at, text)| {
                let call = json!({ "index": index, "function": { "arguments": text } });
                (at, piece(json!({ "tool_calls": [call] })))
            }));
        }
        // One call after the other, or a piece of each in turn.
        if order.index(2) == 1 {
            more.sort_by_key(|(at, _)| *at);
        }
        pieces.extend(more.into_iter().map(|(_, piece)| piece));
        let reason = if calls.is_empty() { "stop" } else { "tool_calls" };
        let end = json!([{ "index": 0, "delta": {}, "finish_reason": reason }]);
        pieces.push(json!({ "choices": end }));
        pieces
    })
}

proptest! {
    #[test]
    fn a_reply_says_the_same_in_either_format(pieces in replies()) {
        let direct = direct(&pieces);
        let written = written(&pieces);
        prop_assert_eq!(&direct.text, &written.text);
        prop_assert_eq!(direct.finish, written.finish);
        let told = |reply: &AssembledReply| -> Vec<_> {
            let calls = reply.calls.iter();
            let arguments = |text: &str| if text.is_empty() { "{}".to_owned() } else { text.to_owned() };
            calls.map(|it| (it.provider_id.clone(), it.tool.clone(), arguments(&it.arguments))).collect()
        };
        prop_assert_eq!(told(&direct), told(&written));
    }

    #[test]
    fn no_request_is_a_panic(text in ".{0,200}", sees in any::<bool>()) {
        drop(chat_from_messages(text.as_bytes(), sees));
        let body = json!({ "model": "m", "max_tokens": 1, "messages": [{ "role": "user", "content": text }] });
        prop_assert!(chat_from_messages(body.to_string().as_bytes(), sees).is_ok());
    }
}

#[test]
fn what_was_said_is_the_same_after_both_ways() {
    let asked = json!({
        "model": "m", "max_tokens": 9, "stream": true, "stop_sequences": ["E"], "temperature": 0.5,
        "system": "Rules.", "tools": [{ "name": "a", "description": "d",
            "input_schema": { "type": "object" } }],
        "tool_choice": { "type": "tool", "name": "a" },
        "messages": [
            { "role": "user", "content": "Go" },
            { "role": "assistant", "content": [{ "type": "text", "text": "Well." },
                { "type": "tool_use", "id": "1", "name": "a", "input": { "z": 1, "b": 1e3 } }] },
            { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "1",
                "content": "done" }, { "type": "text", "text": "And?" }] },
        ],
    });
    let chat = chat_from_messages(asked.to_string().as_bytes(), false).unwrap();
    let back = ApiFormat::AnthropicMessages.body_from_chat(chat, 100_000).unwrap();
    let back: Value = serde_json::from_slice(&back).unwrap();
    for named in ["model", "max_tokens", "stream", "stop_sequences", "temperature", "tool_choice"] {
        assert_eq!(back[named], asked[named], "{named}");
    }
    assert_eq!(back["system"][0]["text"], "Rules.");
    assert_eq!(back["tools"][0]["input_schema"], json!({ "type": "object" }));
    assert_eq!(back["messages"][0]["content"][0]["text"], "Go");
    assert_eq!(back["messages"][1]["content"][1]["input"], json!({ "z": 1, "b": 1e3 }));
    let last = &back["messages"][2]["content"];
    assert_eq!((&last[0]["tool_use_id"], &last[0]["content"]), (&json!("1"), &json!("done")));
    assert_eq!(last[1]["text"], "And?");
}

#[test]
fn what_the_other_format_cannot_say_is_refused_by_name() {
    let with = |more: Value| {
        let mut body = json!({ "model": "m", "max_tokens": 1,
            "messages": [{ "role": "user", "content": "Go" }] });
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        chat_from_messages(body.to_string().as_bytes(), true).map_err(|error| error.to_string())
    };
    let picture = |source: Value| {
        json!([{ "role": "user",
        "content": [{ "type": "text", "text": "t" }, { "type": "image", "source": source }] }])
    };
    let base64 = json!({ "type": "base64", "media_type": "image/png", "data": "aa" });
    let told = with(json!({ "messages": picture(base64) })).unwrap();
    let told: Value = serde_json::from_slice(&told).unwrap();
    let url = "data:image/png;base64,aa";
    assert_eq!(told["messages"][0]["content"][1]["image_url"]["url"], url);
    for (bad, words) in [
        (json!({ "output_format": { "type": "json_schema" } }), "no schema"),
        (json!({ "output_config": { "format": { "type": "regex" } } }), "regex"),
        (json!({ "tools": [{ "type": "bash_20250124", "name": "bash" }] }), "bash_20250124"),
        (json!({ "messages": picture(json!({ "type": "file", "file_id": "f" })) }), "source"),
        (
            json!({ "messages": [{ "role": "user", "content": [{ "type": "document" }] }] }),
            "document",
        ),
        (json!({ "messages": [{ "role": "system", "content": "x" }] }), "system"),
        (
            json!({ "messages": [{ "role": "user", "content": [{ "type": "tool_result" }] }] }),
            "tool_use_id",
        ),
    ] {
        let refusal = with(bad.clone()).unwrap_err();
        assert!(refusal.contains(words), "{bad}: {refusal}");
    }
}

#[test]
fn the_form_of_an_answer_is_asked_for_with_its_schema() {
    let form = |more: Value| {
        let mut body = json!({ "model": "m", "max_tokens": 1,
            "messages": [{ "role": "user", "content": "Go" }] });
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        let told = chat_from_messages(body.to_string().as_bytes(), true).unwrap();
        let told: Value = serde_json::from_slice(&told).unwrap();
        told["response_format"].clone()
    };
    let closed = json!({ "type": "object", "properties": { "a": { "type": "string" } },
        "required": ["a"], "additionalProperties": false });
    let strict = json!({ "type": "json_schema",
        "json_schema": { "name": "answer", "schema": closed, "strict": true } });
    let format = json!({ "type": "json_schema", "schema": closed });
    assert_eq!(form(json!({ "output_format": format })), strict);
    assert_eq!(form(json!({ "output_config": { "format": format, "effort": "low" } })), strict);
    assert_eq!(form(json!({ "output_config": { "effort": "low" } })), Value::Null);
    assert_eq!(form(json!({ "output_format": null })), Value::Null);
    assert_eq!(form(json!({ "output_format": { "type": "text" } })), Value::Null);

    // A server would refuse to hold an answer strictly to these.
    let optional = json!({ "type": "object", "properties": { "a": {}, "b": {} },
        "required": ["a"], "additionalProperties": false });
    let open = json!({ "type": "array", "items": { "type": "object", "properties": { "a": {} },
        "required": ["a"] } });
    for schema in [optional, open] {
        let format = json!({ "type": "json_schema", "schema": schema });
        let loose = json!({ "type": "json_schema",
            "json_schema": { "name": "answer", "schema": schema } });
        assert_eq!(form(json!({ "output_format": format })), loose);
    }
}

//! Models of others, sold in the responses format: what is asked and answered stays the same.

use std::collections::BTreeMap;

use automaton_core::wire::chat::ChatUsage;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{ResponseHeading, ResponsesReader, chat_from_responses, responses_writer};
use crate::provider::NoTokenSink;
use crate::providers::http::anthropic::sold_tests::{direct, replies};
use crate::providers::http::assemble::{AssembledReply, Assembler};
use crate::providers::http::{ApiFormat, ReplyWriter};

fn writer(pieces: &[Value]) -> ReplyWriter {
    let mut writer = responses_writer(ResponseHeading {
        id: "resp".to_owned(),
        model: "m".to_owned(),
        created: 7,
        told_back: BTreeMap::new(),
    });
    for piece in pieces {
        writer.take(&piece.to_string()).unwrap();
    }
    assert!(writer.is_whole());
    writer
}

fn read<'a>(events: impl Iterator<Item = &'a str>) -> AssembledReply {
    let mut reader = ResponsesReader::default();
    let mut reply = Assembler::default();
    for event in events {
        reply.add_piece(reader.piece(event).unwrap(), &NoTokenSink).unwrap();
    }
    reply.finish().unwrap()
}

fn told(reply: &AssembledReply) -> Vec<(Option<String>, String, String)> {
    let arguments = |text: &str| if text.is_empty() { "{}".to_owned() } else { text.to_owned() };
    let calls = reply.calls.iter();
    calls.map(|it| (it.provider_id.clone(), it.tool.clone(), arguments(&it.arguments))).collect()
}

proptest! {
    #[test]
    fn a_reply_says_the_same_in_a_stream_and_as_a_document(pieces in replies()) {
        let direct = direct(&pieces);
        let mut stream = responses_writer(ResponseHeading {
            id: "resp".to_owned(), model: "m".to_owned(), created: 7, told_back: BTreeMap::new(),
        });
        let mut frames = Vec::new();
        for piece in &pieces {
            frames.extend(stream.take(&piece.to_string()).unwrap().0);
        }
        frames.extend(stream.end(&ChatUsage::default()).unwrap());
        let whole = writer(&pieces).finish_whole(&ChatUsage::default()).unwrap();
        let document = String::from_utf8(whole).unwrap();
        // What a stream tells at its end is what a document says, in the order of its items.
        let last: Value = serde_json::from_str(&frames.last().unwrap().data).unwrap();
        let end = last["response"].to_string();
        for reply in [read(frames.iter().map(|it| &*it.data)), read([&*document].into_iter()),
            read([&*end].into_iter())]
        {
            prop_assert_eq!(&direct.text, &reply.text);
            prop_assert_eq!(direct.finish, reply.finish);
            prop_assert_eq!(told(&direct), told(&reply));
        }
        for (place, frame) in frames.iter().enumerate() {
            let data: Value = serde_json::from_str(&frame.data).unwrap();
            prop_assert_eq!(&data["sequence_number"], &json!(place));
            prop_assert_eq!(&data["type"], &json!(frame.name));
        }
    }

    #[test]
    fn no_request_is_a_panic(text in ".{0,200}", sees in any::<bool>()) {
        drop(chat_from_responses(text.as_bytes(), sees));
        let item = json!({ "type": text, "role": "user", "content": text });
        let body = json!({ "model": "m", "max_output_tokens": 1, "input": [item] });
        drop(chat_from_responses(body.to_string().as_bytes(), sees));
        let body = json!({ "model": "m", "max_output_tokens": 1, "input": text });
        prop_assert!(chat_from_responses(body.to_string().as_bytes(), sees).is_ok());
    }
}

#[test]
fn what_was_said_is_the_same_after_both_ways() {
    let asked = json!({
        "model": "m", "max_output_tokens": 99, "stream": true, "temperature": 0.5, "top_p": 0.9,
        "instructions": "Rules.", "store": false,
        "tools": [{ "type": "function", "name": "a", "description": "d", "strict": false,
            "parameters": { "type": "object" } }],
        "tool_choice": { "type": "function", "name": "a" },
        "input": [
            { "role": "user", "content": "Go" },
            { "role": "assistant", "content": "Well." },
            { "type": "function_call", "call_id": "1", "name": "a", "arguments": "{\"z\":1}" },
            { "type": "function_call_output", "call_id": "1", "output": "done" },
            { "role": "user", "content": "And?" },
        ],
    });
    let chat = chat_from_responses(asked.to_string().as_bytes(), false).unwrap();
    let back = ApiFormat::Responses.body_from_chat(chat, 100_000).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&back).unwrap(), asked);
}

#[test]
fn pictures_that_a_result_shows_come_after_all_results() {
    let output = json!([{ "type": "input_image", "image_url": "u", "detail": "low" }]);
    let asked = json!({ "model": "m", "max_output_tokens": 9, "input": [
        { "type": "function_call_output", "call_id": "1", "output": output },
        { "type": "function_call_output", "call_id": "2", "output": "two" },
    ]});
    let chat = chat_from_responses(asked.to_string().as_bytes(), true).unwrap();
    let chat: Value = serde_json::from_slice(&chat).unwrap();
    let roles: Vec<_> =
        chat["messages"].as_array().unwrap().iter().map(|it| it["role"].clone()).collect();
    assert_eq!(roles, ["tool", "tool", "user"]);
    let image = &chat["messages"][2]["content"][0]["image_url"];
    assert_eq!(*image, json!({ "url": "u", "detail": "low" }));
}

//! Pure: the many shapes in which servers write the one format, made one.
//!
//! Servers leave out ids and indices, write `null` where a field may be absent, objects where JSON text belongs,
//! lists where a text belongs, and invent roles. Nothing of that changes the answer. This file reads the
//! fields that matter, in the types that [`core::wire::chat`] has, and skips fields that are new. Text, names and
//! arguments that it cannot read are an error. It must never invent any.
//!
//! [`core::wire::chat`]: automaton_core::wire::chat

use automaton_core::wire::chat::{ChatChunk, ChatUsage, ChunkCall, ChunkChoice, ChunkDelta};
use serde_json::{Map, Value};

use crate::providers::http::assemble::{AssemblyError, StreamPiece, WHOLE_REPLY};
use crate::providers::http::failure;
use crate::providers::http::frames::DONE;
use crate::providers::http::pieces::{self, unread};
use crate::providers::http::usage::read_chat_usage;

/// The largest number of a call that is believed.
const INDEX_MAX: u64 = 1 << 16;

/// Names that servers give to the arguments of a call.
const ARGUMENTS: [&str; 4] = ["arguments", "parameters", "input", "args"];

/// Reads one event's data, or a whole reply.
pub(in crate::providers::http) fn piece(data: &str) -> Result<StreamPiece, AssemblyError> {
    if data.trim() == DONE {
        return Ok(StreamPiece::Done);
    }
    let reply = pieces::object(data)?;
    let said = match reply.get("choices") {
        None | Some(Value::Null) => &[],
        Some(Value::Array(choices)) => choices.as_slice(),
        Some(_) => return Err(unread("its list of choices")),
    };
    let choices = said.iter().map(choice).collect::<Result<Vec<_>, _>>()?;
    let is_piece = text_in(&reply, "object").ends_with(".chunk");
    let is_whole = !is_piece && said.iter().any(has_whole_message);
    Ok(StreamPiece::Chunk(ChatChunk {
        model: text_in(&reply, "model"),
        object: if is_whole { WHOLE_REPLY.to_owned() } else { String::new() },
        usage: usage_of(&reply, said),
        choices,
        ..ChatChunk::default()
    }))
}

fn text_in(reply: &Map<String, Value>, name: &str) -> String {
    reply.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The count of tokens, wherever the server puts it.
fn usage_of(reply: &Map<String, Value>, choices: &[Value]) -> Option<ChatUsage> {
    let beside = reply.get("x_groq").and_then(|more| more.get("usage"));
    let within = choices.iter().flat_map(|choice| {
        [choice.get("usage"), choice["delta"].get("usage"), choice["message"].get("usage")]
    });
    let places = [reply.get("usage"), beside].into_iter().chain(within);
    places.flatten().find_map(read_chat_usage)
}

/// A whole reply says `message` where a stream says `delta`.
fn has_whole_message(choice: &Value) -> bool {
    !choice["delta"].is_object() && choice["message"].is_object()
}

/// One choice: its index, its piece of a message, why it ended.
fn choice(choice: &Value) -> Result<ChunkChoice, AssemblyError> {
    if !choice.is_object() {
        return Err(unread("a choice"));
    }
    if let Some(said) = failure::reported_error(choice) {
        return Err(AssemblyError::Failed(said));
    }
    let message = match (&choice["delta"], &choice["message"]) {
        (Value::Object(message), _) | (Value::Null, Value::Object(message)) => Some(message),
        (Value::Null, Value::Null) => None,
        _ => return Err(unread("a choice's message")),
    };
    // Another answer stays another one, however it is numbered.
    let index =
        choice["index"].as_u64().map_or(0, |index| u32::try_from(index).unwrap_or(u32::MAX));
    Ok(ChunkChoice {
        index,
        delta: message.map(delta).transpose()?.unwrap_or_default(),
        finish_reason: finish_reason(&choice["finish_reason"]),
    })
}

/// The word for why it ended. Some servers write an object of it.
fn finish_reason(told: &Value) -> Option<String> {
    match told {
        Value::Null | Value::Bool(false) => None,
        Value::String(word) => Some(word.clone()),
        Value::Object(_) => {
            let word = pieces::word(told, "type").or_else(|| pieces::word(told, "reason"));
            Some(word.unwrap_or("unknown").to_owned())
        }
        other => Some(other.to_string()),
    }
}

fn delta(message: &Map<String, Value>) -> Result<ChunkDelta, AssemblyError> {
    let none = Value::Null;
    let field = |name: &str| message.get(name).unwrap_or(&none);
    let content = match pieces::text_of(field("content"))? {
        Some(text) => Some(text),
        // A refusal is an answer, in a field of its own.
        None => pieces::text_of(field("refusal"))?,
    };
    let mut calls = match field("tool_calls") {
        Value::Null => Vec::new(),
        Value::Array(calls) => {
            calls.iter().enumerate().map(|(place, it)| call(place, it)).collect::<Result<_, _>>()?
        }
        one @ Value::Object(_) => vec![call(0, one)?],
        _ => return Err(unread("its list of calls")),
    };
    // The form that the format had before calls were a list.
    match field("function_call") {
        Value::Object(function) if calls.is_empty() => calls.push(function_of(0, None, function)?),
        Value::Object(_) | Value::Null => {}
        _ => return Err(unread("its call")),
    }
    let tool_calls = (!calls.is_empty()).then_some(calls);
    Ok(ChunkDelta { role: None, content, tool_calls })
}

fn call(place: usize, value: &Value) -> Result<ChunkCall, AssemblyError> {
    let Value::Object(call) = value else { return Err(unread("a call")) };
    let id = pieces::word(value, "id");
    let index = match &value["index"] {
        // silent-ok: a text that is no number is no index.
        Value::String(digits) => digits.parse().ok(),
        other => other.as_u64(),
    };
    let index = index.filter(|index| *index < INDEX_MAX);
    // Without an index the id says which call it is.
    let place = match (index, id) {
        // silent-ok: it is below the limit.
        (Some(index), _) => usize::try_from(index).unwrap_or(place),
        (None, Some(_)) => usize::MAX,
        (None, None) => place,
    };
    match call.get("function") {
        Some(Value::Object(function)) => function_of(place, id, function),
        // Some write its fields beside the id.
        None | Some(Value::Null) => function_of(place, id, call),
        Some(_) => Err(unread("the function of a call")),
    }
}

fn function_of(
    place: usize,
    id: Option<&str>,
    function: &Map<String, Value>,
) -> Result<ChunkCall, AssemblyError> {
    let name = match function.get("name") {
        None | Some(Value::Null) => None,
        Some(Value::String(name)) => Some(name.as_str()),
        Some(_) => return Err(unread("the name of a call")),
    };
    let arguments = ARGUMENTS.iter().find_map(|name| function.get(*name));
    Ok(pieces::call(place, id, name, arguments.and_then(pieces::arguments_of)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use automaton_core::wire::chat::ChatChunk;
    use proptest::prelude::*;
    use serde_json::json;

    fn chunk(value: &Value) -> ChatChunk {
        match piece(&value.to_string()) {
            Ok(StreamPiece::Chunk(chunk)) => chunk,
            other => panic!("{value}: {other:?}"),
        }
    }

    #[test]
    fn every_shape_of_a_call_is_read() {
        let check = |call: Value, arguments: Option<&str>| {
            let chunk = chunk(&json!({"choices": [{"delta": {"tool_calls": [call]}}]}));
            let calls = chunk.choices[0].delta.tool_calls.as_ref().unwrap();
            assert_eq!(calls[0].function.arguments.as_deref(), arguments);
        };
        check(json!({"function": {"name": "a", "arguments": "{}"}}), Some("{}"));
        check(json!({"function": {"name": "a", "arguments": {"k": null}}}), Some(r#"{"k":null}"#));
        check(json!({"function": {"name": "a", "arguments": null}}), None);
        check(json!({"id": null, "type": "", "index": null, "function": {"name": null}}), None);
        check(json!({"id": 7, "index": -1, "function": null}), None);
        check(json!({"name": "a", "arguments": "{}"}), Some("{}"));
        check(json!({"function": {"name": "a", "parameters": {"k": 1}}}), Some(r#"{"k":1}"#));
    }

    #[test]
    fn a_whole_reply_is_one_piece() {
        let whole = chunk(&json!({
            "id": null, "object": "chat.completion", "created": 1.5, "model": "m",
            "choices": [{"index": 0, "finish_reason": "stop", "logprobs": null, "message": {
                "role": "model", "content": [{"type": "text", "text": "a"}, "b"], "refusal": null}}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 4},
        }));
        assert_eq!(whole.model, "m");
        assert_eq!(whole.choices[0].delta.content.as_deref(), Some("ab"));
        assert_eq!(whole.usage.map(|usage| usage.completion_tokens), Some(4));
    }

    #[test]
    fn usage_that_is_none_does_not_spoil_the_answer() {
        for usage in [json!(null), json!({"prompt_tokens": -1}), json!("many"), json!([])] {
            assert_eq!(chunk(&json!({"choices": [], "usage": usage})).usage, None);
        }
    }

    #[test]
    fn a_number_beyond_all_bounds_does_not_spoil_the_answer() {
        let told = r#"{"choices":[{"delta":{"content":"\\\"1e309"},"logprobs":[-1e999]}],
            "usage":{"prompt_tokens":1e309,"completion_tokens":4},"took":-0.5e+1}"#;
        let Ok(StreamPiece::Chunk(read)) = piece(told) else { panic!("{:?}", piece(told)) };
        assert_eq!(read.choices[0].delta.content.as_deref(), Some("\\\"1e309"));
        assert_eq!(read.usage, None);
        let beside = r#"{"usage":{"prompt_tokens":3,"completion_tokens":4,"took":1e309}}"#;
        let Ok(StreamPiece::Chunk(read)) = piece(beside) else { panic!("{:?}", piece(beside)) };
        assert_eq!(read.usage.map(|usage| usage.completion_tokens), Some(4));
        assert!(matches!(piece(r#"{"a":1e309"#), Err(AssemblyError::NoReply(_))));
        assert!(matches!(piece(r#"{"a":-}"#), Err(AssemblyError::NoReply(_))));
    }

    #[test]
    fn an_error_is_an_error_wherever_it_stands() {
        use crate::providers::http::failure;
        let failed = |text: &str| piece(text).unwrap_err();
        let over = || {
            AssemblyError::Failed(failure::ProviderErrorBody {
                text: "over".into(),
                ..failure::ProviderErrorBody::default()
            })
        };
        assert_eq!(failed(r#"{"error":{"message":"over"}}"#), over());
        assert_eq!(failed(r#"{"choices":[],"error":"over"}"#), over());
        assert!(matches!(failed("{"), AssemblyError::NoReply(_)));
        assert!(matches!(failed("[]"), AssemblyError::NoReply(_)));
        assert!(matches!(piece(r#"{"error":null,"choices":[]}"#), Ok(StreamPiece::Chunk(_))));
        assert_eq!(piece(" [DONE] "), Ok(StreamPiece::Done));
    }

    fn anything() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z{}\"]{0,5}".prop_map(Value::from),
        ];
        let key = prop_oneof![
            Just("choices"),
            Just("delta"),
            Just("message"),
            Just("tool_calls"),
            Just("function"),
            Just("name"),
            Just("arguments"),
            Just("index"),
            Just("id"),
            Just("content"),
            Just("usage"),
            Just("finish_reason"),
            Just("model"),
        ];
        leaf.prop_recursive(7, 64, 4, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map(key.clone().prop_map(str::to_owned), inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    #[test]
    fn what_was_said_and_cannot_be_read_is_an_error() {
        let of = |delta: Value| piece(&json!({"choices": [{"delta": delta}]}).to_string());
        for delta in [
            json!({"content": 7}),
            json!({"content": [7]}),
            json!({"tool_calls": "exec"}),
            json!({"tool_calls": ["exec"]}),
            json!({"tool_calls": [{"function": "exec"}]}),
            json!({"tool_calls": [{"function": {"name": ["exec"]}}]}),
            json!("text"),
        ] {
            assert!(matches!(of(delta.clone()), Err(AssemblyError::NoReply(_))), "{delta}");
        }
        for choices in [json!("text"), json!(["text"]), json!([{"error": {"message": "m"}}])] {
            assert!(piece(&json!({ "choices": choices }).to_string()).is_err(), "{choices}");
        }
    }

    #[test]
    fn thoughts_among_the_parts_of_a_text_are_no_words() {
        let told = json!({"choices": [{"delta": {"content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "plan"}]},
            {"type": "reasoning", "text": "plan"}, {"type": "text", "text": "It is noon."}]}}]});
        assert_eq!(chunk(&told).choices[0].delta.content.as_deref(), Some("It is noon."));
    }

    #[test]
    fn counts_and_ends_are_read_wherever_they_stand() {
        let usage = json!({"prompt_tokens": 7, "completion_tokens": 2});
        for told in [
            json!({"choices": [], "usage": usage}),
            json!({"choices": [{"delta": {}, "usage": usage}]}),
            json!({"choices": [], "usage": null, "x_groq": {"usage": usage}}),
        ] {
            assert_eq!(chunk(&told).usage.map(|it| it.completion_tokens), Some(2), "{told}");
        }
        let end = |told: Value| {
            let read = chunk(&json!({"choices": [{"delta": {}, "finish_reason": told}]}));
            read.choices[0].finish_reason.clone()
        };
        assert_eq!(end(json!({"type": "abort", "message": "m"})).as_deref(), Some("abort"));
        assert_eq!((end(json!(null)), end(json!(""))), (None, Some(String::new())));
    }

    proptest! {
        #[test]
        fn only_an_object_is_a_piece_and_all_that_it_says_is_read(value in anything()) {
            let Ok(read) = piece(&value.to_string()) else { return Ok(()) };
            prop_assert!(value.is_object());
            let StreamPiece::Chunk(chunk) = read else { return Ok(()) };
            let said = value["choices"].as_array().map_or(0, Vec::len);
            prop_assert_eq!(chunk.choices.len(), said);
        }
    }
}

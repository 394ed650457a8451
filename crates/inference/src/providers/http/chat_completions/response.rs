//! Pure: the many shapes in which servers write the one format, made one.
//!
//! Servers leave out ids and indices, write `null` where a field may be absent,
//! objects where JSON text belongs, lists where a text belongs, and invent
//! roles. Nothing of that changes what was said. This file keeps the fields
//! that we read, in the types that [`core::wire::chat`] has, and drops the
//! rest. It must never invent text, a name or an argument.
//!
//! [`core::wire::chat`]: automaton_core::wire::chat

use automaton_core::wire::chat::ChatUsage;
use serde_json::{Map, Value};

use crate::providers::http::assemble::{AssemblyError, StreamPiece};
use crate::providers::http::pieces;

/// Reads one event's data, or a whole reply.
pub(in crate::providers::http) fn piece(data: &str) -> Result<StreamPiece, AssemblyError> {
    if data.trim() == "[DONE]" {
        return Ok(StreamPiece::Done);
    }
    let mut reply = pieces::object(data)?;
    let mut kept = Map::new();
    if let Some(model @ Value::String(_)) = reply.remove("model") {
        kept.insert("model".to_owned(), model);
    }
    let usage = reply.remove("usage").filter(is_usage);
    kept.extend(usage.map(|usage| ("usage".to_owned(), usage)));
    if let Some(Value::Array(choices)) = reply.remove("choices") {
        let choices = choices.into_iter().filter_map(choice).collect();
        kept.insert("choices".to_owned(), Value::Array(choices));
    }
    serde_json::from_value(Value::Object(kept))
        .map(StreamPiece::Chunk)
        .map_err(|error| AssemblyError::NoReply(error.to_string()))
}

fn is_usage(value: &Value) -> bool {
    value.is_object() && serde_json::from_value::<ChatUsage>(value.clone()).is_ok()
}

/// One choice: its index, its piece of a message, why it ended.
fn choice(value: Value) -> Option<Value> {
    let Value::Object(mut choice) = value else { return None };
    let mut kept = Map::new();
    let index = choice.remove("index").and_then(|index| index.as_u64());
    // Another answer stays another one, however it is numbered.
    keep(&mut kept, "index", index.map(|index| Value::from(index.min(u32::MAX.into()))));
    let reason = choice.remove("finish_reason");
    keep(&mut kept, "finish_reason", reason.filter(Value::is_string));
    // A whole reply says `message` where a stream says `delta`.
    let said = choice.remove("delta").filter(Value::is_object).or_else(|| choice.remove("message"));
    if let Some(Value::Object(message)) = said {
        kept.insert("delta".to_owned(), Value::Object(delta(message)));
    }
    Some(Value::Object(kept))
}

fn delta(mut message: Map<String, Value>) -> Map<String, Value> {
    let mut kept = Map::new();
    let content = message.remove("content").as_ref().and_then(pieces::text_of).map(Value::from);
    // A refusal is what the model said, in a field of its own.
    let refusal = || message.remove("refusal").filter(Value::is_string);
    let content = content.or_else(refusal);
    keep(&mut kept, "content", content);
    if let Some(Value::Array(calls)) = message.remove("tool_calls") {
        let calls = calls.into_iter().enumerate().filter_map(|(place, value)| call(place, value));
        kept.insert("tool_calls".to_owned(), calls.collect());
    }
    kept
}

fn call(place: usize, value: Value) -> Option<Value> {
    let Value::Object(mut call) = value else { return None };
    let mut kept = Map::new();
    let index = call.remove("index").filter(|index| index.as_u64().is_some_and(|n| n < 1 << 16));
    kept.insert("index".to_owned(), index.unwrap_or_else(|| Value::from(place)));
    let id = call.remove("id").filter(|id| id.as_str().is_some_and(|id| !id.is_empty()));
    keep(&mut kept, "id", id);
    if let Some(Value::Object(mut function)) = call.remove("function") {
        let mut named = Map::new();
        keep(&mut named, "name", function.remove("name").filter(Value::is_string));
        let arguments = function.remove("arguments").as_ref().and_then(pieces::arguments_of);
        let arguments = arguments.map(Value::from);
        keep(&mut named, "arguments", arguments);
        kept.insert("function".to_owned(), Value::Object(named));
    }
    Some(Value::Object(kept))
}

fn keep(map: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    map.extend(value.map(|value| (name.to_owned(), value)));
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

    proptest! {
        #[test]
        fn any_object_is_a_piece(value in anything()) {
            prop_assert_eq!(piece(&value.to_string()).is_ok(), value.is_object());
        }
    }
}

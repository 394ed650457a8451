//! Pure: what all formats are read into: pieces of the chat-completions format.
//!
//! Servers leave out what the formats demand, and write lists where a text belongs, or objects
//! where the text of one does. Nothing of that changes what was said. Must never invent text, a
//! name or an argument.

use automaton_core::wire::chat::{
    ChatChunk, ChatUsage, ChunkCall, ChunkChoice, ChunkDelta, ChunkFunction, FunctionKind,
    PromptTokensDetails,
};
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::assemble::AssemblyError;
use super::failure;

/// The object that the data of an event, or a whole reply, is.
pub(super) fn object(data: &str) -> Result<Map<String, Value>, AssemblyError> {
    let value: Value = serde_json::from_str(data)
        .or_else(|error| computable(data).map_or(Err(error), |text| serde_json::from_str(&text)))
        .map_err(|error| AssemblyError::NoReply(format!("it is no JSON ({error})")))?;
    if let Some(said) = failure::said(&value) {
        return Err(AssemblyError::Failed(said));
    }
    match value {
        Value::Object(reply) => Ok(reply),
        _ => Err(AssemblyError::NoReply("it is no JSON object".to_owned())),
    }
}

/// A JSON text in which `null` stands for each number beyond all that can be computed with, such
/// as `1e309`; nothing where there is none.
fn computable(json: &str) -> Option<String> {
    let (mut kept, mut rest) = (String::new(), json);
    while let Some(at) = rest.find(|it: char| it == '"' || it == '-' || it.is_ascii_digit()) {
        let (before, token) = rest.split_at(at);
        let end = match token.starts_with('"') {
            true => string_end(token),
            false => token.find(|it: char| !(it.is_ascii_alphanumeric() || "+-.".contains(it))),
        };
        let (token, after) = token.split_at(end.unwrap_or(token.len()));
        // A string, what is no number, and what is one.
        let is_number = || serde_json::from_str::<IgnoredAny>(token).is_ok();
        let is_beyond = serde_json::from_str::<Value>(token).is_err() && is_number();
        kept.extend([before, if is_beyond { "null" } else { token }]);
        rest = after;
    }
    kept.push_str(rest);
    (kept != json).then_some(kept)
}

/// Where a string ends that a text begins with.
fn string_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    let inner = text.char_indices().skip(1).find(|(_, it)| {
        let ends = *it == '"' && !escaped;
        escaped = *it == '\\' && !escaped;
        ends
    });
    inner.map(|(at, _)| at + 1)
}

/// A text, or the texts of a list of parts; nothing where it is neither.
pub(super) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            Some(parts.iter().filter_map(|it| it.get("text").unwrap_or(it).as_str()).collect())
        }
        _ => None,
    }
}

/// Arguments as text: as they were written, or the text of the value that they are.
pub(super) fn arguments_of(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        value => Some(value.to_string()),
    }
}

/// A text that is not empty.
pub(super) fn word<'a>(of: &'a Value, name: &str) -> Option<&'a str> {
    of.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// A count of tokens; nothing where it is none.
pub(super) fn count(of: &Value, name: &str) -> Option<u32> {
    of.get(name).and_then(Value::as_u64).and_then(|count| u32::try_from(count).ok())
}

/// More text.
pub(super) fn text(text: String) -> ChunkDelta {
    ChunkDelta { content: Some(text).filter(|text| !text.is_empty()), ..ChunkDelta::default() }
}

/// More of a call, by its place among the calls.
pub(super) fn call(
    place: usize,
    id: Option<&str>,
    name: Option<&str>,
    arguments: Option<String>,
) -> ChunkCall {
    let id = id.filter(|id| !id.is_empty()).map(str::to_owned);
    ChunkCall {
        index: u32::try_from(place).unwrap_or(u32::MAX),
        kind: id.is_some().then_some(FunctionKind::Function),
        id,
        function: ChunkFunction { name: name.map(str::to_owned), arguments },
    }
}

/// More calls.
pub(super) fn calls(calls: Vec<ChunkCall>) -> ChunkDelta {
    let tool_calls = Some(calls).filter(|calls| !calls.is_empty());
    ChunkDelta { tool_calls, ..ChunkDelta::default() }
}

/// A piece of the one answer, and why it ended, if it did.
pub(super) fn chunk(delta: ChunkDelta, finish_reason: Option<String>) -> ChatChunk {
    let choice = ChunkChoice { index: 0, delta, finish_reason };
    ChatChunk { choices: vec![choice], ..ChatChunk::default() }
}

/// The tokens of a prompt and what of them came out of a cache and was written into it, and of
/// the answer.
pub(super) fn usage(prompt: u32, cached: u32, cache_write: u32, completion: u32) -> ChatUsage {
    let details = PromptTokensDetails { cached_tokens: cached, cache_write_tokens: cache_write };
    ChatUsage {
        prompt_tokens: prompt,
        completion_tokens: completion,
        total_tokens: prompt.saturating_add(completion),
        prompt_tokens_details: Some(details),
        ..ChatUsage::default()
    }
}

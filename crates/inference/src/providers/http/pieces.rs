//! Pure: what all formats are read into: pieces of the chat-completions format.
//!
//! Servers leave out what the formats demand, and write lists where a text belongs, or objects
//! where the text of one does. Nothing of that changes what was said. Must never invent text, a
//! name or an argument.

use automaton_core::wire::chat::{
    ChatChunk, ChunkCall, ChunkChoice, ChunkDelta, ChunkFunction, FunctionKind,
};
use serde_json::{Map, Value};

use super::assemble::AssemblyError;
use super::failure;
use crate::{halves, lenient};

/// The kinds of parts of a text that are thoughts.
const THOUGHTS: [&str; 6] =
    ["thinking", "redacted_thinking", "reasoning", "reasoning_content", "thought", "summary_text"];

/// Characters that are shown of words in the place of JSON.
const WORDS_MAX: usize = 200;

/// The number of a call of which a server tells the id alone.
pub(super) const NO_INDEX: u32 = u32::MAX;

/// Creates the error for an unexpected value in a place.
pub(super) fn unread(place: &str) -> AssemblyError {
    AssemblyError::NoReply(format!("{place} cannot be read"))
}

/// The object that the data of an event, or a whole reply, is.
pub(super) fn object(data: &str) -> Result<Map<String, Value>, AssemblyError> {
    let value = lenient::read_reply(data).map_err(|error| {
        // Some servers say in plain words what went wrong.
        let is_words = !data.trim_start().starts_with(['{', '[', '<']);
        let words: String = data.chars().take(if is_words { WORDS_MAX } else { 0 }).collect();
        let words = halves::join_text(&words);
        AssemblyError::NoReply(format!("it is no JSON ({error}) {words}").trim_end().to_owned())
    })?;
    if let Some(mut said) = failure::said_in_reply(&value) {
        said.text = halves::join_text(&said.text).into_owned();
        return Err(AssemblyError::Failed(said));
    }
    match value {
        Value::Object(reply) => Ok(reply),
        _ => Err(AssemblyError::NoReply("it is no JSON object".to_owned())),
    }
}

/// A text, or the texts of a list of parts without its thoughts; nothing where there is none.
///
/// # Errors
/// When it is something else.
pub(super) fn text_of(value: &Value) -> Result<Option<String>, AssemblyError> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        Value::Array(parts) => {
            let texts = parts.iter().map(part_of).collect::<Result<Vec<&str>, _>>()?;
            Ok(Some(texts.concat()))
        }
        part @ Value::Object(_) => part_of(part).map(|text| Some(text.to_owned())),
        _ => Err(unread("its text")),
    }
}

/// The text of a part, which is empty where the part is a thought or a picture.
fn part_of(part: &Value) -> Result<&str, AssemblyError> {
    let is_thought = part["type"].as_str().is_some_and(|kind| THOUGHTS.contains(&kind));
    let text = part.get("text").or_else(|| part.get("refusal")).unwrap_or(part);
    match text {
        _ if is_thought => Ok(""),
        Value::String(text) => Ok(text),
        Value::Object(fields) => {
            Ok(fields.get("value").and_then(Value::as_str).unwrap_or_default())
        }
        Value::Null => Ok(""),
        _ => Err(unread("a part of its text")),
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

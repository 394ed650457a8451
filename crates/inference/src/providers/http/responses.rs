//! Pure: `OpenAI`'s responses format.
//!
//! The server keeps nothing of what is asked (`store: false`): the whole conversation goes along
//! each time. Reasoning is kept apart. Must never take a kind of event or item that is new for an
//! error. Source: <https://platform.openai.com/docs/api-reference/responses>.

#[cfg(test)]
mod sold_tests;
mod to_chat;
mod writer;

use std::collections::{BTreeMap, BTreeSet};

use automaton_core::wire::chat::{ChatChunk, ChunkDelta, NamedTools, ToolChoice};
use serde::Serialize;
use serde_json::{Number, Value, json};

use super::asked::{AskedChat, AskedTool, is_blank};
use super::assemble::{AssemblyError, StreamPiece};
use super::failure::{self, ProviderErrorBody};
use super::pieces;
use super::thoughts::ThoughtLog;
use crate::provider::ChatRole;

pub use self::to_chat::chat_from_responses;
pub use self::writer::{ResponseHeading, responses_writer};

/// The least that the limit of an answer may be, in tokens.
const OUTPUT_TOKENS_MIN: u32 = 16;

/// The body of `POST /v1/responses`.
#[derive(Serialize)]
struct ResponsesBody<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    input: Vec<InputItem<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<FlatTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    max_output_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<Number>,
    store: bool,
    /// What comes along besides the usual.
    #[serde(skip_serializing_if = "<[&str]>::is_empty")]
    include: &'static [&'static str],
    stream: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum InputItem<'a> {
    Said {
        role: ChatRole,
        content: &'a str,
    },
    /// As the server wrote it.
    Thought(&'a Value),
    Called(CallItem<'a>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CallItem<'a> {
    FunctionCall { call_id: &'a str, name: &'a str, arguments: &'a str },
    FunctionCallOutput { call_id: &'a str, output: &'a str },
}

#[derive(Serialize)]
struct FlatTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    function: AskedTool<'a>,
    /// Whether the schema must be of the subset that can be enforced.
    strict: bool,
}

/// The body as JSON.
pub(super) fn body(asked: &AskedChat<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let mut input = Vec::new();
    for message in asked.said() {
        let content = &*message.text;
        input.extend(message.thoughts.iter().map(InputItem::Thought));
        if let Some(call_id) = &message.answers {
            input
                .push(InputItem::Called(CallItem::FunctionCallOutput { call_id, output: content }));
        } else if !is_blank(content) {
            input.push(InputItem::Said { role: message.role, content });
        }
        input.extend(message.calls.iter().map(|call| {
            let (name, arguments) = (&*call.tool, &*call.arguments);
            InputItem::Called(CallItem::FunctionCall { call_id: &call.id, name, arguments })
        }));
    }
    let tools = asked.tools.iter().copied();
    let tools = tools.map(|function| FlatTool { kind: "function", function, strict: false });
    serde_json::to_vec(&ResponsesBody {
        model: asked.model,
        instructions: asked.rules(),
        input,
        tools: tools.collect(),
        tool_choice: asked.tool_choice.map(choice),
        max_output_tokens: asked.max_tokens.max(OUTPUT_TOKENS_MIN),
        temperature: asked.temperature.clone(),
        top_p: asked.top_p.clone(),
        store: false,
        // The server keeps none of its thoughts either.
        include: if asked.thinks { &["reasoning.encrypted_content"] } else { &[] },
        stream: asked.stream,
    })
}

/// Those that may be called are the only ones in the list.
fn choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Mode(mode) => json!(mode),
        ToolChoice::Named(NamedTools::Function { function }) => {
            json!({ "type": "function", "name": function.name })
        }
        ToolChoice::Named(NamedTools::AllowedTools { allowed_tools }) => json!(allowed_tools.mode),
    }
}

/// Reads the events of one reply.
#[derive(Debug, Default)]
pub(super) struct ResponsesReader {
    /// The calls so far, by their items: the place of each one among the calls, and whether any
    /// argument has come.
    calls: BTreeMap<String, (usize, bool)>,
    /// How many there are.
    called: usize,
    /// The items of which text has come.
    texts: BTreeSet<String>,
    /// Its thoughts, as items that only the server can read.
    pub(super) thoughts: ThoughtLog,
}

impl ResponsesReader {
    /// What the data of an event, or a whole reply, says.
    pub(super) fn piece(&mut self, data: &str) -> Result<StreamPiece, AssemblyError> {
        if data.trim() == "[DONE]" {
            return Ok(StreamPiece::Done);
        }
        let event = Value::Object(pieces::object(data)?);
        let response = &event["response"];
        let item = || item_of(&event);
        let delta = match event["type"].as_str() {
            Some("response.created") => {
                let model = pieces::word(response, "model").unwrap_or_default().to_owned();
                return Ok(StreamPiece::Chunk(ChatChunk { model, ..ChatChunk::default() }));
            }
            Some("response.output_text.delta" | "response.refusal.delta") => {
                self.text(item(), &event["delta"])
            }
            Some("response.function_call_arguments.delta") => {
                self.arguments(&item(), &event["delta"])
            }
            Some("response.function_call_arguments.done") => self.all_arguments(&item(), &event),
            Some("response.output_item.added") => self.begun(item(), &event["item"]),
            Some("response.output_item.done") => self.whole(item(), &event["item"]),
            Some("response.completed" | "response.incomplete") => return Ok(self.ended(response)),
            Some("response.failed" | "response.cancelled" | "error") => return Err(failed(&event)),
            None if event["output"].is_array() => match event["status"].as_str() {
                Some("failed" | "cancelled") => return Err(failed(&event)),
                _ => return Ok(self.ended(&event)),
            },
            _ => return Ok(StreamPiece::Chunk(ChatChunk::default())),
        };
        Ok(StreamPiece::Chunk(pieces::chunk(delta, None)))
    }

    fn text(&mut self, item: String, said: &Value) -> ChunkDelta {
        self.texts.insert(item);
        pieces::text(pieces::text_of(said).unwrap_or_default())
    }

    /// A call that is new.
    fn begun(&mut self, item: String, said: &Value) -> ChunkDelta {
        if said["type"] != "function_call" || self.calls.contains_key(&item) {
            return ChunkDelta::default();
        }
        let place = self.called;
        self.called += 1;
        let arguments = pieces::arguments_of(&said["arguments"]).filter(|it| !it.is_empty());
        self.calls.insert(item, (place, arguments.is_some()));
        let id = pieces::word(said, "call_id").or_else(|| pieces::word(said, "id"));
        let call = pieces::call(place, id, pieces::word(said, "name"), arguments);
        pieces::calls(vec![call])
    }

    /// Of an item that is complete what has not come yet.
    fn whole(&mut self, item: String, said: &Value) -> ChunkDelta {
        match said["type"].as_str() {
            Some("message") if !self.texts.contains(&item) => {
                let parts = said["content"].as_array().into_iter().flatten();
                let of = |part: &Value| {
                    let text = pieces::word(part, "text").or_else(|| pieces::word(part, "refusal"));
                    text.map(str::to_owned)
                };
                let text: String = match &said["content"] {
                    Value::String(text) => text.clone(),
                    _ => parts.filter_map(of).collect(),
                };
                self.text(item, &Value::String(text))
            }
            Some("reasoning") if said["encrypted_content"].is_string() => {
                // Its id is that of something which the server was to keep.
                let summary = said["summary"].as_array().cloned().unwrap_or_default();
                self.thoughts.add(json!({ "type": "reasoning", "summary": summary,
                    "encrypted_content": said["encrypted_content"] }));
                ChunkDelta::default()
            }
            Some("function_call") => {
                let begun = self.begun(item.clone(), said);
                let rest = match begun.tool_calls {
                    Some(_) => begun,
                    None => self.all_arguments(&item, said),
                };
                if item.is_empty() {
                    // Nothing would tell the next one from it.
                    self.calls.remove(&item);
                }
                rest
            }
            _ => ChunkDelta::default(),
        }
    }

    fn arguments(&mut self, item: &str, more: &Value) -> ChunkDelta {
        let arguments = pieces::arguments_of(more).filter(|it| !it.is_empty());
        let (Some((place, has_any)), Some(arguments)) = (self.calls.get_mut(item), arguments)
        else {
            return ChunkDelta::default();
        };
        *has_any = true;
        pieces::calls(vec![pieces::call(*place, None, None, Some(arguments))])
    }

    /// The arguments of a call of which none have come.
    fn all_arguments(&mut self, item: &str, said: &Value) -> ChunkDelta {
        match self.calls.get(item) {
            Some((_, false)) => self.arguments(item, &said["arguments"]),
            _ => ChunkDelta::default(),
        }
    }

    /// The end of a reply. Some servers say everything only there.
    fn ended(&mut self, response: &Value) -> StreamPiece {
        let mut all = ChunkDelta::default();
        if self.texts.is_empty() && self.calls.is_empty() {
            for (place, item) in response["output"].as_array().into_iter().flatten().enumerate() {
                let said = self.whole(format!("#{place}"), item);
                all.content.get_or_insert_default().push_str(&said.content.unwrap_or_default());
                all.tool_calls.get_or_insert_default().extend(said.tool_calls.unwrap_or_default());
            }
        }
        let reason = response["incomplete_details"]["reason"].as_str();
        let finish = match (response["status"].as_str(), reason) {
            (_, Some("content_filter")) => "content_filter",
            (Some("incomplete"), _) | (_, Some(_)) => "length",
            _ => "stop",
        };
        let usage = &response["usage"];
        let cached = pieces::count(&usage["input_tokens_details"], "cached_tokens").unwrap_or(0);
        let counts = (pieces::count(usage, "input_tokens"), pieces::count(usage, "output_tokens"));
        StreamPiece::Last(ChatChunk {
            model: pieces::word(response, "model").unwrap_or_default().to_owned(),
            usage: match counts {
                (Some(prompt), Some(answer)) => Some(pieces::usage(prompt, cached, 0, answer)),
                _ => None,
            },
            ..pieces::chunk(all, Some(finish.to_owned()))
        })
    }
}

/// What an event is about: the place of an item, or its id where that is not told.
fn item_of(event: &Value) -> String {
    let item = &event["item"];
    let id = || {
        let id = pieces::word(event, "item_id").or_else(|| pieces::word(item, "id"));
        id.or_else(|| pieces::word(item, "call_id"))
    };
    match event["output_index"].as_u64() {
        Some(place) => format!("#{place}"),
        None => id().unwrap_or_default().to_owned(),
    }
}

/// What an event says went wrong.
fn failed(event: &Value) -> AssemblyError {
    let said =
        failure::said(&event["response"]).or_else(|| failure::said(&json!({ "error": event })));
    let said =
        said.filter(|_| event["response"]["error"].is_object() || event.get("message").is_some());
    AssemblyError::Failed(said.unwrap_or_else(|| ProviderErrorBody {
        text: "it says no more than that it failed".to_owned(),
        ..ProviderErrorBody::default()
    }))
}

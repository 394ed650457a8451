//! Pure: `OpenAI`'s responses format.
//!
//! The server keeps nothing of what is asked (`store: false`): the whole conversation goes along
//! each time. Reasoning is kept apart. Must never take a kind of event or item that is new for an
//! error. Source: <https://platform.openai.com/docs/api-reference/responses>.

#[cfg(test)]
mod sold_tests;
mod to_chat;
mod writer;

use std::collections::BTreeMap;

use automaton_core::wire::chat::{ChatChunk, ChunkDelta, NamedTools, ToolChoice};
use serde::Serialize;
use serde_json::{Number, Value, json};

use super::asked::{AskedChat, AskedTool, is_blank};
use super::assemble::{AssemblyError, StreamPiece};
use super::failure::{self, ProviderErrorBody};
use super::finish::{FinishMeaning, meaning_of};
use super::frames::DONE;
use super::pieces::{self, unread};
use super::thoughts::ThoughtLog;
use super::usage::read_chat_usage;
use crate::halves;
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
    /// Additional content of the reply.
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
    /// True if the schema must be of the enforceable subset.
    strict: bool,
}

/// The body as JSON.
pub(super) fn body(asked: &AskedChat<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let mut input = Vec::new();
    for message in asked.conversation() {
        let content = &*message.text;
        input.extend(message.thoughts.iter().map(InputItem::Thought));
        if let Some(call_id) = &message.answers {
            input
                .push(InputItem::Called(CallItem::FunctionCallOutput { call_id, output: content }));
        } else if !is_blank(content) {
            input.push(InputItem::Said { role: message.role, content });
        }
        input.extend(message.calls.iter().map(|call| {
            let name = &*call.tool;
            let arguments = &*call.arguments;
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
    /// The calls so far, by their items: the place of each one among the calls, and the arguments that
    /// have come.
    calls: BTreeMap<String, (usize, String)>,
    /// Number of calls.
    called: usize,
    /// The items by the ids that events name them by, which do not tell their place.
    named: BTreeMap<String, String>,
    /// The text that has come, by its items.
    texts: BTreeMap<String, String>,
    /// Its thoughts, as items that only the server can read.
    pub(super) thoughts: ThoughtLog,
}

impl ResponsesReader {
    /// Reads the data of an event or a whole reply.
    pub(super) fn piece(&mut self, data: &str) -> Result<StreamPiece, AssemblyError> {
        if data.trim() == DONE {
            return Ok(StreamPiece::Done);
        }
        let event = Value::Object(pieces::object(data)?);
        let response = &event["response"];
        let item = self.item_of(&event);
        let delta = match event["type"].as_str() {
            Some("response.created") => {
                let model = pieces::word(response, "model").unwrap_or_default().to_owned();
                return Ok(StreamPiece::Chunk(ChatChunk { model, ..ChatChunk::default() }));
            }
            Some("response.output_text.delta" | "response.refusal.delta") => {
                self.text(item, &event["delta"])?
            }
            Some("response.function_call_arguments.delta") => {
                self.arguments(&item, &event["delta"])?
            }
            Some("response.function_call_arguments.done") => self.all_arguments(&item, &event),
            Some("response.output_item.added") => self.begun(item, &event["item"]),
            Some("response.output_item.done") => self.whole(item, &event["item"])?,
            Some("response.completed" | "response.incomplete") => return self.ended(response),
            Some("response.failed" | "response.cancelled" | "error") => return Err(failed(&event)),
            None if event["output"].is_array() => match event["status"].as_str() {
                Some("failed" | "cancelled") => return Err(failed(&event)),
                _ => return self.ended(&event),
            },
            _ => return Ok(StreamPiece::Chunk(ChatChunk::default())),
        };
        Ok(StreamPiece::Chunk(pieces::chunk(delta, None)))
    }

    /// The item that an event is about: its place, or its id where no event tells its place.
    fn item_of(&mut self, event: &Value) -> String {
        let item = &event["item"];
        let ids = [pieces::word(event, "item_id"), pieces::word(item, "id")];
        let ids = ids.into_iter().chain([pieces::word(item, "call_id")]).flatten();
        let ids: Vec<String> = ids.map(str::to_owned).collect();
        if let Some(place) = event["output_index"].as_u64() {
            let key = format!("#{place}");
            self.named.extend(ids.into_iter().map(|id| (id, key.clone())));
            return key;
        }
        let known = ids.iter().find_map(|id| self.named.get(id));
        known.or(ids.first()).cloned().unwrap_or_default()
    }

    fn text(&mut self, item: String, said: &Value) -> Result<ChunkDelta, AssemblyError> {
        let text = pieces::text_of(said)?.unwrap_or_default();
        self.texts.entry(item).or_default().push_str(&text);
        Ok(pieces::text(text))
    }

    /// A call that is new.
    fn begun(&mut self, item: String, said: &Value) -> ChunkDelta {
        if said["type"] != "function_call" || self.calls.contains_key(&item) {
            return ChunkDelta::default();
        }
        let place = self.called;
        self.called += 1;
        let arguments = pieces::arguments_of(&said["arguments"]);
        // What follows an empty object is what it stands for.
        let arguments = arguments.filter(|it| !matches!(it.trim(), "" | "{}"));
        self.calls.insert(item, (place, arguments.clone().unwrap_or_default()));
        let id = pieces::word(said, "call_id").or_else(|| pieces::word(said, "id"));
        let call = pieces::call(place, id, pieces::word(said, "name"), arguments);
        pieces::calls(vec![call])
    }

    /// Returns the missing part of an item that is complete.
    fn whole(&mut self, item: String, said: &Value) -> Result<ChunkDelta, AssemblyError> {
        Ok(match said["type"].as_str() {
            Some("message") => {
                let text = pieces::text_of(&said["content"])?.unwrap_or_default();
                let come = self.texts.get(&item).map(String::as_str).unwrap_or_default();
                let rest = rest_of(come, &text).unwrap_or_default();
                self.text(item, &Value::from(rest))?
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
        })
    }

    fn arguments(&mut self, item: &str, more: &Value) -> Result<ChunkDelta, AssemblyError> {
        let Some(arguments) = pieces::arguments_of(more).filter(|it| !it.is_empty()) else {
            return Ok(ChunkDelta::default());
        };
        let Some((place, come)) = self.calls.get_mut(item) else {
            return Err(unread("a piece of a call that never began"));
        };
        come.push_str(&arguments);
        Ok(pieces::calls(vec![pieces::call(*place, None, None, Some(arguments))]))
    }

    /// Returns the missing part of a call's arguments. If they differ from the earlier part, they
    /// are appended, so that they are no valid call.
    fn all_arguments(&mut self, item: &str, said: &Value) -> ChunkDelta {
        let all = pieces::arguments_of(&said["arguments"]).filter(|it| !it.trim().is_empty());
        let (Some((place, come)), Some(all)) = (self.calls.get_mut(item), all) else {
            return ChunkDelta::default();
        };
        let rest = rest_of(come, &all).unwrap_or_else(|| all.clone());
        if rest.is_empty() {
            return ChunkDelta::default();
        }
        come.push_str(&rest);
        pieces::calls(vec![pieces::call(*place, None, None, Some(rest))])
    }

    /// The end of a reply. Some servers say everything only there.
    fn ended(&mut self, response: &Value) -> Result<StreamPiece, AssemblyError> {
        let mut all = ChunkDelta::default();
        if self.texts.is_empty() && self.calls.is_empty() {
            for (place, item) in response["output"].as_array().into_iter().flatten().enumerate() {
                let said = self.whole(format!("#{place}"), item)?;
                all.content.get_or_insert_default().push_str(&said.content.unwrap_or_default());
                all.tool_calls.get_or_insert_default().extend(said.tool_calls.unwrap_or_default());
            }
        }
        Ok(StreamPiece::Last(ChatChunk {
            model: pieces::word(response, "model").unwrap_or_default().to_owned(),
            usage: read_chat_usage(&response["usage"]),
            ..pieces::chunk(all, Some(finish_word(response)))
        }))
    }
}

/// Returns the reason for the end of a reply: the reason for which it is incomplete, else its
/// status.
fn finish_word(response: &Value) -> String {
    let reason = pieces::word(&response["incomplete_details"], "reason");
    let status = pieces::word(response, "status").unwrap_or("completed");
    match reason {
        // What is incomplete has no ordinary end.
        Some(reason) if meaning_of(reason) == FinishMeaning::Unknown => "incomplete".to_owned(),
        Some(reason) => reason.to_owned(),
        None => status.to_owned(),
    }
}

/// Returns the missing part of a text; `None` if the earlier part is no beginning of it.
fn rest_of(come: &str, all: &str) -> Option<String> {
    let come = halves::join_text(come);
    let all = halves::join_text(all);
    all.strip_prefix(&*come).map(str::to_owned)
}

/// Reads the error of an event.
fn failed(event: &Value) -> AssemblyError {
    let said = failure::reported_error(&event["response"])
        .or_else(|| failure::reported_error(&json!({ "error": event })));
    let said =
        said.filter(|_| event["response"]["error"].is_object() || event.get("message").is_some());
    AssemblyError::Failed(said.unwrap_or_else(|| ProviderErrorBody {
        text: "it says no more than that it failed".to_owned(),
        ..ProviderErrorBody::default()
    }))
}

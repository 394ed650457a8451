//! Pure: the body of a request.
//!
//! Roles take turns, a call's result stands at the head of the message behind the call, and no
//! text is blank: the server refuses anything else. What stays the same from one request to the
//! next is marked, so that the server keeps it and charges a tenth for it.

use automaton_core::tool::ToolSpec;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Number, Value, json};

use crate::catalogue::ModelInfo;
use crate::error::InferenceError;
use crate::provider::{ChatRole, CompletionRequest, Message};

/// The key under which arguments are sent back that are no JSON object, as Anthropic's
/// documentation of streamed arguments has it.
const INVALID: &str = "INVALID_JSON";

/// The body of `POST /v1/messages`.
#[derive(Serialize)]
pub(super) struct MessagesBody<'a> {
    pub(super) model: &'a str,
    pub(super) max_tokens: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) system: Vec<ContentBlock>,
    pub(super) messages: Vec<RoleMessage>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tools: Vec<ToolDefinition<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) top_p: Option<Number>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) stop_sequences: Vec<String>,
    pub(super) stream: bool,
}

/// What one side says.
#[derive(Serialize)]
pub(super) struct RoleMessage {
    role: &'static str,
    content: Vec<ContentBlock>,
}

/// A part of what one side says.
#[derive(Serialize)]
pub(super) struct ContentBlock {
    #[serde(flatten)]
    kind: BlockKind,
    /// Up to here the server keeps what it has read.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockKind {
    Text { text: String },
    ToolUse { id: String, name: String, input: Box<RawValue> },
    ToolResult { tool_use_id: String, content: String },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CacheControl {
    Ephemeral,
}

/// A tool.
#[derive(Serialize)]
pub(super) struct ToolDefinition<'a> {
    pub(super) name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) description: &'a str,
    pub(super) input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cache_control: Option<Value>,
}

/// One message before roles are made to take turns.
pub(super) struct SpokenMessage {
    pub(super) role: ChatRole,
    pub(super) text: String,
    /// Id, tool and arguments of each call.
    pub(super) calls: Vec<(String, String, String)>,
    /// The call that it answers.
    pub(super) answers: Option<String>,
}

/// The body as JSON.
///
/// # Errors
/// [`InferenceError::Encode`] when it cannot be written.
pub(in crate::providers::http) fn body(
    info: &ModelInfo,
    ask: &CompletionRequest,
) -> Result<Vec<u8>, InferenceError> {
    let encode = |source| InferenceError::Encode { source };
    let spoken = ask.messages.iter().map(spoken).collect();
    let (system, messages) = conversation(spoken).map_err(encode)?;
    let allowed = ask.tools.iter().filter(|tool| !ask.left_out.contains(&tool.name));
    let mut tools: Vec<ToolDefinition<'_>> = allowed.map(definition).collect();
    mark_last(&mut tools);
    let body = MessagesBody {
        model: info.id.as_str(),
        max_tokens: ask.max_tokens,
        system,
        messages,
        tools,
        tool_choice: None,
        // The newest models refuse one that is not theirs.
        temperature: None,
        top_p: None,
        stop_sequences: Vec::new(),
        stream: true,
    };
    serde_json::to_vec(&body).map_err(encode)
}

fn spoken(message: &Message) -> SpokenMessage {
    let calls = message.calls.iter();
    SpokenMessage {
        role: message.role,
        text: message.content.clone(),
        calls: calls
            .map(|call| (call.id.to_string(), call.tool.clone(), call.arguments.clone()))
            .collect(),
        answers: message.answers.map(|id| id.to_string()),
    }
}

fn definition(tool: &ToolSpec) -> ToolDefinition<'_> {
    let ToolSpec { name, description, parameters, .. } = tool;
    ToolDefinition {
        name: name.as_str(),
        description,
        input_schema: parameters,
        cache_control: None,
    }
}

/// Has the server keep all tools.
pub(super) fn mark_last(tools: &mut [ToolDefinition<'_>]) {
    if let Some(last) = tools.last_mut() {
        last.cache_control = Some(json!({ "type": "ephemeral" }));
    }
}

/// The rules, and what was said: what the same side says twice in a row is one message.
pub(super) fn conversation(
    spoken: Vec<SpokenMessage>,
) -> Result<(Vec<ContentBlock>, Vec<RoleMessage>), serde_json::Error> {
    let (mut system, mut messages) = (Vec::new(), Vec::<RoleMessage>::new());
    for SpokenMessage { role, text, calls, answers } in spoken {
        let (role, blocks) = match (role, answers) {
            (ChatRole::System, _) => {
                system.extend(text_block(text));
                continue;
            }
            (ChatRole::Tool, Some(tool_use_id)) => {
                ("user", vec![block(BlockKind::ToolResult { tool_use_id, content: text })])
            }
            (ChatRole::Assistant, _) => {
                let mut blocks: Vec<ContentBlock> = text_block(text).into_iter().collect();
                for (id, name, arguments) in calls {
                    let input = input(arguments)?;
                    blocks.push(block(BlockKind::ToolUse { id, name, input }));
                }
                ("assistant", blocks)
            }
            (ChatRole::User | ChatRole::Tool, _) => {
                ("user", text_block(text).into_iter().collect())
            }
        };
        match messages.last_mut() {
            Some(last) if last.role == role => last.content.extend(blocks),
            _ if blocks.is_empty() => {}
            _ => messages.push(RoleMessage { role, content: blocks }),
        }
    }
    // The last message has what is true at this moment alone.
    let before_last = messages.iter_mut().rev().nth(1);
    let kept = [system.last_mut(), before_last.and_then(|it| it.content.last_mut())];
    for block in kept.into_iter().flatten() {
        block.cache_control = Some(CacheControl::Ephemeral);
    }
    Ok((system, messages))
}

/// A text that says something.
fn text_block(text: String) -> Option<ContentBlock> {
    (!text.trim().is_empty()).then(|| block(BlockKind::Text { text }))
}

const fn block(kind: BlockKind) -> ContentBlock {
    ContentBlock { kind, cache_control: None }
}

/// Arguments as they were written, where they are an object.
pub(super) fn input(arguments: String) -> Result<Box<RawValue>, serde_json::Error> {
    if arguments.trim().is_empty() {
        return to_raw_value(&Map::new());
    }
    match serde_json::from_str::<Map<String, Value>>(&arguments) {
        Ok(_) => RawValue::from_string(arguments),
        Err(_) => to_raw_value(&json!({ INVALID: arguments })),
    }
}

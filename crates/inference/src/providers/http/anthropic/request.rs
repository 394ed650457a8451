//! Pure: the body of a request.
//!
//! Roles take turns, a call's result stands at the head of the message behind the call, and no
//! text is blank: the server refuses anything else. What stays the same from one request to the
//! next is marked, so that the server keeps it and charges a tenth for it.

use automaton_core::wire::chat::{NamedTools, ToolChoice, ToolMode};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Number, Value, json};

use crate::provider::ChatRole;
use crate::providers::http::asked::{AskedChat, AskedTool, SpokenMessage, as_object, is_blank};

/// The body of `POST /v1/messages`.
#[derive(Serialize)]
struct MessagesBody<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<ContentBlock>,
    messages: Vec<RoleMessage>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ToolDefinition<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<Number>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stop_sequences: Vec<String>,
    stream: bool,
}

/// Content of one side.
#[derive(Serialize)]
struct RoleMessage {
    role: &'static str,
    content: Vec<ContentBlock>,
}

/// A part of what one side says.
#[derive(Serialize)]
struct ContentBlock {
    #[serde(flatten)]
    kind: BlockKind,
    /// Up to here the server keeps what it has read.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockKind {
    Text {
        text: String,
    },
    ToolUse {
        id: String,
        name: String,
        input: Box<RawValue>,
    },
    ToolResult {
        tool_use_id: String,
        content: String,
    },
    /// As the server wrote it.
    #[serde(untagged)]
    Thought(Value),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CacheControl {
    Ephemeral,
}

/// A tool.
#[derive(Serialize)]
struct ToolDefinition<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

/// The body as JSON.
pub(in crate::providers::http) fn body(asked: AskedChat<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let (system, messages) = conversation(asked.messages)?;
    let mut tools: Vec<ToolDefinition<'_>> = asked.tools.into_iter().map(definition).collect();
    if let Some(last) = tools.last_mut() {
        // Has the server keep all of them.
        last.cache_control = Some(CacheControl::Ephemeral);
    }
    serde_json::to_vec(&MessagesBody {
        model: asked.model,
        max_tokens: asked.max_tokens,
        system,
        messages,
        tools,
        tool_choice: asked.tool_choice.map(choice),
        // From 0 to 1 here, from 0 to 2 elsewhere; where none is named it is 1, the nearest to more.
        temperature: asked.temperature.filter(|it| it.as_f64().is_some_and(|it| it <= 1.0)),
        top_p: asked.top_p,
        stop_sequences: asked.stop,
        stream: asked.stream,
    })
}

const fn definition(tool: AskedTool<'_>) -> ToolDefinition<'_> {
    let AskedTool { name, description, parameters } = tool;
    ToolDefinition { name, description, input_schema: parameters, cache_control: None }
}

fn choice(choice: &ToolChoice) -> Value {
    let of_mode = |mode: &ToolMode| match mode {
        ToolMode::None => json!({ "type": "none" }),
        ToolMode::Auto => json!({ "type": "auto" }),
        ToolMode::Required => json!({ "type": "any" }),
    };
    match choice {
        ToolChoice::Mode(mode) => of_mode(mode),
        ToolChoice::Named(NamedTools::Function { function }) => {
            json!({ "type": "tool", "name": function.name })
        }
        ToolChoice::Named(NamedTools::AllowedTools { allowed_tools }) => {
            of_mode(&allowed_tools.mode)
        }
    }
}

/// The rules, and what was said: what the same side says twice in a row is one message.
fn conversation(
    spoken: Vec<SpokenMessage<'_>>,
) -> Result<(Vec<ContentBlock>, Vec<RoleMessage>), serde_json::Error> {
    let mut system = Vec::new();
    let mut messages = Vec::<RoleMessage>::new();
    for SpokenMessage { role, text, calls, answers, thoughts } in spoken {
        let (role, blocks) = match (role, answers) {
            (ChatRole::System, _) => {
                system.extend(text_block(&text));
                continue;
            }
            (ChatRole::Tool, Some(tool_use_id)) => (
                "user",
                vec![block(BlockKind::ToolResult { tool_use_id, content: text.into_owned() })],
            ),
            (ChatRole::Assistant, _) => {
                let thoughts = thoughts.into_iter().map(BlockKind::Thought).map(block);
                let mut blocks: Vec<ContentBlock> = thoughts.chain(text_block(&text)).collect();
                for call in calls {
                    let id = call.id;
                    let name = call.tool.into_owned();
                    let input = as_object(&call.arguments)?;
                    blocks.push(block(BlockKind::ToolUse { id, name, input }));
                }
                ("assistant", blocks)
            }
            (ChatRole::User | ChatRole::Tool, _) => {
                ("user", text_block(&text).into_iter().collect())
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
fn text_block(text: &str) -> Option<ContentBlock> {
    (!is_blank(text)).then(|| block(BlockKind::Text { text: text.to_owned() }))
}

const fn block(kind: BlockKind) -> ContentBlock {
    ContentBlock { kind, cache_control: None }
}

//! Pure: a request of the chat-completions format, written by anybody, in Anthropic's.
//!
//! Several answers, an answer in JSON by force, and what is no text are refused with the field's
//! name. What only tunes a sampler that this format does not have, as a seed, is left out.

use automaton_core::wire::chat::{ChatCall, ChatTool, NamedTools, ToolChoice, ToolMode};
use serde::Deserialize;
use serde_json::{Number, Value, json};

use super::request::{MessagesBody, SpokenMessage, ToolDefinition, conversation, mark_last};
use crate::provider::ChatRole;

/// A request cannot be put to a model behind Anthropic's format; the sentence is for who sent it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct UntranslatableChat {
    /// What is wrong with it.
    what: String,
}

#[derive(Deserialize)]
struct ForeignChat {
    model: String,
    messages: Vec<ForeignMessage>,
    #[serde(default)]
    tools: Vec<ChatTool>,
    tool_choice: Option<ToolChoice>,
    max_tokens: u32,
    #[serde(default)]
    stream: bool,
    temperature: Option<Number>,
    top_p: Option<Number>,
    stop: Option<StopSequences>,
    n: Option<u32>,
    response_format: Option<ResponseFormat>,
}

#[derive(Deserialize)]
struct ResponseFormat {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum StopSequences {
    One(String),
    Some(Vec<String>),
}

#[derive(Deserialize)]
struct ForeignMessage {
    role: ForeignRole,
    content: Option<ForeignContent>,
    tool_calls: Option<Vec<ChatCall>>,
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ForeignRole {
    #[serde(alias = "developer")]
    System,
    User,
    Assistant,
    #[serde(alias = "function")]
    Tool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ForeignContent {
    Whole(String),
    Parts(Vec<ForeignPart>),
}

#[derive(Deserialize)]
struct ForeignPart {
    text: Option<String>,
}

/// The body in Anthropic's format. The limit of tokens must be there, as `max_tokens`.
///
/// # Errors
/// [`UntranslatableChat`] when it is no request, or asks for what the format does not have.
pub fn body_from_chat(body: &[u8]) -> Result<Vec<u8>, UntranslatableChat> {
    let bad = |what: &str| UntranslatableChat { what: what.to_owned() };
    let unread = |error: serde_json::Error| UntranslatableChat { what: error.to_string() };
    let chat: ForeignChat = serde_json::from_slice(body).map_err(unread)?;
    if chat.n.is_some_and(|n| n != 1) {
        return Err(bad("this model gives one answer: n must be 1"));
    }
    if chat.response_format.is_some_and(|format| format.kind != "text") {
        return Err(bad("this model answers in text: response_format is not to be had"));
    }
    let spoken = chat.messages.into_iter().map(spoken).collect::<Result<Vec<_>, _>>()?;
    let (system, messages) = conversation(spoken).map_err(unread)?;
    // No tools are called where none are offered.
    let none = matches!(chat.tool_choice, Some(ToolChoice::Mode(ToolMode::None)));
    let allowed = |tool: &&ChatTool| !none && allows(chat.tool_choice.as_ref(), tool);
    let mut tools: Vec<ToolDefinition<'_>> =
        chat.tools.iter().filter(allowed).map(definition).collect();
    mark_last(&mut tools);
    let tool_choice = chat.tool_choice.as_ref().filter(|_| !tools.is_empty()).map(choice);
    let stop_sequences = match chat.stop {
        None => Vec::new(),
        Some(StopSequences::One(text)) => vec![text],
        Some(StopSequences::Some(texts)) => texts,
    };
    let body = MessagesBody {
        model: &chat.model,
        max_tokens: chat.max_tokens,
        system,
        messages,
        tools,
        tool_choice,
        // From 0 to 1 here, from 0 to 2 there; where none is named it is 1, the nearest to more.
        temperature: chat.temperature.filter(|it| it.as_f64().is_some_and(|it| it <= 1.0)),
        top_p: chat.top_p,
        stop_sequences,
        stream: chat.stream,
    };
    serde_json::to_vec(&body).map_err(unread)
}

fn spoken(message: ForeignMessage) -> Result<SpokenMessage, UntranslatableChat> {
    let text = match message.content {
        None => String::new(),
        Some(ForeignContent::Whole(text)) => text,
        Some(ForeignContent::Parts(parts)) => {
            let texts: Option<Vec<String>> = parts.into_iter().map(|part| part.text).collect();
            let what = "a part of a message is no text, and this cloud passes on nothing else";
            texts.ok_or_else(|| UntranslatableChat { what: what.to_owned() })?.join("\n")
        }
    };
    let role = match message.role {
        ForeignRole::System => ChatRole::System,
        ForeignRole::User => ChatRole::User,
        ForeignRole::Assistant => ChatRole::Assistant,
        ForeignRole::Tool => ChatRole::Tool,
    };
    let calls = message.tool_calls.into_iter().flatten();
    Ok(SpokenMessage {
        role,
        text,
        calls: calls.map(|it| (it.id, it.function.name, it.function.arguments)).collect(),
        answers: message.tool_call_id,
    })
}

fn definition(tool: &ChatTool) -> ToolDefinition<'_> {
    let function = &tool.function;
    ToolDefinition {
        name: &function.name,
        description: &function.description,
        input_schema: &function.parameters,
        cache_control: None,
    }
}

/// Whether a list of tools that may be called has one.
fn allows(choice: Option<&ToolChoice>, tool: &ChatTool) -> bool {
    match choice {
        Some(ToolChoice::Named(NamedTools::AllowedTools { allowed_tools })) => {
            allowed_tools.tools.iter().any(|it| it.function.name == tool.function.name)
        }
        _ => true,
    }
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

//! Pure: a request of the chat-completions format, written by anybody, in another one.
//!
//! Several answers, an answer in JSON by force, and what is no text are refused with the field's
//! name. What only tunes a sampler that a format does not have, as a seed, is left out.

use std::borrow::Cow;

use automaton_core::wire::chat::{ChatCall, ChatTool, NamedTools, ToolChoice, ToolMode};
use serde::Deserialize;
use serde_json::Number;

use super::ApiFormat;
use super::asked::{AskedChat, AskedTool, SpokenCall, SpokenMessage};
use super::foreign::{TextOrParts, UntranslatableRequest};
use super::format::BodyWriter;
use crate::provider::ChatRole;

#[derive(Deserialize)]
struct ForeignChat {
    model: String,
    messages: Vec<ForeignMessage>,
    #[serde(default)]
    tools: Vec<ChatTool>,
    tool_choice: Option<ToolChoice>,
    #[serde(alias = "max_completion_tokens")]
    max_tokens: u32,
    #[serde(default)]
    stream: bool,
    seed: Option<u64>,
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
    content: Option<TextOrParts<ForeignPart>>,
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
struct ForeignPart {
    text: Option<String>,
}

/// The body in a format. The limit of tokens must be there.
pub(super) fn translated(
    format: ApiFormat,
    write: BodyWriter,
    body: &[u8],
    window: u32,
) -> Result<Vec<u8>, UntranslatableRequest> {
    let chat: ForeignChat =
        serde_json::from_slice(body).map_err(|error| UntranslatableRequest::unread(&error))?;
    if chat.n.is_some_and(|n| n != 1) {
        return Err(UntranslatableRequest::new("this model gives one answer: n must be 1"));
    }
    if chat.response_format.is_some_and(|format| format.kind != "text") {
        return Err(UntranslatableRequest::new(
            "this model answers in text: response_format is not to be had",
        ));
    }
    let stop = match chat.stop {
        None => Vec::new(),
        Some(StopSequences::One(text)) => vec![text],
        Some(StopSequences::Some(texts)) => texts,
    };
    if format == ApiFormat::Responses && !stop.is_empty() {
        return Err(UntranslatableRequest::new(
            "this model ends where it likes: stop is not to be had",
        ));
    }
    if format == ApiFormat::Ollama && chat.tool_choice.as_ref().is_some_and(demands_a_call) {
        return Err(UntranslatableRequest::new(
            "this model calls tools as it likes: tool_choice is not to be had",
        ));
    }
    // No tools are called where none are offered.
    let none = matches!(chat.tool_choice, Some(ToolChoice::Mode(ToolMode::None)));
    let allowed = |tool: &&ChatTool| !none && allows(chat.tool_choice.as_ref(), tool);
    let tools = chat.tools.iter().filter(allowed).map(|tool| AskedTool {
        name: &tool.function.name,
        description: &tool.function.description,
        parameters: &tool.function.parameters,
    });
    let tools: Vec<AskedTool<'_>> = tools.collect();
    let asked = AskedChat {
        model: &chat.model,
        messages: chat.messages.into_iter().map(spoken).collect::<Result<_, _>>()?,
        tool_choice: chat.tool_choice.as_ref().filter(|_| !tools.is_empty()),
        tools,
        thinks: false,
        max_tokens: chat.max_tokens,
        window,
        temperature: chat.temperature,
        top_p: chat.top_p,
        seed: chat.seed,
        stop,
        stream: chat.stream,
    };
    write(asked).map_err(|error| UntranslatableRequest::unread(&error))
}

fn spoken(message: ForeignMessage) -> Result<SpokenMessage<'static>, UntranslatableRequest> {
    let text = match message.content {
        None => String::new(),
        Some(TextOrParts::Text(text)) => text,
        Some(TextOrParts::Parts(parts)) => {
            let texts: Option<Vec<String>> = parts.into_iter().map(|part| part.text).collect();
            let what = "a part of a message is no text, and this cloud passes on nothing else";
            texts.ok_or_else(|| UntranslatableRequest::new(what))?.join("\n")
        }
    };
    let role = match message.role {
        ForeignRole::System => ChatRole::System,
        ForeignRole::User => ChatRole::User,
        ForeignRole::Assistant => ChatRole::Assistant,
        ForeignRole::Tool => ChatRole::Tool,
    };
    let calls = message.tool_calls.into_iter().flatten().map(|call| SpokenCall {
        id: call.id,
        tool: Cow::from(call.function.name),
        arguments: Cow::from(call.function.arguments),
    });
    Ok(SpokenMessage {
        role,
        text: Cow::from(text),
        calls: calls.collect(),
        answers: message.tool_call_id,
        thoughts: Vec::new(),
    })
}

/// Returns true if a tool must be called.
fn demands_a_call(choice: &ToolChoice) -> bool {
    match choice {
        ToolChoice::Mode(mode) => *mode == ToolMode::Required,
        ToolChoice::Named(NamedTools::Function { .. }) => true,
        ToolChoice::Named(NamedTools::AllowedTools { allowed_tools }) => {
            allowed_tools.mode == ToolMode::Required
        }
    }
}

/// Returns true if a tool is on the list of tools that may be called.
fn allows(choice: Option<&ToolChoice>, tool: &ChatTool) -> bool {
    match choice {
        Some(ToolChoice::Named(NamedTools::AllowedTools { allowed_tools })) => {
            allowed_tools.tools.iter().any(|it| it.function.name == tool.function.name)
        }
        _ => true,
    }
}

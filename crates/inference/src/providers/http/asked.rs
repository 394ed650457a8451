//! Pure: what is asked, before it is put into a format.
//!
//! Out of our own question, or out of a body of the chat-completions format that somebody else
//! wrote. A format must never look at either: what it cannot say, it leaves out or refuses here.

use std::borrow::Cow;

use automaton_core::wire::chat::ToolChoice;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Number, Value, json};

use crate::catalogue::{ModelInfo, RequestDialect};
use crate::provider::{ChatRole, CompletionRequest, Message};

/// The key under which arguments are sent back that are no JSON object, as Anthropic's
/// documentation of streamed arguments has it.
const INVALID: &str = "INVALID_JSON";

/// A question.
pub(super) struct AskedChat<'a> {
    pub(super) model: &'a str,
    /// System messages are only at its head.
    pub(super) messages: Vec<SpokenMessage<'a>>,
    pub(super) tools: Vec<AskedTool<'a>>,
    /// Which of the tools are to be called, where somebody says that.
    pub(super) tool_choice: Option<&'a ToolChoice>,
    /// True if the model is known to think before it answers.
    pub(super) thinks: bool,
    /// The most tokens of the answer.
    pub(super) max_tokens: u32,
    /// The model's window, in tokens.
    pub(super) window: u32,
    pub(super) temperature: Option<Number>,
    pub(super) top_p: Option<Number>,
    pub(super) seed: Option<u64>,
    pub(super) stop: Vec<String>,
    pub(super) stream: bool,
}

/// One message.
pub(super) struct SpokenMessage<'a> {
    pub(super) role: ChatRole,
    pub(super) text: Cow<'a, str>,
    pub(super) calls: Vec<SpokenCall<'a>>,
    /// The call that it answers.
    pub(super) answers: Option<String>,
    /// Thoughts before its calls, as the server wrote them.
    pub(super) thoughts: Vec<Value>,
}

/// A call that the model made.
pub(super) struct SpokenCall<'a> {
    pub(super) id: String,
    pub(super) tool: Cow<'a, str>,
    /// As the model wrote them.
    pub(super) arguments: Cow<'a, str>,
}

/// A tool that may be called.
#[derive(Clone, Copy, Serialize)]
pub(super) struct AskedTool<'a> {
    pub(super) name: &'a str,
    pub(super) description: &'a str,
    pub(super) parameters: &'a Value,
}

impl<'a> AskedChat<'a> {
    /// Our own question to a model.
    pub(super) fn from_request(info: &'a ModelInfo, ask: &'a CompletionRequest) -> Self {
        let allowed = ask.tools.iter().filter(|tool| !ask.left_out.contains(&tool.name));
        let tools = allowed.map(|tool| AskedTool {
            name: tool.name.as_str(),
            description: &tool.description,
            parameters: &tool.parameters,
        });
        let is_tuned = matches!(info.dialect, RequestDialect::Classic | RequestDialect::Guided);
        Self {
            model: info.id.as_str(),
            messages: ask.messages.iter().map(|it| SpokenMessage::from_message(it)).collect(),
            tools: tools.collect(),
            tool_choice: None,
            thinks: info.dialect == RequestDialect::Reasoning,
            max_tokens: ask.max_tokens,
            window: info.context_tokens,
            temperature: if is_tuned { thousandths(ask.temperature_milli) } else { None },
            top_p: None,
            seed: is_tuned.then_some(ask.seed),
            stop: Vec::new(),
            stream: true,
        }
    }

    /// The rules at the head, as one text; nothing where there are none.
    pub(super) fn rules(&self) -> Option<String> {
        let rules = self.messages.iter().filter(|it| it.role == ChatRole::System);
        let texts: Vec<&str> = rules.map(|it| &*it.text).filter(|it| !is_blank(it)).collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }

    /// Returns the messages after the system text.
    pub(super) fn conversation(&self) -> impl Iterator<Item = &SpokenMessage<'a>> {
        self.messages.iter().filter(|it| it.role != ChatRole::System)
    }

    /// The tool that a call named which is answered now.
    pub(super) fn called(&self, id: &str) -> &str {
        let mut calls = self.messages.iter().flat_map(|it| &it.calls);
        calls.rfind(|call| call.id == id).map_or("", |call| &call.tool)
    }
}

impl<'a> SpokenMessage<'a> {
    fn from_message(message: &'a Message) -> Self {
        let calls = message.calls.iter().map(|call| SpokenCall {
            id: call.id.to_string(),
            tool: Cow::from(&call.tool),
            arguments: Cow::from(&call.arguments),
        });
        Self {
            role: message.role,
            text: Cow::from(&message.content),
            calls: calls.collect(),
            answers: message.answers.map(|id| id.to_string()),
            thoughts: Vec::new(),
        }
    }
}

/// Returns true if a text is blank; most servers refuse such a text.
pub(super) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// Arguments as they were written, where they are an object.
pub(super) fn as_object(arguments: &str) -> Result<Box<RawValue>, serde_json::Error> {
    if is_blank(arguments) {
        return to_raw_value(&Map::new());
    }
    match serde_json::from_str::<Map<String, Value>>(arguments) {
        Ok(_) => RawValue::from_string(arguments.to_owned()),
        Err(_) => to_raw_value(&json!({ INVALID: arguments })),
    }
}

/// A number of thousandths as a decimal, written without a float's arithmetic.
pub(super) fn thousandths(milli: u32) -> Option<Number> {
    // silent-ok: digits with a point among them are always a number.
    format!("{}.{:03}", milli / 1000, milli % 1000).parse().ok()
}

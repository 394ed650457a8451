//! Pure: Ollama's own format.
//!
//! It is asked for the window with each question, since its own is small and cuts off what is
//! longer, and to refuse what does not fit. A reply is one object a line; the last one has the
//! counts. Thoughts are read past. Source: <https://docs.ollama.com/api/chat>.

use automaton_core::wire::chat::ChatChunk;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Number, Value};

use super::asked::{AskedChat, AskedTool, SpokenCall, SpokenMessage, as_object};
use super::assemble::{AssemblyError, StreamPiece};
use super::pieces::{self, unread};
use super::usage::{count, counts};
use crate::provider::ChatRole;

/// The body of `POST /api/chat`.
#[derive(Serialize)]
struct OllamaBody<'a> {
    model: &'a str,
    messages: Vec<OllamaMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<OllamaTool<'a>>,
    options: OllamaOptions,
    /// True if it may leave out text that does not fit, from the front or while it answers.
    truncate: bool,
    shift: bool,
    stream: bool,
}

#[derive(Serialize)]
struct OllamaOptions {
    num_ctx: u32,
    num_predict: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stop: Vec<String>,
}

#[derive(Serialize)]
struct OllamaMessage<'a> {
    role: ChatRole,
    content: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<OllamaCall<'a>>,
    /// Which tool a result is of.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
}

#[derive(Serialize)]
struct OllamaCall<'a> {
    function: OllamaCalled<'a>,
}

#[derive(Serialize)]
struct OllamaCalled<'a> {
    name: &'a str,
    arguments: Box<RawValue>,
}

#[derive(Serialize)]
struct OllamaTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: AskedTool<'a>,
}

/// The body as JSON.
pub(super) fn body(asked: &AskedChat<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let tools = asked.tools.iter().copied();
    let messages = asked.messages.iter().map(|it| message(asked, it));
    let body = OllamaBody {
        model: asked.model,
        messages: messages.collect::<Result<_, _>>()?,
        tools: tools.map(|function| OllamaTool { kind: "function", function }).collect(),
        options: OllamaOptions {
            num_ctx: asked.window,
            num_predict: asked.max_tokens,
            temperature: asked.temperature.clone(),
            top_p: asked.top_p.clone(),
            // It takes those of a signed number alone.
            seed: asked.seed.map(|seed| seed & (u64::MAX >> 1)),
            stop: asked.stop.clone(),
        },
        truncate: false,
        shift: false,
        stream: asked.stream,
    };
    serde_json::to_vec(&body)
}

fn message<'a>(
    asked: &'a AskedChat<'_>,
    message: &'a SpokenMessage<'_>,
) -> Result<OllamaMessage<'a>, serde_json::Error> {
    let call = |call: &'a SpokenCall<'_>| {
        let function = OllamaCalled { name: &call.tool, arguments: as_object(&call.arguments)? };
        Ok(OllamaCall { function })
    };
    Ok(OllamaMessage {
        role: message.role,
        content: &message.text,
        tool_calls: message.calls.iter().map(call).collect::<Result<_, serde_json::Error>>()?,
        tool_name: message.answers.as_deref().map(|id| asked.called(id)),
    })
}

/// Reads the lines of one reply.
#[derive(Debug, Default)]
pub(super) struct OllamaReader {
    /// The calls so far.
    calls: usize,
}

impl OllamaReader {
    /// Reads a line or a whole reply.
    pub(super) fn piece(&mut self, data: &str) -> Result<StreamPiece, AssemblyError> {
        let reply = Value::Object(pieces::object(data)?);
        let is_last = reply["done"].as_bool() == Some(true);
        let mut delta =
            pieces::text(pieces::text_of(&reply["message"]["content"])?.unwrap_or_default());
        let mut calls = Vec::new();
        let called = match &reply["message"]["tool_calls"] {
            Value::Null => &[],
            Value::Array(calls) => calls.as_slice(),
            _ => return Err(unread("its list of calls")),
        };
        for call in called {
            let function = call.get("function").unwrap_or(call);
            if !function.is_object() {
                return Err(unread("a call"));
            }
            // A call comes whole.
            let arguments = pieces::arguments_of(&function["arguments"]);
            let arguments = Some(arguments.unwrap_or_else(|| "{}".to_owned()));
            let id = pieces::word(call, "id");
            let name = pieces::word(function, "name");
            calls.push(pieces::call(self.calls, id, name, arguments));
            self.calls += 1;
        }
        delta.tool_calls = pieces::calls(calls).tool_calls;
        let finish = pieces::word(&reply, "done_reason").filter(|_| is_last).map(str::to_owned);
        let is_answer = reply["message"].is_object() || is_last;
        let said = if is_answer { pieces::chunk(delta, finish) } else { ChatChunk::default() };
        let counted = (count(&reply, "prompt_eval_count"), count(&reply, "eval_count"));
        let chunk = ChatChunk {
            model: pieces::word(&reply, "model").unwrap_or_default().to_owned(),
            usage: match counted {
                (Some(prompt), Some(answer)) => Some(counts(prompt, 0, 0, answer)),
                _ => None,
            },
            ..said
        };
        Ok(if is_last { StreamPiece::Last(chunk) } else { StreamPiece::Chunk(chunk) })
    }
}

//! Pure: an answer in Anthropic's format, out of pieces of chat completions.
//!
//! Blocks follow one another, as clients expect: the text and the first call are written as they
//! come, further calls when the answer ends. The end is written apart, since whoever charges for an
//! answer does so before its end, and tells what was charged.

use automaton_core::wire::chat::ChatUsage;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::provider::{FinishReason, NoTokenSink, RawCall};
use crate::providers::http::asked::as_object;
use crate::providers::http::assemble::{Assembler, AssemblyError, StreamPiece};
use crate::providers::http::chat_completions;

/// An event of a stream: its name and its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessagesFrame {
    /// The name, which the data has as its `type`, too.
    pub name: &'static str,
    /// The data, as JSON.
    pub data: String,
}

/// Tokens used, as Anthropic tells them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MessagesCount {
    /// Of the prompt, neither out of a cache nor written into one.
    pub input_tokens: u32,
    /// Of the prompt, written into a cache.
    pub cache_creation_input_tokens: u32,
    /// Of the prompt, out of a cache.
    pub cache_read_input_tokens: u32,
    /// Of the answer.
    pub output_tokens: u32,
    /// Whether a cloud had to estimate them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl From<&ChatUsage> for MessagesCount {
    fn from(usage: &ChatUsage) -> Self {
        let details = usage.prompt_tokens_details.unwrap_or_default();
        let cached = details.cached_tokens.min(usage.prompt_tokens);
        let written = details.cache_write_tokens.min(usage.prompt_tokens - cached);
        Self {
            input_tokens: usage.prompt_tokens - cached - written,
            cache_creation_input_tokens: written,
            cache_read_input_tokens: cached,
            output_tokens: usage.completion_tokens,
            estimated: usage.estimated,
        }
    }
}

/// Writes one answer.
#[derive(Debug)]
pub struct MessagesWriter {
    id: String,
    model: String,
    reply: Assembler,
    begun: bool,
    /// Blocks that are closed.
    closed: usize,
    text_open: bool,
    /// Bytes that are written of the arguments of the first call, once its block is open.
    first_call: Option<usize>,
    /// Text that came after the first call.
    late: String,
}

impl MessagesWriter {
    /// A writer of the answer with this id, by this model.
    #[must_use]
    pub fn new(id: String, model: String) -> Self {
        Self {
            id,
            model,
            reply: Assembler::default(),
            begun: false,
            closed: 0,
            text_open: false,
            first_call: None,
            late: String::new(),
        }
    }

    /// The frames for a piece of chat completions, or for a whole reply, and whether it was the last.
    ///
    /// # Errors
    /// What the server says went wrong, or that it is no reply.
    pub fn take(&mut self, data: &str) -> Result<(Vec<MessagesFrame>, bool), String> {
        let chunk = match chat_completions::piece(data).map_err(AssemblyError::into_text)? {
            StreamPiece::Done => {
                self.done();
                return Ok((Vec::new(), true));
            }
            StreamPiece::Chunk(chunk) | StreamPiece::Last(chunk) => chunk,
        };
        let ours = chunk.choices.iter().filter(|choice| choice.index == 0);
        let text: String = ours.filter_map(|it| it.delta.content.as_deref()).collect();
        self.reply.take(chunk, &NoTokenSink).map_err(AssemblyError::into_text)?;
        let mut frames = Vec::new();
        if !self.begun {
            self.begun = true;
            frames.push(self.start());
        }
        if self.first_call.is_some() {
            self.late.push_str(&text);
        } else if !text.is_empty() {
            if !self.text_open {
                self.text_open = true;
                frames.push(begin(self.closed, &empty_text()));
            }
            frames.push(more(self.closed, &json!({ "type": "text_delta", "text": text })));
        }
        self.write_first_call(&mut frames);
        Ok((frames, false))
    }

    /// The server said that this is all, though perhaps not why.
    pub fn done(&mut self) {
        self.reply.end(FinishReason::Stop);
    }

    /// Whether anything was said or called.
    #[must_use]
    pub const fn has_output(&self) -> bool {
        self.reply.has_output()
    }

    /// Whether the answer came to its end.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.reply.has_ended()
    }

    /// Bytes of what was said and called.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.reply.bytes()
    }

    /// The last frames of a stream.
    ///
    /// # Errors
    /// When the answer has no end.
    pub fn end(mut self, count: &MessagesCount) -> Result<Vec<MessagesFrame>, String> {
        let reply = std::mem::take(&mut self.reply).finish().map_err(AssemblyError::into_text)?;
        let mut frames = Vec::new();
        if self.text_open || self.first_call.is_some() {
            frames.push(self.close());
        }
        let begun = usize::from(self.first_call.is_some());
        for (place, call) in reply.calls.iter().enumerate().skip(begun) {
            frames.push(begin(self.closed, &self.tool_use(place, named(call), &json!({}))));
            frames.push(more(self.closed, &arguments(&call.arguments)));
            frames.push(self.close());
        }
        if !self.late.is_empty() {
            frames.push(begin(self.closed, &empty_text()));
            frames.push(more(self.closed, &json!({ "type": "text_delta", "text": self.late })));
            frames.push(self.close());
        }
        let delta = json!({ "stop_reason": stop_reason(reply.finish), "stop_sequence": null });
        let data = json!({ "type": "message_delta", "delta": delta, "usage": count });
        frames.push(MessagesFrame::new("message_delta", &data));
        frames.push(MessagesFrame::new("message_stop", &json!({ "type": "message_stop" })));
        Ok(frames)
    }

    /// The answer as one document.
    ///
    /// # Errors
    /// When it has no end, or cannot be written.
    pub fn whole(mut self, count: &MessagesCount) -> Result<Vec<u8>, String> {
        let reply = std::mem::take(&mut self.reply).finish().map_err(AssemblyError::into_text)?;
        let text = (!reply.text.is_empty()).then(|| json!({ "type": "text", "text": reply.text }));
        let mut content: Vec<Value> = text.into_iter().collect();
        for (place, call) in reply.calls.iter().enumerate() {
            let input = as_object(&call.arguments).map_err(|error| error.to_string())?;
            content.push(self.tool_use(place, named(call), &json!(input)));
        }
        let mut message = self.message(count);
        message["content"] = content.into();
        message["stop_reason"] = stop_reason(reply.finish).into();
        serde_json::to_vec(&message).map_err(|error| error.to_string())
    }

    /// The message without what it says.
    fn message(&self, count: &MessagesCount) -> Value {
        json!({
            "id": self.id, "type": "message", "role": "assistant", "model": self.model,
            "content": [], "stop_reason": null, "stop_sequence": null, "usage": count,
        })
    }

    fn start(&self) -> MessagesFrame {
        // The counts come at the end, with the charge.
        let message = self.message(&MessagesCount::default());
        let data = json!({ "type": "message_start", "message": message });
        MessagesFrame::new("message_start", &data)
    }

    fn close(&mut self) -> MessagesFrame {
        let index = self.closed;
        self.closed += 1;
        let data = json!({ "type": "content_block_stop", "index": index });
        MessagesFrame::new("content_block_stop", &data)
    }

    /// Writes what is new of the first call.
    fn write_first_call(&mut self, frames: &mut Vec<MessagesFrame>) {
        let Some(call) = self.reply.first_call().filter(|call| !call.name.is_empty()) else {
            return;
        };
        let length = call.arguments.len();
        let news = call.arguments.get(self.first_call.unwrap_or(0)..).map(arguments);
        if self.first_call.is_none() {
            let block = self.tool_use(0, (call.id.as_deref(), &call.name), &json!({}));
            if std::mem::take(&mut self.text_open) {
                frames.push(self.close());
            }
            frames.push(begin(self.closed, &block));
        }
        if self.first_call.unwrap_or(0) < length {
            frames.extend(news.map(|news| more(self.closed, &news)));
        }
        self.first_call = Some(length);
    }

    fn tool_use(&self, place: usize, call: (Option<&str>, &str), input: &Value) -> Value {
        let id = call.0.map_or_else(|| format!("toolu_{}_{place}", self.id), str::to_owned);
        json!({ "type": "tool_use", "id": id, "name": call.1, "input": input })
    }
}

impl MessagesFrame {
    fn new(name: &'static str, data: &Value) -> Self {
        Self { name, data: data.to_string() }
    }
}

fn named(call: &RawCall) -> (Option<&str>, &str) {
    (call.provider_id.as_deref(), &call.tool)
}

fn empty_text() -> Value {
    json!({ "type": "text", "text": "" })
}

fn begin(index: usize, block: &Value) -> MessagesFrame {
    let data = json!({ "type": "content_block_start", "index": index, "content_block": block });
    MessagesFrame::new("content_block_start", &data)
}

fn more(index: usize, delta: &Value) -> MessagesFrame {
    let data = json!({ "type": "content_block_delta", "index": index, "delta": delta });
    MessagesFrame::new("content_block_delta", &data)
}

fn arguments(text: &str) -> Value {
    json!({ "type": "input_json_delta", "partial_json": text })
}

const fn stop_reason(finish: FinishReason) -> &'static str {
    match finish {
        FinishReason::Stop | FinishReason::Repetition => "end_turn",
        FinishReason::ToolCalls => "tool_use",
        FinishReason::Length => "max_tokens",
        FinishReason::Filtered => "refusal",
    }
}

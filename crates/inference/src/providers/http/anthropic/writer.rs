//! Pure: an answer in Anthropic's format, out of pieces of chat completions.

use automaton_core::wire::chat::ChatUsage;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::provider::FinishReason;
use crate::providers::http::asked::as_object;
use crate::providers::http::assemble::AssembledReply;
use crate::providers::http::reply_writer::{
    BlockFormat, BlockPart, CallHead, EventFrame, ReplyWriter, head,
};

/// Tokens used, as Anthropic tells them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MessagesCount {
    /// Prompt tokens that neither came from a cache nor were written into one.
    pub input_tokens: u32,
    /// Prompt tokens that were written into a cache.
    pub cache_creation_input_tokens: u32,
    /// Prompt tokens that came from a cache.
    pub cache_read_input_tokens: u32,
    /// Tokens of the answer.
    pub output_tokens: u32,
    /// True if a cloud estimated the counts.
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

/// A writer of the answer with this id, by this model.
#[must_use]
pub fn messages_writer(id: String, model: String) -> ReplyWriter {
    ReplyWriter::new(Box::new(MessageBlocks { id, model }))
}

#[derive(Debug)]
struct MessageBlocks {
    id: String,
    model: String,
}

impl MessageBlocks {
    /// The message without what it says.
    fn message(&self, count: &MessagesCount) -> Value {
        json!({
            "id": self.id, "type": "message", "role": "assistant", "model": self.model,
            "content": [], "stop_reason": null, "stop_sequence": null, "usage": count,
        })
    }

    fn tool_use(&self, call: CallHead<'_>, input: &Value) -> Value {
        let made = || format!("toolu_{}_{}", self.id, call.place);
        let id = call.id.map_or_else(made, str::to_owned);
        json!({ "type": "tool_use", "id": id, "name": call.name, "input": input })
    }
}

impl BlockFormat for MessageBlocks {
    fn begin(&mut self) -> Vec<EventFrame> {
        // The counts come at the end, with the charge.
        let message = self.message(&MessagesCount::default());
        let data = json!({ "type": "message_start", "message": message });
        vec![EventFrame::new("message_start", &data)]
    }

    fn part(&mut self, index: usize, part: BlockPart<'_>) -> Vec<EventFrame> {
        let begins = |block: &Value| {
            let name = "content_block_start";
            let data = json!({ "type": name, "index": index, "content_block": block });
            EventFrame::new(name, &data)
        };
        let more = |delta: &Value| {
            let name = "content_block_delta";
            EventFrame::new(name, &json!({ "type": name, "index": index, "delta": delta }))
        };
        vec![match part {
            BlockPart::TextBegin => begins(&json!({ "type": "text", "text": "" })),
            BlockPart::TextMore(text) => more(&json!({ "type": "text_delta", "text": text })),
            BlockPart::CallBegin(call) => begins(&self.tool_use(call, &json!({}))),
            BlockPart::CallMore(text) => {
                more(&json!({ "type": "input_json_delta", "partial_json": text }))
            }
            BlockPart::End { .. } => {
                let name = "content_block_stop";
                EventFrame::new(name, &json!({ "type": name, "index": index }))
            }
        }]
    }

    fn end(&mut self, finish: FinishReason, usage: &ChatUsage) -> Vec<EventFrame> {
        let count = MessagesCount::from(usage);
        let delta = json!({ "stop_reason": stop_reason(finish), "stop_sequence": null });
        let data = json!({ "type": "message_delta", "delta": delta, "usage": count });
        vec![
            EventFrame::new("message_delta", &data),
            EventFrame::new("message_stop", &json!({ "type": "message_stop" })),
        ]
    }

    fn write_reply(
        &mut self,
        reply: &AssembledReply,
        usage: &ChatUsage,
    ) -> Result<Vec<u8>, serde_json::Error> {
        let text = (!reply.text.is_empty()).then(|| json!({ "type": "text", "text": reply.text }));
        let mut content: Vec<Value> = text.into_iter().collect();
        for (place, call) in reply.calls.iter().enumerate() {
            let input = as_object(&call.arguments)?;
            content.push(self.tool_use(head(place, call), &json!(input)));
        }
        let mut message = self.message(&MessagesCount::from(usage));
        message["content"] = content.into();
        message["stop_reason"] = stop_reason(reply.finish).into();
        serde_json::to_vec(&message)
    }
}

const fn stop_reason(finish: FinishReason) -> &'static str {
    match finish {
        FinishReason::Stop | FinishReason::Repetition => "end_turn",
        FinishReason::ToolCalls => "tool_use",
        FinishReason::Length => "max_tokens",
        FinishReason::Filtered => "refusal",
    }
}

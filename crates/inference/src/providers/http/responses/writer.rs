//! Pure: an answer in the responses format, out of pieces of chat completions.
//!
//! Source: <https://platform.openai.com/docs/api-reference/responses-streaming>.

use std::collections::BTreeMap;

use automaton_core::wire::chat::ChatUsage;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::provider::FinishReason;
use crate::providers::http::assemble::AssembledReply;
use crate::providers::http::reply_writer::{
    BlockFormat, BlockPart, CallHead, EventFrame, ReplyWriter, head,
};

/// Heading of an answer, with the fields that repeat the request.
#[derive(Debug, Clone)]
pub struct ResponseHeading {
    /// The answer's id.
    pub id: String,
    /// The model.
    pub model: String,
    /// Seconds since the epoch.
    pub created: i64,
    /// Fields of the question that its answer repeats. It says them with each state that it tells
    /// of, so whoever sells answers should let in no large ones.
    pub told_back: BTreeMap<String, Box<RawValue>>,
}

/// A writer of this answer.
#[must_use]
pub fn responses_writer(heading: ResponseHeading) -> ReplyWriter {
    ReplyWriter::new(Box::new(ResponseBlocks { heading, told: 0, open: None, items: Vec::new() }))
}

#[derive(Debug)]
struct ResponseBlocks {
    heading: ResponseHeading,
    /// Events that were told.
    told: u64,
    open: Option<OpenItem>,
    /// Items that ended.
    items: Vec<Value>,
}

/// The item that is being written.
#[derive(Debug)]
struct OpenItem {
    id: String,
    /// None of a text.
    call: Option<Value>,
    /// Its text or its arguments.
    text: String,
}

impl OpenItem {
    /// The item as it is told.
    fn to_json(&self, status: &str) -> Value {
        match &self.call {
            Some(call) => {
                let mut call = call.clone();
                call["status"] = status.into();
                call["arguments"] = self.text.clone().into();
                call
            }
            None => {
                let content = if status == "in_progress" { vec![] } else { vec![text(&self.text)] };
                json!({ "id": self.id, "type": "message", "role": "assistant", "status": status,
                    "content": content })
            }
        }
    }
}

fn text(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

impl ResponseBlocks {
    fn event(&mut self, name: &'static str, mut data: Value) -> EventFrame {
        data["type"] = name.into();
        data["sequence_number"] = self.told.into();
        self.told += 1;
        EventFrame::new(name, &data)
    }

    /// The whole answer, as far as it is there.
    fn response(&self, status: &str, usage: Option<&ChatUsage>) -> Value {
        let ResponseHeading { id, model, created, told_back } = &self.heading;
        let mut response = json!({
            "id": id, "object": "response", "created_at": created, "status": status,
            "background": false, "error": null, "incomplete_details": null, "instructions": null,
            "max_output_tokens": null, "metadata": {}, "model": model, "output": self.items,
            "parallel_tool_calls": true, "previous_response_id": null,
            "reasoning": { "effort": null, "summary": null }, "service_tier": "default",
            "store": false, "temperature": null, "text": { "format": { "type": "text" } },
            "tool_choice": "auto", "tools": [], "top_p": null, "truncation": "disabled",
            "usage": usage.map(counted),
        });
        for (name, value) in told_back {
            // silent-ok: what is JSON is read again.
            response[name] = serde_json::from_str(value.get()).unwrap_or_default();
        }
        response
    }

    /// The answer at its end.
    fn ended(&self, finish: FinishReason, usage: &ChatUsage) -> (&'static str, Value) {
        let why = match finish {
            FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Repetition => None,
            FinishReason::Length => Some("max_output_tokens"),
            FinishReason::Filtered => Some("content_filter"),
        };
        let status = if why.is_some() { "incomplete" } else { "completed" };
        let mut response = self.response(status, Some(usage));
        if let Some(reason) = why {
            response["incomplete_details"] = json!({ "reason": reason });
        }
        (if why.is_some() { "response.incomplete" } else { "response.completed" }, response)
    }

    fn begin_item(&mut self, index: usize, item: OpenItem) -> Vec<EventFrame> {
        let told = json!({ "output_index": index, "item": item.to_json("in_progress") });
        let mut frames = vec![self.event("response.output_item.added", told)];
        if item.call.is_none() {
            let told = json!({ "item_id": item.id, "output_index": index, "content_index": 0,
                "part": text("") });
            frames.push(self.event("response.content_part.added", told));
        }
        self.open = Some(item);
        frames
    }

    fn text_item(&self, index: usize) -> OpenItem {
        OpenItem { id: self.item_id("msg", index), call: None, text: String::new() }
    }

    fn call_item(&self, index: usize, call: CallHead<'_>) -> OpenItem {
        let id = self.item_id("fc", index);
        let made = || format!("call_{}_{}", self.heading.id, call.place);
        let call_id = call.id.map_or_else(made, str::to_owned);
        let call =
            json!({ "id": id, "type": "function_call", "call_id": call_id, "name": call.name });
        OpenItem { id, call: Some(call), text: String::new() }
    }

    fn item_id(&self, kind: &str, index: usize) -> String {
        format!("{kind}_{}_{index}", self.heading.id)
    }

    fn more(&mut self, index: usize, more: &str) -> Vec<EventFrame> {
        let Some(open) = self.open.as_mut().filter(|_| !more.is_empty()) else {
            return Vec::new();
        };
        open.text.push_str(more);
        let mut told = json!({ "item_id": open.id, "output_index": index, "delta": more });
        let name = match open.call {
            Some(_) => "response.function_call_arguments.delta",
            None => {
                told["content_index"] = 0.into();
                told["logprobs"] = json!([]);
                "response.output_text.delta"
            }
        };
        vec![self.event(name, told)]
    }

    fn end_item(&mut self, index: usize, is_cut: bool) -> Vec<EventFrame> {
        let Some(mut open) = self.open.take() else { return Vec::new() };
        if open.call.is_some() && open.text.trim().is_empty() && !is_cut {
            // Arguments are an object.
            open.text = "{}".to_owned();
        }
        let place = json!({ "item_id": open.id, "output_index": index });
        let mut frames = Vec::new();
        if let Some(call) = &open.call {
            let mut told = place;
            told["arguments"] = open.text.clone().into();
            told["name"] = call["name"].clone();
            frames.push(self.event("response.function_call_arguments.done", told));
        } else {
            let mut told = place;
            told["content_index"] = 0.into();
            let mut part = told.clone();
            told["text"] = open.text.clone().into();
            told["logprobs"] = json!([]);
            part["part"] = text(&open.text);
            frames.push(self.event("response.output_text.done", told));
            frames.push(self.event("response.content_part.done", part));
        }
        let item = open.to_json(if is_cut { "incomplete" } else { "completed" });
        let told = json!({ "output_index": index, "item": item });
        frames.push(self.event("response.output_item.done", told));
        self.items.push(item);
        frames
    }
}

impl BlockFormat for ResponseBlocks {
    fn begin(&mut self) -> Vec<EventFrame> {
        let response = json!({ "response": self.response("in_progress", None) });
        vec![
            self.event("response.created", response.clone()),
            self.event("response.in_progress", response),
        ]
    }

    fn part(&mut self, index: usize, part: BlockPart<'_>) -> Vec<EventFrame> {
        match part {
            BlockPart::TextBegin => self.begin_item(index, self.text_item(index)),
            BlockPart::CallBegin(call) => self.begin_item(index, self.call_item(index, call)),
            BlockPart::TextMore(more) | BlockPart::CallMore(more) => self.more(index, more),
            BlockPart::End { is_cut } => self.end_item(index, is_cut),
        }
    }

    fn end(&mut self, finish: FinishReason, usage: &ChatUsage) -> Vec<EventFrame> {
        let (name, response) = self.ended(finish, usage);
        vec![self.event(name, json!({ "response": response }))]
    }

    fn write_reply(
        &mut self,
        reply: &AssembledReply,
        usage: &ChatUsage,
    ) -> Result<Vec<u8>, serde_json::Error> {
        let is_text = usize::from(!reply.text.is_empty());
        let texts = (is_text == 1).then(|| (self.text_item(0), &reply.text));
        let calls = reply.calls.iter().enumerate();
        let calls =
            calls.map(|(at, it)| (self.call_item(is_text + at, head(at, it)), &it.arguments));
        let items: Vec<_> = texts.into_iter().chain(calls).collect();
        let last = items.len().saturating_sub(1);
        // A document is what was heard, whatever a stream would have told of it so far.
        self.items.clear();
        for (index, (item, said)) in items.into_iter().enumerate() {
            self.open = Some(OpenItem { text: said.clone(), ..item });
            self.end_item(index, reply.finish == FinishReason::Length && index == last);
        }
        serde_json::to_vec(&self.ended(reply.finish, usage).1)
    }
}

/// Tokens used, as the format tells them.
fn counted(usage: &ChatUsage) -> Value {
    let details = usage.prompt_tokens_details.unwrap_or_default();
    let mut told = json!({
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": { "cached_tokens": details.cached_tokens },
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": usage.total_tokens,
    });
    if usage.estimated {
        told["estimated"] = true.into();
    }
    told
}

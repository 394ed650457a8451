//! Pure: one reply out of its pieces.
//!
//! Calls come in pieces that are told apart by an index, by an id, or by
//! neither, depending on the server. A reply that never said that it ended
//! must never become an answer: its last call may be half a call.

use std::sync::Arc;

use automaton_core::wire::chat::{ChatChunk, ChatUsage, ChunkCall};
use serde::de::IgnoredAny;

use super::failure::ProviderErrorBody;
use crate::cost::{self, TokenCounts};
use crate::provider::{CompletionRequest, FinishReason, Message, RawCall, TokenSink};

/// The most that text, names and arguments of one reply may hold, in bytes.
const REPLY_BYTES_MAX: usize = 4 << 20;

/// The most calls of one reply. The agent runs far fewer.
const CALLS_MAX: usize = 128;

/// Why pieces make no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AssemblyError {
    /// It ended too early.
    Cut,
    /// The server says that it failed.
    Failed(ProviderErrorBody),
    /// It is something else.
    NoReply(String),
}

/// What one event, or one whole reply, says.
#[derive(Debug, PartialEq)]
pub enum StreamPiece {
    /// More of the answer; a whole reply is one piece.
    Chunk(ChatChunk),
    /// The last of it.
    Last(ChatChunk),
    /// The stream is over.
    Done,
}

/// The pieces so far.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    text: String,
    calls: Vec<CallBuilder>,
    finish: Option<FinishReason>,
    usage: Option<ChatUsage>,
    model: String,
    bytes: usize,
    /// Whether there was any choice at all.
    answered: bool,
}

/// A call that is being written.
#[derive(Debug)]
pub(super) struct CallBuilder {
    index: u32,
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) arguments: String,
}

impl CallBuilder {
    fn call(&self) -> RawCall {
        RawCall {
            provider_id: self.id.clone(),
            tool: self.name.clone(),
            arguments: self.arguments.clone(),
        }
    }
}

/// A whole reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AssembledReply {
    pub(super) text: String,
    pub(super) calls: Vec<RawCall>,
    pub(super) finish: FinishReason,
    pub(super) usage: Option<ChatUsage>,
    pub(super) model: String,
}

impl AssemblyError {
    /// The same in words, for whoever passes replies on.
    pub(super) fn into_text(self) -> String {
        match self {
            Self::Cut => "it ended too early".to_owned(),
            Self::Failed(said) => said.text,
            Self::NoReply(what) => what,
        }
    }
}

impl Assembler {
    /// Adds a piece and shows its text.
    pub(super) fn take(
        &mut self,
        chunk: ChatChunk,
        sink: &dyn TokenSink,
    ) -> Result<(), AssemblyError> {
        if !chunk.model.is_empty() {
            self.model = chunk.model;
        }
        // Some servers tell the usage so far with each piece: the last one holds.
        self.usage = chunk.usage.or(self.usage);
        // One answer was asked for; others are not ours to weigh.
        for choice in chunk.choices.into_iter().filter(|choice| choice.index == 0) {
            self.answered = true;
            if let Some(piece) = choice.delta.content.filter(|piece| !piece.is_empty()) {
                self.count(piece.len())?;
                sink.text(&piece);
                self.text.push_str(&piece);
            }
            for call in choice.delta.tool_calls.into_iter().flatten() {
                self.add(call)?;
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                self.finish = Some(finish(&reason)?);
            }
        }
        Ok(())
    }

    /// Adds what a format's reader has read; whether it was the last.
    pub(super) fn add_piece(
        &mut self,
        piece: StreamPiece,
        sink: &dyn TokenSink,
    ) -> Result<bool, AssemblyError> {
        let is_last = !matches!(piece, StreamPiece::Chunk(_));
        match piece {
            StreamPiece::Chunk(chunk) | StreamPiece::Last(chunk) => self.take(chunk, sink)?,
            StreamPiece::Done => {}
        }
        if is_last {
            self.end(FinishReason::Stop);
        }
        Ok(is_last)
    }

    /// Notes that the reply ended, for this reason if it named none itself.
    pub(super) fn end(&mut self, finish: FinishReason) {
        self.finish.get_or_insert(finish);
    }

    /// Whether any part of an answer has come.
    pub(super) const fn has_begun(&self) -> bool {
        self.answered
    }

    /// Whether anything was said or called.
    pub(super) const fn has_output(&self) -> bool {
        !self.text.is_empty() || !self.calls.is_empty()
    }

    /// Bytes of text, names and arguments.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether it ended.
    pub(super) const fn has_ended(&self) -> bool {
        self.answered && self.finish.is_some()
    }

    /// The first call, as far as it is there.
    pub(super) fn first_call(&self) -> Option<&CallBuilder> {
        self.calls.first()
    }

    /// The reply.
    pub(super) fn finish(self) -> Result<AssembledReply, AssemblyError> {
        let finish = match self.finish {
            _ if !self.answered => {
                return Err(AssemblyError::NoReply("it holds no answer".to_owned()));
            }
            None => return Err(AssemblyError::Cut),
            // Many servers say `stop` after calls, some `tool_calls` after none.
            Some(FinishReason::Stop) if !self.calls.is_empty() => FinishReason::ToolCalls,
            Some(FinishReason::ToolCalls) if self.calls.is_empty() => FinishReason::Stop,
            Some(finish) => finish,
        };
        let calls = self.calls.iter().map(CallBuilder::call).collect();
        Ok(AssembledReply { text: self.text, calls, finish, usage: self.usage, model: self.model })
    }

    fn add(&mut self, piece: ChunkCall) -> Result<(), AssemblyError> {
        let (name, arguments) = (piece.function.name, piece.function.arguments);
        let (name, arguments) = (name.unwrap_or_default(), arguments.unwrap_or_default());
        self.count(name.len() + arguments.len())?;
        let known = self.calls.iter().rposition(|slot| slot.index == piece.index);
        let another =
            |at: &usize| begins_another(&self.calls[*at], piece.id.as_deref(), &name, &arguments);
        let same = known.filter(|at| !another(at));
        if let Some(slot) = same.and_then(|at| self.calls.get_mut(at)) {
            // Some servers repeat the name with each piece.
            if slot.name != name {
                slot.name.push_str(&name);
            }
            slot.arguments.push_str(&arguments);
            slot.id = slot.id.take().or(piece.id);
            return Ok(());
        }
        if self.calls.len() >= CALLS_MAX {
            return Err(AssemblyError::NoReply(format!("it holds more than {CALLS_MAX} calls")));
        }
        self.calls.push(CallBuilder { index: piece.index, id: piece.id, name, arguments });
        Ok(())
    }

    fn count(&mut self, bytes: usize) -> Result<(), AssemblyError> {
        self.bytes += bytes;
        match self.bytes <= REPLY_BYTES_MAX {
            true => Ok(()),
            false => {
                Err(AssemblyError::NoReply(format!("it is longer than {REPLY_BYTES_MAX} bytes")))
            }
        }
    }
}

/// Whether a piece with the index of a call belongs to another one, since some
/// servers give every call the index 0: it then has another id, or, where there
/// are no ids, a name though the call before is complete; or, where all have one id,
/// a name and complete arguments of its own, too.
fn begins_another(slot: &CallBuilder, id: Option<&str>, name: &str, arguments: &str) -> bool {
    let is_json = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_ok();
    let is_whole = |text: &str| text.trim_start().starts_with('{') && is_json(text);
    match (slot.id.as_deref(), id) {
        (Some(known), Some(id)) if known == id => {
            !name.is_empty() && is_whole(&slot.arguments) && is_whole(arguments)
        }
        (Some(_), Some(_)) => true,
        (None, None) => !name.is_empty() && is_json(&slot.arguments),
        _ => false,
    }
}

/// The reason of an end, whatever the server calls it. What nobody knows is an
/// ordinary end: text and calls are there.
fn finish(reason: &str) -> Result<FinishReason, AssemblyError> {
    match reason.to_ascii_lowercase().as_str() {
        "tool_calls" | "tool_use" | "function_call" => Ok(FinishReason::ToolCalls),
        "length" | "max_tokens" | "model_length" => Ok(FinishReason::Length),
        "content_filter" | "refusal" | "safety" => Ok(FinishReason::Filtered),
        "error" => {
            let text = "it ended with an error".to_owned();
            Err(AssemblyError::Failed(ProviderErrorBody { text, ..ProviderErrorBody::default() }))
        }
        _ => Ok(FinishReason::Stop),
    }
}

impl AssembledReply {
    /// The tokens of question and answer, when the server did not count them.
    pub(super) fn estimate(&self, ask: &CompletionRequest) -> TokenCounts {
        let chars = |text: &str| text.chars().count();
        let message = |message: &Arc<Message>| {
            let calls = message.calls.iter().map(|call| chars(&call.tool) + chars(&call.arguments));
            chars(&message.content) + calls.sum::<usize>()
        };
        let tools = ask.tools.iter().map(|tool| {
            chars(tool.name.as_str()) + chars(&tool.description) + tool.parameters.text().len()
        });
        let prompt = ask.messages.iter().map(message).sum::<usize>() + tools.sum::<usize>();
        let calls = self.calls.iter().map(|call| chars(&call.tool) + chars(&call.arguments));
        let completion = chars(&self.text) + calls.sum::<usize>();
        TokenCounts {
            prompt: cost::estimate(prompt),
            cached: 0,
            cache_write: 0,
            completion: cost::estimate(completion),
        }
    }
}

#[cfg(test)]
mod tests;

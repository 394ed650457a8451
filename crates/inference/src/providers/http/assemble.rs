//! Pure: one reply out of its pieces.
//!
//! Calls come in pieces that are told apart by an index, by an id, or by neither, depending on the server. A reply
//! that never said that it ended must never become an answer: its last call may be half a call.

use std::sync::Arc;

use automaton_core::tool::ToolSpec;
use automaton_core::wire::chat::{ChatChunk, ChatUsage, ChunkCall};

use super::call_builder::CallBuilder;
use super::failure::ProviderErrorBody;
use super::finish::{FinishMeaning, meaning_of};
use super::inline_thoughts::{BareEnds, ThoughtSplitter};
use super::pieces::NO_INDEX;
use super::usage::later_usage;
use crate::cost::{self, TokenCounts};
use crate::provider::{CompletionRequest, FinishReason, Message, RawCall, TokenSink};
use crate::tool_name::unwrap_tool_name;

/// Object type of a whole reply in the chat-completions format.
pub(super) const WHOLE_REPLY: &str = "chat.completion";

/// The most that text, names and arguments of one reply may hold, in bytes.
const REPLY_BYTES_MAX: usize = 4 << 20;

/// The most calls of one reply. The agent runs far fewer.
const CALLS_MAX: usize = 128;

/// Reasons for which pieces make no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AssemblyError {
    /// It ended too early.
    Cut,
    /// The server says that it failed.
    Failed(ProviderErrorBody),
    /// It is something else.
    NoReply(String),
}

/// Content of one event or of one whole reply.
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
    text: ThoughtSplitter,
    calls: Vec<CallBuilder>,
    finish: Option<FinishReason>,
    /// The server's word for the end, where its meaning is not known.
    unknown_end: Option<String>,
    usage: Option<ChatUsage>,
    model: String,
    bytes: usize,
    /// Pieces that belong to the answer.
    answers: usize,
    /// True if a piece calls itself a whole reply.
    is_whole: bool,
}

/// A whole reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AssembledReply {
    pub(super) text: String,
    pub(super) calls: Vec<RawCall>,
    pub(super) finish: FinishReason,
    /// The server's word for the end, where its meaning is not known.
    pub(super) unknown_end: Option<String>,
    pub(super) usage: Option<ChatUsage>,
    pub(super) model: String,
    /// Characters of thoughts that stood in the text.
    pub(super) thought_chars: usize,
    /// True if the answer began within a thought.
    pub(super) began_in_thought: bool,
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
    /// An assembler that looks for thoughts without a beginning, too.
    pub(super) fn new(bare_ends: BareEnds) -> Self {
        Self { text: ThoughtSplitter::new(bare_ends), ..Self::default() }
    }

    /// Adds a piece and gives the words that are new.
    pub(super) fn take(&mut self, chunk: ChatChunk) -> Result<String, AssemblyError> {
        if !chunk.model.is_empty() {
            self.model = chunk.model;
        }
        self.is_whole |= chunk.object == WHOLE_REPLY;
        // Some servers tell the usage so far with each piece.
        self.usage = later_usage(self.usage, chunk.usage);
        let mut words = String::new();
        // One answer was asked for; others are not ours to weigh.
        for choice in chunk.choices.into_iter().filter(|choice| choice.index == 0) {
            self.answers += 1;
            if let Some(piece) = choice.delta.content.filter(|piece| !piece.is_empty()) {
                self.count(piece.len())?;
                words.push_str(&self.text.push(&piece));
            }
            for call in choice.delta.tool_calls.into_iter().flatten() {
                self.add(call)?;
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                // A reader refuses what failed; it never ends an answer here either.
                let meaning = meaning_of(&reason);
                self.finish = meaning.reason();
                self.unknown_end = (meaning == FinishMeaning::Unknown).then_some(reason);
                if self.finish.is_none() {
                    return Err(AssemblyError::Cut);
                }
                words.push_str(&self.text.finish());
            }
        }
        Ok(words)
    }

    /// Adds what a format's reader has read, and shows its words. Gives whether it was the last.
    pub(super) fn add_piece(
        &mut self,
        piece: StreamPiece,
        sink: &dyn TokenSink,
    ) -> Result<bool, AssemblyError> {
        let is_last = !matches!(piece, StreamPiece::Chunk(_));
        let mut words = match piece {
            StreamPiece::Chunk(chunk) | StreamPiece::Last(chunk) => self.take(chunk)?,
            StreamPiece::Done => String::new(),
        };
        if is_last {
            words.push_str(&self.end(FinishReason::Stop));
        }
        if !words.is_empty() {
            sink.text(&words);
        }
        Ok(is_last)
    }

    /// Notes that the reply ended, for this reason if it named none itself. Gives the words that
    /// were held back.
    pub(super) fn end(&mut self, finish: FinishReason) -> String {
        self.finish.get_or_insert(finish);
        self.text.finish()
    }

    /// Returns true if there is text or a call.
    pub(super) fn has_output(&self) -> bool {
        self.bytes > 0 || !self.calls.is_empty()
    }

    /// Bytes of text, names and arguments.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns true if the answer has ended.
    pub(super) const fn has_ended(&self) -> bool {
        self.answers > 0 && self.finish.is_some()
    }

    /// The first call, as far as it is there.
    pub(super) fn first_call(&self) -> Option<&CallBuilder> {
        self.calls.first()
    }

    /// The reply.
    pub(super) fn finish(mut self) -> Result<AssembledReply, AssemblyError> {
        // A whole document is a whole reply, whether or not it says why it ended.
        if self.is_whole && self.answers == 1 {
            self.end(FinishReason::Stop);
        }
        let finish = match self.finish {
            _ if self.answers == 0 => {
                return Err(AssemblyError::NoReply("it holds no answer".to_owned()));
            }
            None => return Err(AssemblyError::Cut),
            // Many servers say `stop` after calls, some `tool_calls` after none.
            Some(FinishReason::Stop) if !self.calls.is_empty() => FinishReason::ToolCalls,
            Some(FinishReason::ToolCalls) if self.calls.is_empty() => FinishReason::Stop,
            Some(finish) => finish,
        };
        let is_cut = |place: usize| finish == FinishReason::Length && place + 1 == self.calls.len();
        let calls = self.calls.iter().enumerate().map(|(place, call)| call.call(is_cut(place)));
        Ok(AssembledReply {
            text: self.text.words().to_owned(),
            calls: calls.collect(),
            finish,
            unknown_end: self.unknown_end,
            usage: self.usage,
            model: self.model,
            thought_chars: self.text.thought_chars(),
            began_in_thought: self.text.began_in_thought(),
        })
    }

    /// Adds a piece of a call to the call that it belongs to.
    fn add(&mut self, piece: ChunkCall) -> Result<(), AssemblyError> {
        let function = &piece.function;
        let bytes = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        self.count(bytes(&function.name) + bytes(&function.arguments))?;
        let has_name = function.name.as_ref().is_some_and(|name| !name.is_empty());
        let by_index = match piece.index {
            NO_INDEX => None,
            index => self.calls.iter().rposition(|call| call.index == index),
        };
        // More of a call that its server named once, and by its id alone.
        let by_place = || {
            let is_named = |call: &CallBuilder| call.index == NO_INDEX;
            self.calls.iter().rposition(is_named).filter(|_| !has_name)
        };
        let by_index = by_index.or_else(by_place);
        let by_index = by_index.filter(|at| !self.calls[*at].is_other_than(&piece));
        let has_id = |at: &usize| self.calls[*at].id == piece.id;
        let by_id = || {
            let is_same = |call: &CallBuilder| piece.id.is_some() && call.id == piece.id;
            let known = self.calls.iter().rposition(is_same);
            let is_more = |at: &usize| {
                let is_unnumbered = piece.index == NO_INDEX;
                !has_name || (is_unnumbered && !self.calls[*at].is_other_than(&piece))
            };
            known.filter(is_more)
        };
        let known = by_index.filter(has_id).or_else(by_id).or(by_index);
        if let Some(call) = known.and_then(|at| self.calls.get_mut(at)) {
            call.add(piece);
            return Ok(());
        }
        if self.calls.len() >= CALLS_MAX {
            return Err(AssemblyError::NoReply(format!("it holds more than {CALLS_MAX} calls")));
        }
        self.calls.push(CallBuilder::new(piece));
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

impl AssembledReply {
    /// Gives each call the name of the offered tool that it means.
    pub(super) fn name_calls(&mut self, tools: &[ToolSpec]) {
        for call in &mut self.calls {
            let is_known = |name: &str| tools.iter().any(|tool| tool.name.as_str() == name);
            if let Some(name) = unwrap_tool_name(&call.tool, is_known) {
                call.tool = name.to_owned();
            }
        }
    }

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
        let completion = chars(&self.text) + self.thought_chars + calls.sum::<usize>();
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

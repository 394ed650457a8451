//! Pure: a reply, as pieces of the chat-completions format.
//!
//! A whole reply is one piece. Thoughts are read past: they are no part of what is said. Must
//! never take a kind of event that is new for an error.

use automaton_core::wire::chat::{
    CalledFunction, ChatCall, ChatChoice, ChatChunk, ChatMessage, ChatResponse, ChatRole,
    ChatUsage, ChunkCall, ChunkChoice, ChunkDelta, ChunkFunction, FunctionKind,
    PromptTokensDetails,
};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::providers::http::assemble::{AssemblyError, StreamPiece};
use crate::providers::http::failure;

/// Reads the events of one reply.
#[derive(Debug, Default)]
pub struct MessagesReader {
    usage: MessagesUsage,
    /// The calls so far: the number of each one's block, and whether any argument has come.
    calls: Vec<(u32, bool)>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum MessagesEvent {
    Message(WholeMessage),
    MessageStart {
        message: MessageStart,
    },
    ContentBlockStart {
        index: u32,
        content_block: ReplyBlock,
    },
    ContentBlockDelta {
        index: u32,
        delta: BlockDelta,
    },
    ContentBlockStop {
        index: u32,
    },
    MessageDelta {
        delta: StopDelta,
        #[serde(default, deserialize_with = "counted")]
        usage: MessagesUsage,
    },
    MessageStop,
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
struct WholeMessage {
    #[serde(default)]
    id: String,
    #[serde(default)]
    model: String,
    content: Vec<ReplyBlock>,
    stop_reason: Option<String>,
    #[serde(default, deserialize_with = "counted")]
    usage: MessagesUsage,
}

#[derive(Deserialize)]
struct MessageStart {
    #[serde(default)]
    id: String,
    #[serde(default)]
    model: String,
    #[serde(default, deserialize_with = "counted")]
    usage: MessagesUsage,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ReplyBlock {
    Text {
        #[serde(default)]
        text: String,
    },
    ToolUse {
        #[serde(default)]
        id: String,
        name: String,
        #[serde(default)]
        input: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockDelta {
    TextDelta {
        text: String,
    },
    InputJsonDelta {
        partial_json: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct StopDelta {
    stop_reason: Option<String>,
}

/// Tokens used, each class apart: `input_tokens` counts neither what came from the cache nor
/// what was written into it.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct MessagesUsage {
    input_tokens: Option<u32>,
    cache_creation_input_tokens: Option<u32>,
    cache_read_input_tokens: Option<u32>,
    output_tokens: Option<u32>,
}

/// Counts that cannot be read are none.
fn counted<'de, D: Deserializer<'de>>(from: D) -> Result<MessagesUsage, D::Error> {
    let value = Value::deserialize(from)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

impl MessagesUsage {
    /// With what a later event says: its counts are of the whole reply.
    fn then(self, later: Self) -> Self {
        Self {
            input_tokens: later.input_tokens.or(self.input_tokens),
            cache_creation_input_tokens: later
                .cache_creation_input_tokens
                .or(self.cache_creation_input_tokens),
            cache_read_input_tokens: later.cache_read_input_tokens.or(self.cache_read_input_tokens),
            output_tokens: later.output_tokens.or(self.output_tokens),
        }
    }

    /// As the other format counts; nothing where no count came.
    fn told(self) -> Option<ChatUsage> {
        let (input, completion_tokens) = (self.input_tokens?, self.output_tokens?);
        let written = self.cache_creation_input_tokens.unwrap_or(0);
        let cached_tokens = self.cache_read_input_tokens.unwrap_or(0);
        let prompt_tokens = input.saturating_add(written).saturating_add(cached_tokens);
        Some(ChatUsage {
            prompt_tokens,
            completion_tokens,
            total_tokens: prompt_tokens.saturating_add(completion_tokens),
            prompt_tokens_details: Some(PromptTokensDetails {
                cached_tokens,
                cache_write_tokens: written,
            }),
            ..ChatUsage::default()
        })
    }
}

impl MessagesReader {
    /// What the data of an event, or a whole reply, says.
    pub(in crate::providers::http) fn piece(
        &mut self,
        data: &str,
    ) -> Result<StreamPiece, AssemblyError> {
        let no_reply = |error: serde_json::Error| AssemblyError::NoReply(error.to_string());
        let value: Value = serde_json::from_str(data).map_err(no_reply)?;
        if let Some(said) = failure::said(&value) {
            return Err(AssemblyError::Failed(said));
        }
        let event = serde_json::from_value(value).map_err(no_reply)?;
        Ok(self.read(event).map_or(StreamPiece::Done, StreamPiece::Chunk))
    }

    /// The same for a server that passes replies on in the chat-completions format: a piece of
    /// it, or nothing at the end.
    ///
    /// # Errors
    /// What the server says went wrong, or that it is no reply.
    pub fn chunk(&mut self, data: &str) -> Result<Option<ChatChunk>, String> {
        match self.piece(data).map_err(String::from)? {
            StreamPiece::Chunk(chunk) => Ok(Some(chunk)),
            StreamPiece::Done => Ok(None),
        }
    }

    /// A whole reply in the chat-completions format, for a server that passes it on.
    ///
    /// # Errors
    /// As [`MessagesReader::chunk`].
    pub fn document(body: &str) -> Result<ChatResponse, String> {
        let chunk = Self::default().chunk(body)?;
        let chunk = chunk.ok_or_else(|| "it holds no answer".to_owned())?;
        let choice = chunk.choices.into_iter().next().unwrap_or_default();
        let calls = choice.delta.tool_calls.unwrap_or_default().into_iter().map(|call| ChatCall {
            id: call.id.unwrap_or_default(),
            kind: FunctionKind::Function,
            function: CalledFunction {
                name: call.function.name.unwrap_or_default(),
                arguments: call.function.arguments.unwrap_or_default(),
            },
        });
        let calls: Vec<ChatCall> = calls.collect();
        let message = ChatMessage {
            role: ChatRole::Assistant,
            content: choice.delta.content.filter(|text| !text.is_empty() || calls.is_empty()),
            tool_calls: (!calls.is_empty()).then_some(calls),
            tool_call_id: None,
        };
        Ok(ChatResponse {
            id: chunk.id,
            object: "chat.completion".to_owned(),
            created: 0,
            model: chunk.model,
            choices: vec![ChatChoice { index: 0, message, finish_reason: choice.finish_reason }],
            usage: chunk.usage,
        })
    }

    /// A piece; nothing where the reply ends.
    fn read(&mut self, event: MessagesEvent) -> Option<ChatChunk> {
        Some(match event {
            MessagesEvent::Message(whole) => self.whole(whole),
            MessagesEvent::MessageStart { message } => {
                self.usage = message.usage;
                let role = Some(ChatRole::Assistant);
                let begun = of_delta(ChunkDelta { role, ..ChunkDelta::default() }, None);
                ChatChunk { id: message.id, model: message.model, ..begun }
            }
            MessagesEvent::ContentBlockStart { index, content_block } => {
                of_delta(self.begun(index, content_block), None)
            }
            MessagesEvent::ContentBlockDelta { index, delta } => {
                of_delta(self.more(index, delta), None)
            }
            MessagesEvent::ContentBlockStop { index } => of_delta(self.ended(index), None),
            MessagesEvent::MessageDelta { delta, usage } => {
                self.usage = self.usage.then(usage);
                let end = of_delta(ChunkDelta::default(), delta.stop_reason.map(finish_reason));
                ChatChunk { usage: self.usage.told(), ..end }
            }
            MessagesEvent::MessageStop => return None,
            MessagesEvent::Unknown => ChatChunk::default(),
        })
    }

    fn whole(&mut self, whole: WholeMessage) -> ChatChunk {
        let WholeMessage { id, model, content, stop_reason, usage } = whole;
        let mut all = ChunkDelta::default();
        for (index, block) in (0..).zip(content) {
            let begun = self.begun(index, block);
            all.content.get_or_insert_default().push_str(&begun.content.unwrap_or_default());
            let bare = self.ended(index).tool_calls.into_iter().flatten();
            let arguments: Option<String> = bare.filter_map(|it| it.function.arguments).next();
            let calls = begun.tool_calls.into_iter().flatten().map(|mut call| {
                call.function.arguments = call.function.arguments.take().or(arguments.clone());
                call
            });
            all.tool_calls.get_or_insert_default().extend(calls);
        }
        ChatChunk {
            id,
            model,
            usage: usage.told(),
            ..of_delta(all, stop_reason.map(finish_reason))
        }
    }

    fn begun(&mut self, index: u32, block: ReplyBlock) -> ChunkDelta {
        match block {
            ReplyBlock::Text { text } => text_delta(text),
            ReplyBlock::ToolUse { id, name, input } => {
                let is_empty = |fields: &Map<String, Value>| fields.is_empty();
                let has_input = !input.is_null() && !input.as_object().is_some_and(is_empty);
                self.calls.push((index, has_input));
                let arguments = has_input.then(|| input.to_string());
                let function = ChunkFunction { name: Some(name), arguments };
                self.call(index, Some(id).filter(|id| !id.is_empty()), function)
            }
            ReplyBlock::Other => ChunkDelta::default(),
        }
    }

    fn more(&mut self, index: u32, delta: BlockDelta) -> ChunkDelta {
        match delta {
            BlockDelta::TextDelta { text } => text_delta(text),
            BlockDelta::InputJsonDelta { partial_json } if !partial_json.is_empty() => {
                let known = self.calls.iter_mut().find(|(of, _)| *of == index);
                let Some((_, has_input)) = known else { return ChunkDelta::default() };
                *has_input = true;
                let function = ChunkFunction { name: None, arguments: Some(partial_json) };
                self.call(index, None, function)
            }
            BlockDelta::InputJsonDelta { .. } | BlockDelta::Other => ChunkDelta::default(),
        }
    }

    /// A call without arguments has an empty object.
    fn ended(&mut self, index: u32) -> ChunkDelta {
        let bare = self.calls.iter_mut().find(|(of, has_input)| *of == index && !has_input);
        let Some((_, has_input)) = bare else { return ChunkDelta::default() };
        *has_input = true;
        let function = ChunkFunction { name: None, arguments: Some("{}".to_owned()) };
        self.call(index, None, function)
    }

    /// A piece of a call, which is numbered among the calls.
    fn call(&self, block: u32, id: Option<String>, function: ChunkFunction) -> ChunkDelta {
        let place = self.calls.iter().position(|(of, _)| *of == block).unwrap_or(0);
        let index = u32::try_from(place).unwrap_or(u32::MAX);
        let kind = id.is_some().then_some(FunctionKind::Function);
        let call = ChunkCall { index, id, kind, function };
        ChunkDelta { tool_calls: Some(vec![call]), ..ChunkDelta::default() }
    }
}

fn text_delta(text: String) -> ChunkDelta {
    ChunkDelta { content: Some(text).filter(|text| !text.is_empty()), ..ChunkDelta::default() }
}

/// Why a reply ended, in the words of the other format.
fn finish_reason(stop: String) -> String {
    match stop.as_str() {
        "end_turn" | "stop_sequence" => "stop".to_owned(),
        "tool_use" => "tool_calls".to_owned(),
        "max_tokens" | "model_context_window_exceeded" => "length".to_owned(),
        "refusal" => "content_filter".to_owned(),
        _ => stop,
    }
}

fn of_delta(delta: ChunkDelta, finish_reason: Option<String>) -> ChatChunk {
    let choice = ChunkChoice { index: 0, delta, finish_reason };
    ChatChunk { choices: vec![choice], ..ChatChunk::default() }
}

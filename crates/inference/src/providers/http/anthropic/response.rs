//! Pure: a reply, as pieces of the chat-completions format.
//!
//! A whole reply is one piece. Thoughts are kept apart: they are no part of what is said. Must
//! never take a kind of event that is new for an error.

use std::collections::BTreeSet;

use automaton_core::wire::chat::{ChatChunk, ChatRole, ChatUsage, ChunkDelta};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::providers::http::assemble::{AssemblyError, StreamPiece, WHOLE_REPLY};
use crate::providers::http::pieces::{self, unread};
use crate::providers::http::thoughts::ThoughtLog;
use crate::providers::http::usage::{count, counts};

/// Reads the events of one reply.
#[derive(Debug, Default)]
pub(in crate::providers::http) struct MessagesReader {
    usage: MessagesUsage,
    /// The calls so far: the number of each one's block, and whether any argument has come.
    calls: Vec<(u32, bool)>,
    /// The numbers of blocks that are no part of an answer.
    others: BTreeSet<u32>,
    /// Its thoughts, as blocks.
    pub(in crate::providers::http) thoughts: ThoughtLog,
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
        #[serde(default)]
        usage: Value,
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
    #[serde(default)]
    usage: Value,
}

#[derive(Deserialize)]
struct MessageStart {
    #[serde(default)]
    id: String,
    #[serde(default)]
    model: String,
    #[serde(default)]
    usage: Value,
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
        id: Option<String>,
        #[serde(default)]
        name: Option<String>,
        #[serde(default)]
        input: Value,
    },
    Thinking {
        #[serde(default)]
        thinking: String,
        #[serde(default)]
        signature: String,
    },
    RedactedThinking {
        #[serde(default)]
        data: String,
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
    ThinkingDelta {
        thinking: String,
    },
    SignatureDelta {
        signature: String,
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
#[derive(Debug, Clone, Copy, Default)]
struct MessagesUsage {
    input_tokens: Option<u32>,
    cache_creation_input_tokens: Option<u32>,
    cache_read_input_tokens: Option<u32>,
    output_tokens: Option<u32>,
}

impl MessagesUsage {
    fn from_json(told: &Value) -> Self {
        Self {
            input_tokens: count(told, "input_tokens"),
            cache_creation_input_tokens: count(told, "cache_creation_input_tokens"),
            cache_read_input_tokens: count(told, "cache_read_input_tokens"),
            output_tokens: count(told, "output_tokens"),
        }
    }

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
    fn to_chat_usage(self) -> Option<ChatUsage> {
        let input = self.input_tokens?;
        let completion_tokens = self.output_tokens?;
        let written = self.cache_creation_input_tokens.unwrap_or(0);
        let cached_tokens = self.cache_read_input_tokens.unwrap_or(0);
        let prompt_tokens = input.saturating_add(written).saturating_add(cached_tokens);
        Some(counts(prompt_tokens, cached_tokens, written, completion_tokens))
    }
}

impl MessagesReader {
    /// Reads the data of an event or a whole reply.
    pub(in crate::providers::http) fn piece(
        &mut self,
        data: &str,
    ) -> Result<StreamPiece, AssemblyError> {
        let event = serde_json::from_value(Value::Object(pieces::object(data)?))
            .map_err(|error| AssemblyError::NoReply(error.to_string()))?;
        Ok(self.read(event)?.map_or(StreamPiece::Done, StreamPiece::Chunk))
    }

    /// A piece; nothing where the reply ends.
    fn read(&mut self, event: MessagesEvent) -> Result<Option<ChatChunk>, AssemblyError> {
        Ok(Some(match event {
            MessagesEvent::Message(whole) => self.read_whole(whole),
            MessagesEvent::MessageStart { message } => {
                self.usage = MessagesUsage::from_json(&message.usage);
                let role = Some(ChatRole::Assistant);
                let begun = pieces::chunk(ChunkDelta { role, ..ChunkDelta::default() }, None);
                ChatChunk { id: message.id, model: message.model, ..begun }
            }
            MessagesEvent::ContentBlockStart { index, content_block } => {
                pieces::chunk(self.begun(index, content_block), None)
            }
            MessagesEvent::ContentBlockDelta { index, delta } => {
                pieces::chunk(self.more(index, delta)?, None)
            }
            MessagesEvent::ContentBlockStop { index } => pieces::chunk(self.ended(index), None),
            MessagesEvent::MessageDelta { delta, usage } => {
                self.usage = self.usage.then(MessagesUsage::from_json(&usage));
                let end = pieces::chunk(ChunkDelta::default(), delta.stop_reason);
                ChatChunk { usage: self.usage.to_chat_usage(), ..end }
            }
            MessagesEvent::MessageStop => return Ok(None),
            MessagesEvent::Unknown => ChatChunk::default(),
        }))
    }

    fn read_whole(&mut self, whole: WholeMessage) -> ChatChunk {
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
            object: WHOLE_REPLY.to_owned(),
            usage: MessagesUsage::from_json(&usage).to_chat_usage(),
            ..pieces::chunk(all, stop_reason)
        }
    }

    fn begun(&mut self, index: u32, block: ReplyBlock) -> ChunkDelta {
        match block {
            ReplyBlock::Text { text } => pieces::text(text),
            ReplyBlock::ToolUse { id, name, input } => {
                let arguments = pieces::arguments_of(&input);
                // What follows an empty object is what it stands for.
                let arguments = arguments.filter(|it| !matches!(it.trim(), "" | "{}"));
                self.calls.push((index, arguments.is_some()));
                self.call(index, id.as_deref(), name.as_deref(), arguments)
            }
            ReplyBlock::Thinking { thinking, signature } => self.thought(
                json!({ "type": "thinking", "thinking": thinking, "signature": signature }),
            ),
            ReplyBlock::RedactedThinking { data } => {
                self.thought(json!({ "type": "redacted_thinking", "data": data }))
            }
            ReplyBlock::Other => {
                self.others.insert(index);
                ChunkDelta::default()
            }
        }
    }

    fn more(&mut self, index: u32, delta: BlockDelta) -> Result<ChunkDelta, AssemblyError> {
        Ok(match delta {
            BlockDelta::TextDelta { text } => pieces::text(text),
            BlockDelta::InputJsonDelta { partial_json } if !partial_json.is_empty() => {
                let known = self.calls.iter_mut().rfind(|(of, _)| *of == index);
                match known {
                    Some((_, has_input)) => *has_input = true,
                    None if self.others.contains(&index) => return Ok(ChunkDelta::default()),
                    None => return Err(unread("a piece of a call that never began")),
                }
                self.call(index, None, None, Some(partial_json))
            }
            BlockDelta::ThinkingDelta { thinking } => {
                self.thoughts.extend("thinking", &thinking);
                ChunkDelta::default()
            }
            BlockDelta::SignatureDelta { signature } => {
                self.thoughts.extend("signature", &signature);
                ChunkDelta::default()
            }
            BlockDelta::InputJsonDelta { .. } | BlockDelta::Other => ChunkDelta::default(),
        })
    }

    /// A thought is no part of what is said.
    fn thought(&mut self, block: Value) -> ChunkDelta {
        self.thoughts.add(block);
        ChunkDelta::default()
    }

    /// A call without arguments has an empty object.
    fn ended(&mut self, index: u32) -> ChunkDelta {
        let bare = self.calls.iter_mut().rfind(|(of, has_input)| *of == index && !has_input);
        let Some((_, has_input)) = bare else { return ChunkDelta::default() };
        *has_input = true;
        self.call(index, None, None, Some("{}".to_owned()))
    }

    /// A piece of a call, which is numbered among the calls.
    fn call(
        &self,
        block: u32,
        id: Option<&str>,
        name: Option<&str>,
        arguments: Option<String>,
    ) -> ChunkDelta {
        let place = self.calls.iter().rposition(|(of, _)| *of == block).unwrap_or(0);
        pieces::calls(vec![pieces::call(place, id, name, arguments)])
    }
}

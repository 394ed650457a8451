//! Pure: the chat-completions format that `OpenAI` introduced and many speak.
//!
//! The fields that we send and read, no more; unknown fields of a reply are
//! ignored, since every server adds its own. Source of the format:
//! <https://platform.openai.com/docs/api-reference/chat>.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The body of `POST /v1/chat/completions`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatRequest {
    /// The model's id.
    pub model: String,
    /// The conversation, oldest message first.
    pub messages: Vec<ChatMessage>,
    /// The tools that may be called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ChatTool>,
    /// Which of them, where not any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Seed of the sampler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The most tokens that may be generated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// True if the reply comes as server-sent events.
    #[serde(default)]
    pub stream: bool,
    /// Options of a stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_options: Option<StreamOptions>,
}

/// Options of a streamed reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamOptions {
    /// True if the last event holds the usage.
    pub include_usage: bool,
}

/// One message of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// `system`, `user`, `assistant` or `tool`.
    pub role: ChatRole,
    /// The text.
    pub content: Option<String>,
    /// The calls that an assistant message made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<ChatCall>>,
    /// The call that a tool message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

/// Author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatRole {
    /// The rules.
    System,
    /// The other side of the conversation.
    User,
    /// The model.
    Assistant,
    /// The result of a call.
    Tool,
}

/// A tool, wrapped as the format has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatTool {
    /// Always `function`.
    #[serde(rename = "type")]
    pub kind: FunctionKind,
    /// The tool.
    pub function: ChatFunction,
}

/// The one kind of tool there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FunctionKind {
    /// A function.
    #[default]
    Function,
}

/// A tool's name, purpose and schema.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatFunction {
    /// Its name.
    pub name: String,
    /// Description.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of its arguments.
    #[serde(default)]
    pub parameters: Value,
}

/// Which of the tools may be called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ToolChoice {
    /// All of them, or none.
    Mode(ToolMode),
    /// Those that are named.
    Named(NamedTools),
}

/// Use of tools in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolMode {
    /// Not at all.
    None,
    /// As the model likes.
    Auto,
    /// At least one.
    Required,
}

/// Tools that may be called, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum NamedTools {
    /// One, which is to be called.
    Function {
        /// It.
        function: ToolReference,
    },
    /// Some. The others stay in the list of tools, so that the prompt stays the
    /// same and a server can keep it.
    AllowedTools {
        /// They.
        allowed_tools: AllowedTools,
    },
}

/// The tools out of the list that may be called this time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowedTools {
    /// Use of tools.
    pub mode: ToolMode,
    /// They.
    pub tools: Vec<AllowedTool>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowedTool {
    /// Always `function`.
    #[serde(rename = "type")]
    pub kind: FunctionKind,
    /// The tool.
    pub function: ToolReference,
}

/// A tool by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolReference {
    /// The name.
    pub name: String,
}

/// A call that a model made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatCall {
    /// The provider's id; not unique over turns.
    #[serde(default)]
    pub id: String,
    /// Always `function`.
    #[serde(rename = "type", default)]
    pub kind: FunctionKind,
    /// The call itself.
    pub function: CalledFunction,
}

/// The name and arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalledFunction {
    /// The tool.
    pub name: String,
    /// The arguments as JSON text.
    #[serde(default)]
    pub arguments: String,
}

/// A whole reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatResponse {
    /// The reply's id.
    #[serde(default)]
    pub id: String,
    /// Always `chat.completion`.
    #[serde(default)]
    pub object: String,
    /// Seconds since the epoch.
    #[serde(default)]
    pub created: i64,
    /// The model that answered.
    #[serde(default)]
    pub model: String,
    /// The answers; we ask for one.
    pub choices: Vec<ChatChoice>,
    /// Usage.
    pub usage: Option<ChatUsage>,
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatChoice {
    /// Its number.
    #[serde(default)]
    pub index: u32,
    /// The message.
    pub message: ChatMessage,
    /// Reason for the end: `stop`, `length`, `tool_calls`, and inventions of servers.
    pub finish_reason: Option<String>,
}

/// Tokens used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ChatUsage {
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Generated.
    pub completion_tokens: u32,
    /// Both.
    pub total_tokens: u32,
    /// Particulars of the prompt's tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_tokens_details: Option<PromptTokensDetails>,
    /// Milliseconds until the model had its first token; only our server says so. A
    /// call of a local model is sent whole, and so comes later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<u32>,
    /// True if the cloud estimated the counts and charged the estimate. Only our server says so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

/// Particulars of the prompt's tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PromptTokensDetails {
    /// Tokens that came from a cache.
    #[serde(default)]
    pub cached_tokens: u32,
    /// Tokens that were written into a cache; some servers charge more for these.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// One event of a streamed reply.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ChatChunk {
    /// The reply's id.
    pub id: String,
    /// Always `chat.completion.chunk`.
    pub object: String,
    /// Seconds since the epoch.
    pub created: i64,
    /// The model that answers.
    pub model: String,
    /// The pieces; empty in the event that tells the usage.
    pub choices: Vec<ChunkChoice>,
    /// Usage, in the last event.
    pub usage: Option<ChatUsage>,
}

/// A piece of one answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ChunkChoice {
    /// The answer's number.
    pub index: u32,
    /// The piece.
    pub delta: ChunkDelta,
    /// Reason for the end, in the last piece.
    pub finish_reason: Option<String>,
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ChunkDelta {
    /// Author, in the first piece.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<ChatRole>,
    /// More text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// More of its calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<ChunkCall>>,
}

/// A piece of a call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ChunkCall {
    /// Which call of the message.
    pub index: u32,
    /// Its id, in its first piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Always `function`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<FunctionKind>,
    /// More of it.
    pub function: ChunkFunction,
}

/// A piece of a call's name and arguments.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ChunkFunction {
    /// More of the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// More of the arguments' JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
}

//! Pure: the protocol of the local model's helper.
//!
//! One JSON object a line over a connected Unix stream socket. The helper
//! speaks first ([`LocalModelResponse::Hello`]); then each [`LocalModelRequest`] is answered by any
//! number of [`LocalModelResponse::Token`] lines and exactly one [`LocalModelResponse::Done`] or
//! [`LocalModelResponse::Failed`]. One request at a time. A line is at most
//! [`LINE_BYTES_MAX`] bytes. The helper must never be sent anything secret: it
//! parses files that strangers wrote.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::chat::ChatRole;

/// Version of this protocol; the two sides refuse each other when it differs.
pub const VERSION: u32 = 1;

/// The longest line either side may send, in bytes.
pub const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Request of the agent to the helper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub enum LocalModelRequest {
    /// Answer a conversation.
    Complete(LocalModelCompletionRequest),
    /// Count the tokens of a conversation as it would be rendered.
    Count {
        /// The conversation, oldest message first.
        messages: Vec<LocalModelMessage>,
    },
}

/// A request for one answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalModelCompletionRequest {
    /// The conversation, oldest message first.
    pub messages: Vec<LocalModelMessage>,
    /// The tools the answer may call, in the order of the prompt.
    pub tools: Vec<LocalModelTool>,
    /// Names of tools that the grammar leaves out of this answer.
    #[serde(default)]
    pub left_out: Vec<String>,
    /// The most tokens that may be generated.
    pub max_tokens: u32,
    /// Seed of the sampler; ignored when `temperature_milli` is 0.
    pub seed: u64,
    /// Sampling temperature in thousandths; 0 is greedy.
    pub temperature_milli: u32,
}

/// One message of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalModelMessage {
    /// Author of the message.
    pub role: ChatRole,
    /// The text; may be empty when there are calls.
    pub content: String,
    /// The calls an assistant message made, at most one is ever generated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<LocalModelCall>,
}

/// A tool that the answer may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalModelTool {
    /// The tool's name.
    pub name: String,
    /// Description in one sentence.
    pub description: String,
    /// JSON Schema of its arguments, an object schema.
    pub parameters: Value,
}

/// A call of a tool. `arguments` is JSON text, as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalModelCall {
    /// The tool's name.
    pub name: String,
    /// The arguments as JSON text of an object.
    pub arguments: String,
}

/// Message of the helper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case", deny_unknown_fields)]
pub enum LocalModelResponse {
    /// The model is loaded.
    Hello(LocalModelHello),
    /// A piece of the answer's text, in order; for showing it as it comes.
    Token {
        /// The piece.
        text: String,
    },
    /// The answer is complete.
    Done(LocalModelCompletion),
    /// The length of a conversation.
    Counted {
        /// Tokens, template included.
        tokens: u32,
    },
    /// The request could not be answered; the helper lives on.
    Failed(LocalModelFailure),
}

/// The helper's first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalModelHello {
    /// [`VERSION`] of the helper.
    pub version: u32,
    /// The model's name, from the file's metadata.
    pub model: String,
    /// Parameters of the model.
    pub parameters: u64,
    /// The context window that the helper set up, in tokens.
    pub context_tokens: u32,
    /// Milliseconds it took to load the model.
    pub load_ms: u64,
}

/// A finished answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalModelCompletion {
    /// Text of the answer, without its calls.
    pub text: String,
    /// The calls it made.
    pub calls: Vec<LocalModelCall>,
    /// Reason for the end.
    pub finish: LocalModelFinishReason,
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Tokens of the prompt that were in the cache.
    pub cached_tokens: u32,
    /// Tokens generated.
    pub completion_tokens: u32,
    /// Milliseconds until the prompt was evaluated and the first token was there.
    pub first_token_ms: u64,
    /// Milliseconds of the whole answer.
    pub total_ms: u64,
}

/// Reason for the end of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LocalModelFinishReason {
    /// The model was done.
    Stop,
    /// The token limit was reached; the answer may be cut.
    Length,
    /// The answer repeated itself and was ended.
    Repetition,
}

/// Failure of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalModelFailure {
    /// Kind of failure.
    pub code: LocalModelFailureCode,
    /// One sentence with the particulars.
    pub message: String,
}

/// The kinds of failure of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LocalModelFailureCode {
    /// The line was no request.
    BadRequest,
    /// The conversation does not fit into the context window.
    TooLong,
    /// A tool's schema could not be made into a grammar.
    BadSchema,
    /// The model or its library failed.
    Model,
}

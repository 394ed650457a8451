//! Pure: refusals in the forms that clients of `OpenAI` and Anthropic read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ErrorDetails;

/// The body of a refusal where clients of `OpenAI` ask: their form of it, and ours beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelErrorBody {
    /// In the form of `OpenAI`.
    pub error: ModelError,
    /// For programs that know this cloud.
    #[serde(default)]
    pub code: String,
    /// Numbers, where there are some.
    #[serde(default)]
    pub details: ErrorDetails,
    /// The numbers in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Error in the form that clients of `OpenAI` read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelError {
    /// For people.
    pub message: String,
    /// The kind, such as `invalid_request_error`.
    #[serde(rename = "type")]
    pub kind: String,
    /// For programs, such as `model_not_found`.
    pub code: String,
    /// The field of the request that is wrong, where it is one.
    pub param: Option<String>,
}

/// Error of an answer that had begun, in the form that clients of `OpenAI`'s responses read. The
/// same is in `error`, which their own programs read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponsesErrorEvent {
    /// Always `error`.
    #[serde(rename = "type")]
    pub kind: String,
    /// For programs.
    pub code: String,
    /// For people.
    pub message: String,
    /// The field of the request that is wrong, where it is one.
    pub param: Option<String>,
    /// Number of earlier events.
    pub sequence_number: usize,
    /// All of it.
    pub error: ModelError,
}

/// The body of a refusal where clients of Anthropic ask: their form of it, and ours beside it.
/// Source: <https://docs.anthropic.com/en/api/errors>.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessagesErrorBody {
    /// Always `error`.
    #[serde(rename = "type")]
    pub kind: String,
    /// In the form of Anthropic.
    pub error: MessagesError,
    /// For programs that know this cloud.
    #[serde(default)]
    pub code: String,
    /// Numbers, where there are some.
    #[serde(default)]
    pub details: ErrorDetails,
    /// The numbers in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Error in the form that clients of Anthropic read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessagesError {
    /// The kind, such as `invalid_request_error`.
    #[serde(rename = "type")]
    pub kind: String,
    /// For people.
    pub message: String,
    /// For clients that go on without the named fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<UnsupportedFields>,
}

/// The fields of a request that a server does not support, where clients have agreed to leave
/// them out and ask again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnsupportedFields {
    /// The code of the agreement, such as `thread_unsupported_request`.
    pub error_code: String,
    /// The fields.
    pub unsupported: Vec<String>,
}

//! Requests to a model and its answers, for every provider.
//!
//! Plain values and two traits. Must never hold anything of one provider's
//! format.

use std::sync::Arc;
use std::time::Duration;

use automaton_core::id::CallId;
use automaton_core::record::Usage;
use automaton_core::tool::{ToolName, ToolSpec};
pub use automaton_core::wire::chat::ChatRole;

use crate::catalogue::ModelInfo;
use crate::cost::ModelPrices;
use crate::error::InferenceError;

pub use futures_util::future::BoxFuture;

/// Something that answers.
pub trait Provider: Send + Sync {
    /// The model that answers.
    fn model(&self) -> &ModelInfo;

    /// Answers once. One attempt: whoever asks decides whether to ask again.
    /// Dropping the future gives the answer up.
    fn complete<'a>(
        &'a self,
        ask: &'a CompletionRequest,
        sink: &'a dyn TokenSink,
    ) -> BoxFuture<'a, Result<Completion, InferenceError>>;

    /// The same at other prices, where they are somebody else's to say.
    fn at(&self, _prices: ModelPrices) -> Option<Arc<dyn Provider>> {
        None
    }

    /// Lets go of what it holds for answering, where nobody has asked for so long.
    fn unload(&self, _idle: Duration) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Receiver of the pieces of an answer, for display. Only the [`Completion`] counts: after a
/// failure the pieces are worthless.
pub trait TokenSink: Send + Sync {
    /// Takes the next piece of the answer's text.
    fn text(&self, piece: &str);
}

/// Shows the pieces to nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTokenSink;

impl TokenSink for NoTokenSink {
    fn text(&self, _piece: &str) {}
}

/// A question.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletionRequest {
    /// The conversation, oldest message first. System messages stand at the
    /// head; each call is answered directly after the message that made it; the
    /// last message is not the model's.
    pub messages: Vec<Arc<Message>>,
    /// The tools that may be called, in the order of the prompt.
    pub tools: Arc<[ToolSpec]>,
    /// Tools that must not be called this time.
    pub left_out: Vec<ToolName>,
    /// The most tokens that may be generated.
    pub max_tokens: u32,
    /// Seed of the sampler; only the local model knows one.
    pub seed: u64,
    /// Sampling temperature in thousandths; 0 is greedy.
    pub temperature_milli: u32,
    /// Name of the request at the server, to ask later for its outcome.
    pub name: Option<String>,
    /// Longest silence of the server; `None` for the default.
    pub silence: Option<Duration>,
}

/// One message of the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Author of the message.
    pub role: ChatRole,
    /// The text.
    pub content: String,
    /// The calls that an assistant message made.
    pub calls: Vec<MessageCall>,
    /// The call that a tool message answers.
    pub answers: Option<CallId>,
}

/// A call as the history holds it, under our own id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageCall {
    /// Our id.
    pub id: CallId,
    /// The tool, as the model named it.
    pub tool: String,
    /// The arguments as JSON text, as the model wrote them.
    pub arguments: String,
}

impl Message {
    /// The rules.
    #[must_use]
    pub fn system(content: impl Into<String>) -> Self {
        Self { role: ChatRole::System, content: content.into(), calls: Vec::new(), answers: None }
    }

    /// Creates a message of the user.
    #[must_use]
    pub fn user(content: impl Into<String>) -> Self {
        Self { role: ChatRole::User, ..Self::system(content) }
    }

    /// Creates a message of the model with its calls.
    #[must_use]
    pub fn assistant(content: impl Into<String>, calls: Vec<MessageCall>) -> Self {
        Self { role: ChatRole::Assistant, calls, ..Self::system(content) }
    }

    /// The result of a call.
    #[must_use]
    pub fn tool(answers: CallId, content: impl Into<String>) -> Self {
        Self { role: ChatRole::Tool, answers: Some(answers), ..Self::system(content) }
    }
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// Text without the calls.
    pub text: String,
    /// The calls it wants, unchecked, in order.
    pub calls: Vec<RawCall>,
    /// Reason for the end.
    pub finish: FinishReason,
    /// Usage and cost.
    pub usage: Usage,
    /// Origin of the token counts in `usage`.
    pub counted: TokenCountSource,
}

/// A call as the model wrote it: unchecked, perhaps cut, perhaps nonsense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawCall {
    /// The provider's id. Not unique; never one of our ids.
    pub provider_id: Option<String>,
    /// The tool, as the model named it.
    pub tool: String,
    /// The arguments as text that should be JSON.
    pub arguments: String,
}

/// Reason for the end of an answer, for every provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FinishReason {
    /// The model had said what it had to say.
    Stop,
    /// It waits for the results of its calls.
    ToolCalls,
    /// The token limit was reached; text and last call may be cut.
    Length,
    /// The provider withheld the rest.
    Filtered,
    /// The answer repeated itself and was ended.
    Repetition,
}

/// Origin of a token count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenCountSource {
    /// The provider.
    Reported,
    /// We, by the length of the texts, since the provider told nothing.
    Estimated,
}

//! Talks to models.
//!
//! A [`Provider`] answers an [`CompletionRequest`] with a [`Completion`]: a hosted or home-made
//! server of the chat-completions format, or the local model's helper in our
//! sandbox. What comes back is assembled, bounded and priced here; whether a
//! call fits its tool's schema is told by [`Checker`]. This crate must never
//! run a call, retry a request, or let a failed request look like an answer.

pub mod catalogue;
pub mod check;
mod conversation;
pub mod cost;
pub mod embedding;
pub mod error;
mod fault;
mod file_hash;
mod halves;
mod lenient;
mod price_schedule;
pub mod provider;
pub mod providers;
pub mod routing;
mod tool_name;

pub use catalogue::{ModelClaims, ModelHosting, ModelInfo, RequestDialect};
pub use check::{CallFault, CheckedCall, Checker, FaultKind};
pub use cost::ModelPrices;
pub use embedding::{
    BuiltInEmbedder, Embedder, EmbeddingError, EmbeddingServer, Embeddings, LocalEmbedder,
    ServedEmbedder,
};
pub use error::{InferenceError, LocalModelError};
pub use fault::AnswerFault;
pub use file_hash::sha256_of;
pub use price_schedule::{DatedPrices, PriceSchedule};
pub use provider::{
    BoxFuture, ChatRole, Completion, CompletionRequest, FinishReason, Message, MessageCall,
    NoTokenSink, Provider, RawCall, TokenCountSource, TokenSink,
};
pub use routing::{ModelFinder, ModelIndex, ProviderRegistry, RegisteredModel, Route, RouteQuery};

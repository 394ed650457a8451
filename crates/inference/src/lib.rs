//! Talks to models.
//!
//! A [`Provider`] answers an [`Ask`] with a [`Reply`]: a hosted or home-made
//! server of the chat-completions format, or the local model's helper in our
//! sandbox. What comes back is assembled, bounded and priced here; whether a
//! call fits its tool's schema is told by [`Checker`]. This crate must never
//! run a call, retry a request, or let a failed request look like an answer.

pub mod catalogue;
pub mod check;
mod conversation;
pub mod cost;
pub mod error;
mod fault;
pub mod provider;
pub mod providers;

pub use catalogue::{Claims, Dialect, ModelInfo, Place};
pub use check::{CallFault, CheckedCall, Checker, FaultKind};
pub use cost::Prices;
pub use error::{HelperError, InferenceError};
pub use fault::AnswerFault;
pub use provider::{
    Ask, BoxFuture, Counted, Finish, Message, MessageCall, NoSink, Provider, RawCall, Reply, Role,
    Sink,
};

//! Pure: Anthropic's messages format.
//!
//! Source: <https://docs.anthropic.com/en/api/messages> and
//! <https://docs.anthropic.com/en/api/messages-streaming>.

mod request;
mod response;
#[cfg(test)]
pub(super) mod sold_tests;
#[cfg(test)]
mod tests;
mod to_chat;
mod writer;

pub(super) use self::request::body;
pub(super) use self::response::MessagesReader;
pub use self::to_chat::chat_from_messages;
pub use self::writer::{MessagesCount, messages_writer};

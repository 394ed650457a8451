//! Pure: Anthropic's messages format.
//!
//! Requests are written out of our own values, or out of a body of the chat-completions format
//! that somebody else wrote; what comes back becomes pieces of that format, which
//! `assemble` puts together. For whoever sells models in this format there is the other direction,
//! too. Source: <https://docs.anthropic.com/en/api/messages> and
//! <https://docs.anthropic.com/en/api/messages-streaming>.

mod from_chat;
mod request;
mod response;
#[cfg(test)]
mod sold_tests;
#[cfg(test)]
mod tests;
mod to_chat;
mod writer;

pub use self::from_chat::{UntranslatableChat, body_from_chat};
pub(super) use self::request::body;
pub use self::response::MessagesReader;
pub use self::to_chat::{UntranslatableMessages, chat_from_messages};
pub use self::writer::{MessagesCount, MessagesFrame, MessagesWriter};

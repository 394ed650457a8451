//! Pure: the chat-completions format, in which most servers are asked.

mod request;
mod response;

pub(super) use self::request::{WrittenChat, body};
pub(super) use self::response::piece;

//! Pure: Anthropic's messages format.
//!
//! Source: <https://docs.anthropic.com/en/api/messages> and
//! <https://docs.anthropic.com/en/api/messages-streaming>.

mod request;
mod response;
#[cfg(test)]
mod tests;

pub(super) use self::request::body;
pub(super) use self::response::MessagesReader;

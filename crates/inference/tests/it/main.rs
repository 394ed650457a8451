//! The provider over HTTP against a real server on this machine.
#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

mod anthropic;
mod embedding;
mod formats;
mod http;
mod peers;
mod refusals;
mod server;

//! The dev chain over its own port: the token, the methods, the log.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

mod follow;
mod log;
mod peers;
mod programs;
mod published;
mod rpc;
mod set_code;
mod subscriptions;
mod support;
mod together;
mod token;
mod tried;

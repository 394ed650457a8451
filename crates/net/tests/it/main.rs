//! The client against real sockets on this machine.
#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

mod authority;
mod client;
mod pay;
mod proxy;
mod retry;
mod server;
mod trust;

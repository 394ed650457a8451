//! A cloud over HTTP, with a chain that is made up and a model that is scripted.
#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

mod access;
mod chain;
mod chat;
mod credits;
mod crowds;
mod embeddings;
mod facilitator;
mod fake_chain;
mod gas;
mod long_answers;
mod messages;
mod pay;
mod peers;
mod responses;
mod status;
mod upstreams;
mod world;

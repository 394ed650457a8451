//! The local model of an automaton: llama.cpp behind a Unix socket.
//!
//! The agent starts this program in a sandbox without network, home or write
//! access, hands it one end of a socket pair and speaks
//! [`automaton_core::wire::brain`] with it. It must never be told a secret and
//! must never act: it turns text into text. `gguf` and `load` guard the C++
//! parser against bad files, `render` makes tokens of a conversation, `session`
//! keeps the evaluated prefix over turns, `spot` tells a call from words, `choose` picks
//! a tool, `grammar` bounds its arguments, `write` writes them, `generate` puts that together,
//! `serve` speaks the protocol.

pub mod choose;
pub mod generate;
pub mod gguf;
pub mod grammar;
pub mod guard;
pub mod load;
pub mod render;
pub mod sample;
pub mod serve;
pub mod session;
pub mod spot;
pub mod watch;
pub mod write;

//! Pure: the nouns of Automaton.
//!
//! Ids, money, time, labels of trust, intents, tool specs, the agent's states,
//! events and error kinds: what every other crate speaks. `wire` holds every
//! byte format shared with other programs. This crate must never do I/O and
//! must never depend on another crate of the workspace. The three files that
//! hold an injected trait together with its one system implementation
//! ([`time`], [`entropy`], [`faults`]) are the only ones that are not pure.

pub mod alert;
pub mod arguments;
pub mod books;
mod compounds;
pub mod egress;
pub mod embedding;
pub mod entropy;
pub mod error;
pub mod event;
pub mod faults;
pub mod file_text;
pub mod hibernation;
pub mod id;
pub mod inference_budget;
pub mod intent;
pub mod memory;
pub mod message;
pub mod model;
pub mod money;
pub mod money_defaults;
pub mod names;
pub mod origin;
pub mod payment;
pub mod pnl;
pub mod record;
pub mod search_terms;
pub mod secret;
pub mod service;
pub mod snapshot;
pub mod soul;
pub mod state;
pub mod stop;
pub mod terms;
pub mod text;
pub mod tier;
pub mod time;
pub mod tool;
pub mod trust;
pub mod vitals;
pub mod window;
pub mod wire;

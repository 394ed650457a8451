//! The one way to open a SQLite database, and what every database of ours needs.
//!
//! Opening sets the same pragmas everywhere, refuses what is damaged, foreign, newer
//! than this program or of the old form without changing a byte of it, and migrates
//! the rest. [`Writer`] is how processes that do many things at once write to it.
//! This crate must never know a table of anybody: each kind of database comes in as
//! its [`Schema`].

mod backup;
pub mod chain;
mod error;
mod migrate;
mod open;
mod place;
mod writer;

pub use backup::{backup, check_database, copy_database};
pub use error::{SqliteError, SqliteErrorKind, WriteError};
pub use migrate::{Migration, Schema, foreign_triggers};
pub use open::{checkpoint, ended_well, open, open_read_only};
pub use place::place_new;
pub use writer::{CommitDurability, CommitHook, WriteOptions, Writer, WriterHooks, write_synced};

//! The only way to open a SQLite database, and functions that every database needs.
//!
//! Opening sets the same pragmas everywhere. It refuses a damaged, foreign, newer or old-form
//! database without changing a byte of it, and migrates the others. [`Writer`] writes for
//! processes that do many things at once. This crate must never know a table: each kind of
//! database comes as its [`Schema`].

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

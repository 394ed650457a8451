//! A model that follows a script, and crashes on demand, for rehearsals.
//!
//! The program uses [`model`] and [`story`] for `--brain script`, and [`fault`] in homes that
//! were created for rehearsal. It must never affect a home that a person relies on, see
//! [`fault::mark_home`].

pub mod fault;
pub mod model;
pub mod story;

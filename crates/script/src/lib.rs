//! What a rehearsal needs of the program itself: a model that follows a script, and
//! crashes on demand.
//!
//! The program uses [`model`] and [`story`] for `--brain script`, and [`fault`] in homes
//! made for rehearsal. It must never do anything to a home that a person relies on, see
//! [`fault::mark_home`].

pub mod fault;
pub mod model;
pub mod story;

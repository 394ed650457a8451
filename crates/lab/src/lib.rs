//! Everything a rehearsal of an automaton's life needs: a model that follows a
//! script, a clock and a chance that can be set, crashes on demand, and a world
//! to run the built program in.
//!
//! The program itself uses [`model`] for `--brain script`, [`fault`] for homes made
//! for rehearsal and [`guard`] for its bench; everything else is for tests. Nothing here may
//! ever run on a home that a person relies on, see [`fault::mark_home`].

pub mod clock;
#[cfg(feature = "sim")]
pub mod days;
#[cfg(feature = "sim")]
pub mod dojo;
pub mod entropy;
pub mod fault;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod guard;
#[cfg(feature = "sim")]
pub mod hands;
pub mod model;
pub mod nobody;
#[cfg(feature = "sim")]
mod settings;
#[cfg(feature = "sim")]
pub mod siege;
#[cfg(feature = "sim")]
pub mod sim;
pub mod story;
#[cfg(feature = "sim")]
pub mod work;
pub mod world;

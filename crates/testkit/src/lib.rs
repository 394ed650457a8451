//! Helpers for the tests of any crate: a controllable clock and random source, a world to run the
//! built program in, and an unprivileged user.
//!
//! It must never be linked into the program, and nothing here may ever run on a home that a
//! person relies on.

pub mod clock;
pub mod embedding;
pub mod entropy;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod memory;
pub mod transcript;
pub mod unprivileged;
pub mod world;

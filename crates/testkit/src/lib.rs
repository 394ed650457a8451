//! What the tests of any crate may use: a clock and a chance that can be set, a world to
//! run the built program in, and a user without rights.
//!
//! It must never be linked into the program, and nothing here may ever run on a home that
//! a person relies on.

pub mod clock;
pub mod embedding;
pub mod entropy;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod memory;
pub mod transcript;
pub mod unprivileged;
pub mod world;

//! The scripted model, asked over the wire, and the histories of money.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

#[cfg(feature = "fuzz")]
mod fuzz;
mod guard;
mod model;
#[cfg(feature = "sim")]
mod money;

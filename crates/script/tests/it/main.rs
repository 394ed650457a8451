//! The scripted model, asked over the wire.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

mod model;

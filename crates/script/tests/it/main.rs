//! Tests of the scripted model over HTTP.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

mod model;

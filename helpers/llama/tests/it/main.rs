//! The program as the agent runs it: a child with one end of a socket pair.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on fails, and one that is skipped says so"
)]

mod helper;
mod hostile;
mod model;

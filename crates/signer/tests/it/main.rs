//! Tests of the signer as a process: its signatures, its crashes, and its isolation from other
//! processes.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test may end at what it did not expect, and starts programs of others"
)]

mod crash;
mod creator;
mod events;
mod memory;
mod ordinary_user;
mod peers;
mod protocol;
mod sandbox;
mod support;
mod transactions;

//! The signer as a process: what it signs, what survives its death, and what
//! other processes can see of it.
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

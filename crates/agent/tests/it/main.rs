//! The life of an automaton over a real store, with a scripted model.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may end at what it did not expect"
)]

mod alerts;
mod approvals;
mod bell;
mod brain;
mod budget;
mod burn;
mod context;
mod failover;
mod faults;
mod heartbeat;
mod life;
mod limits;
mod memory;
mod money;
mod origins;
mod paid_vectors;
mod results;
mod sent;
mod soul;
mod spending;
mod summaries;
mod survival;
mod toolbox;
mod town;
mod wreck;
mod year;

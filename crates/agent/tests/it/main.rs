//! The life of an automaton over a real store, with a scripted model.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may end at what it did not expect"
)]

mod brain;
mod budget;
mod life;
mod money;
mod spending;
mod town;
mod wreck;

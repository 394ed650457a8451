//! The life of an automaton over a real store, with a scripted model.

mod brain;
mod life;
mod wreck;

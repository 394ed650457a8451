//! The memory: what the automaton stores and looks up by itself.

mod category;
pub(crate) mod recall_facts;
pub(crate) mod remember_fact;

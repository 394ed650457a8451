//! Pure: how the automaton remembers, in principle.
//!
//! Works on values that others read and store: which facts belong to a
//! question ([`recall`]), how many fit ([`budget`], [`tokens`]) and how they
//! are shown to the model ([`render`]). This crate must never lose the label of
//! a fact, and must never know where facts are kept.

pub mod budget;
pub mod recall;
pub mod render;
pub mod tokens;

use automaton_core::time::Timestamp;
use automaton_core::trust::Labelled;

/// Something that the automaton knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// What it is about, in one word.
    pub category: String,
    /// What it is called within the category.
    pub key: String,
    /// What is known, and from whom.
    pub value: Labelled,
    /// How sure the automaton is, 0 to 100.
    pub confidence_percent: u8,
    /// When it was last stored.
    pub updated_at: Timestamp,
}

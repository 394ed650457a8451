//! Pure: how the automaton remembers, in principle.
//!
//! Works on values that others read and store: which items belong to a question
//! ([`recall`]), of which parts of an item vectors are made ([`parts`]), which sentences of it are
//! shown ([`excerpt`]), what has replaced them since ([`updates`], [`shown`]), how many fit
//! ([`budget`], [`tokens`]) and how they are shown to the model ([`render`]), and what the automaton
//! thinks of itself ([`soul`]). This crate must never lose the label of an item, and must never know where
//! items are kept.

pub mod budget;
pub mod excerpt;
pub mod parts;
pub mod recall;
pub mod render;
pub mod shown;
pub mod soul;
pub mod tokens;
pub mod updates;

//! The laboratory: lives of an automaton rehearsed and measured from outside.
//!
//! [`sim`] tells histories of money with defects planted, [`days`] lets days pass in
//! seconds, [`siege`] gives the automaton an attacker's model, [`sandbox_checks`] tries the ways out
//! of the sandbox, [`work`] measures what a model gets done, [`guard`] and [`dojo`] how
//! attacks are told from honest texts. No part of it is in the product, and nothing here
//! may ever run on a home that a person relies on.

pub mod days;
pub mod dojo;
pub mod guard;
pub mod sandbox_checks;
mod settings;
pub mod siege;
pub mod sim;
pub mod work;

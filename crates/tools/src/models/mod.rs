//! What the automaton thinks with, and what that costs.

pub(crate) mod check_inference_spending;
pub(crate) mod list_models;
pub(crate) mod switch_model;

//! Tools for models and their cost.

pub(crate) mod check_inference_spending;
pub(crate) mod list_models;
pub(crate) mod switch_model;

//! Who answers: one module for each kind of provider. None may know another.

pub mod local;
pub mod openai_compatible;

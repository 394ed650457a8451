//! Who answers: one module for each kind of provider. None may know another.

pub mod http;
pub mod local;

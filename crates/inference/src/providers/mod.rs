//! Providers of models, one module for each kind. None may know another.

pub mod http;
pub mod local;

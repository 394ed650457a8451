//! Pure: what a model is called. It must never tell what a model can do.

use serde::{Deserialize, Serialize};

/// The id of a model, as whoever serves it wants to read it. Any text may be one.
#[derive(
    Debug,
    Clone,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    derive_more::Display,
)]
#[serde(transparent)]
pub struct ModelId(String);

impl ModelId {
    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: Into<String>> From<T> for ModelId {
    fn from(id: T) -> Self {
        Self(id.into())
    }
}

impl PartialEq<str> for ModelId {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

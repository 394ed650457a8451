//! Pure: values that must not be printed, logged or serialised.
//!
//! A [`Secret`] is wiped when it is dropped, shows itself as `***`, and can be read from
//! a file or a reply but never written: it has no serde implementation for that. It must never be put into an error, an
//! event or a prompt.

use std::fmt;

use serde::Deserialize;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// A secret text, such as an API key.
#[derive(Clone, Deserialize, Zeroize, ZeroizeOnDrop)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Takes the text as a secret.
    #[must_use]
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    /// The text itself, for the one place that sends it where it belongs.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

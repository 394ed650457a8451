//! Pure: what requests have in common that anybody wrote, in any format.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// A request cannot be put to a model behind another format; the sentence is for who sent it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct UntranslatableRequest {
    /// Description of the fault.
    what: String,
}

impl UntranslatableRequest {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into() }
    }

    /// Creates the error for a body that is no request.
    pub(super) fn unread(error: &serde_json::Error) -> Self {
        Self::new(format!("the body cannot be read: {error}"))
    }
}

/// Content of a field that may be a text or parts.
pub(super) enum TextOrParts<T> {
    Text(String),
    Parts(Vec<T>),
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for TextOrParts<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(from)?;
        let read = match raw.get().starts_with('"') {
            true => serde_json::from_str(raw.get()).map(Self::Text),
            false => serde_json::from_str(raw.get()).map(Self::Parts),
        };
        read.map_err(D::Error::custom)
    }
}

/// A message of chat completions that is a text.
pub(super) fn text_message(role: &str, text: &str) -> Value {
    json!({ "role": role, "content": text })
}

/// A text among the parts of one.
pub(super) fn text_part(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// The same with the fields that are there.
pub(super) fn with<const N: usize>(mut object: Value, fields: [(&str, Option<Value>); N]) -> Value {
    for (name, value) in fields {
        if let Some(value) = value {
            object[name] = value;
        }
    }
    object
}

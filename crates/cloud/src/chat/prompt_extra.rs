//! Pure: what a prompt may hold beyond what the bytes of its request tell.
//!
//! Must never take for small what it does not know.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// The most tokens that one picture is counted as.
const IMAGE_TOKENS: u32 = 4_800;

/// The tokens of a prompt that the bytes of its request do not bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PromptExtra {
    /// So many.
    Tokens(u32),
    /// As many as the window holds.
    Unbounded,
}

/// A part of a message, as far as it concerns the bill. What it holds is not looked at.
#[derive(Deserialize)]
struct PartShape<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
}

impl PromptExtra {
    pub(super) const NONE: Self = Self::Tokens(0);
    pub(super) const IMAGE: Self = Self::Tokens(IMAGE_TOKENS);

    pub(super) const fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Tokens(one), Self::Tokens(two)) => Self::Tokens(one.saturating_add(two)),
            _ => Self::Unbounded,
        }
    }

    /// Returns the extra tokens of a text, or of parts. Parts of kind `image` are pictures, and
    /// parts of the kinds `texts` are no larger than their bytes.
    pub(super) fn of_parts(content: &RawValue, image: &str, texts: &[&str]) -> Self {
        match content.get().as_bytes().first() {
            Some(b'"' | b'n') => return Self::NONE,
            Some(b'[') => {}
            _ => return Self::Unbounded,
        }
        let Ok(parts) = serde_json::from_str::<Vec<PartShape<'_>>>(content.get()) else {
            return Self::Unbounded;
        };
        let of = |part: &PartShape<'_>| match &*part.kind {
            kind if kind == image => Self::IMAGE,
            kind if texts.contains(&kind) => Self::NONE,
            _ => Self::Unbounded,
        };
        parts.iter().map(of).fold(Self::NONE, Self::plus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_fills_the_window() {
        let of = |content: &str| {
            let content: Box<RawValue> = serde_json::from_str(content).unwrap();
            PromptExtra::of_parts(&content, "image_url", &["text"])
        };
        let text = r#"{"type":"text","text":"t"}"#;
        let image = r#"{"type":"image_url"}"#;
        for none in [r#""text""#, "null", "[]", &format!("[{text}]")] {
            assert_eq!(of(none), PromptExtra::NONE, "{none}");
        }
        let two = format!("[{image},{text},{image}]");
        assert_eq!(of(&two), PromptExtra::Tokens(2 * IMAGE_TOKENS));
        for other in ["{}", "1", "[1]", r#"[{"type":"file"}]"#, r#"[{"text":"t"}]"#] {
            assert_eq!(of(other), PromptExtra::Unbounded, "{other}");
        }
    }
}

//! Pure: what an error of a server means.
//!
//! The status decides; the text only tells whether the conversation was too
//! long, since servers have no status of its own for that. Text comes in
//! already cleaned.

use serde_json::Value;

use crate::error::InferenceError;

/// The longest text of a server that is kept, in bytes.
pub(super) const TEXT_BYTES_MAX: usize = 500;

/// What servers say when the window is too small, in lower case.
const TOO_LONG: [&str; 8] = [
    "context length",
    "context_length",
    "context window",
    "context size",
    "maximum context",
    "prompt is too long",
    "too many tokens",
    "exceed_context",
];

/// The message in an error's body: of the format's own object, of a bare
/// string, or the whole text when it is neither.
pub(super) fn message(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    // silent-ok: a body that is no JSON is shown as it is.
    let found = serde_json::from_str::<Value>(&text).ok().and_then(|value| said(&value));
    found.unwrap_or_else(|| text.into_owned())
}

/// What a reply says went wrong, when it says so.
pub(super) fn said(value: &Value) -> Option<String> {
    let error = value.get("error").filter(|error| !error.is_null())?;
    let message = error.get("message").unwrap_or(error);
    Some(message.as_str().map_or_else(|| message.to_string(), str::to_owned))
}

/// The error that a status and its text stand for.
pub(super) fn of_status(endpoint: &str, status: u16, text: &str) -> InferenceError {
    let (endpoint, text) = (endpoint.to_owned(), text.to_owned());
    match status {
        413 => InferenceError::TooLong { text },
        400 | 422 | 500 if is_too_long(&text) => InferenceError::TooLong { text },
        401 | 403 => InferenceError::Unauthorised { endpoint, status, text },
        402 => InferenceError::NoCredits { endpoint, text },
        _ => InferenceError::Status { endpoint, status, text },
    }
}

/// The error that a server tells in the middle of its reply.
pub(super) fn in_reply(endpoint: &str, text: &str) -> InferenceError {
    let (endpoint, text) = (endpoint.to_owned(), text.to_owned());
    match is_too_long(&text) {
        true => InferenceError::TooLong { text },
        false => InferenceError::Failed { endpoint, text },
    }
}

fn is_too_long(text: &str) -> bool {
    let text = text.to_lowercase();
    TOO_LONG.iter().any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use automaton_core::error::{Classified as _, Kind};

    #[test]
    fn finds_the_message_in_any_body() {
        let check = |body: &str, text: &str| assert_eq!(message(body.as_bytes()), text);
        check(r#"{"error":{"message":"no","type":"x"}}"#, "no");
        check(r#"{"error":"model not found"}"#, "model not found");
        check(r#"{"error":{"code":7}}"#, r#"{"code":7}"#);
        check(r#"{"detail":"no"}"#, r#"{"detail":"no"}"#);
        check("<html>Bad Gateway</html>", "<html>Bad Gateway</html>");
        check("", "");
    }

    #[test]
    fn each_status_has_its_kind() {
        let kind = |status, text| of_status("here", status, text).kind();
        for status in [408, 429, 500, 502, 503, 504] {
            assert_eq!(kind(status, "busy"), Kind::Transient, "{status}");
        }
        for status in [401, 403, 404] {
            assert_eq!(kind(status, "no"), Kind::Config, "{status}");
        }
        for status in [400, 402, 418] {
            assert_eq!(kind(status, "no"), Kind::Upstream, "{status}");
        }
        let long = "This model's maximum context length is 8192 tokens.";
        for (status, text) in [(400, long), (413, ""), (500, "exceeds the available context size")]
        {
            assert!(of_status("here", status, text).is_too_long(), "{status}");
        }
        assert!(!of_status("here", 429, long).is_too_long());
        assert!(matches!(of_status("here", 402, ""), InferenceError::NoCredits { .. }));
    }
}

//! Pure: what a node says instead of an answer.
//!
//! JSON-RPC has an object with a number and a message. In the field it is also a text, a word
//! in place of the number, or an object without a message. Nothing of it is dropped.

use std::fmt;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Numbers by which nodes say that they are asked too much. `-32005` is of EIP-1474; the others
/// are those of providers.
const BUSY_CODES: [i64; 6] = [429, -32005, -32007, -32016, -32029, -32097];
/// Words by which nodes say the same, with a space for whatever is between two of them.
const BUSY_WORDS: [&str; 18] = [
    "rate limit",
    "ratelimit",
    "request limit",
    "requests limit",
    "too many requests",
    "too many connections",
    "request count exceeded",
    "limit exceeded",
    "capacity exceeded",
    "capacity limit",
    "compute units",
    "throughput",
    "throttl",
    "slow down",
    "overloaded",
    "server is busy",
    "node is busy",
    "temporarily unavailable",
];
/// Words of refusals that are about the question itself: a revert may hold any text of a
/// contract, and too many results stay too many.
const OTHER_WORDS: [&str; 6] =
    ["revert", "gas limit", "block range", "results", "response size", "size limit"];
/// The longest text that is looked through when an answer is no JSON, in bytes.
const TEXT_BYTES_MAX: usize = 4096;

/// The error of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NodeRefusal {
    /// The number or word; empty if there is none.
    code: String,
    message: String,
}

impl<'de> Deserialize<'de> for NodeRefusal {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(from)?;
        let text = |key: &str| value.get(key).map(in_words).unwrap_or_default();
        let code = text("code");
        let named = [text("message"), text("error"), text("reason")];
        let message = named.into_iter().find(|text| !text.is_empty());
        Ok(Self { code, message: message.unwrap_or_else(|| in_words(&value)) })
    }
}

/// A text as it is, anything else as JSON; nothing for `null`.
fn in_words(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

impl fmt::Display for NodeRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.code.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl NodeRefusal {
    /// Returns whether the node was too busy, and may answer the same question later.
    pub(super) fn is_busy(&self) -> bool {
        let words = plain_words(&self.message);
        if OTHER_WORDS.iter().any(|other| words.contains(other)) {
            return false;
        }
        // silent-ok: a code that is a word has no number.
        let number: Option<i64> = self.code.parse().ok();
        number.is_some_and(|number| BUSY_CODES.contains(&number))
            || says_busy(&words)
            || says_busy(&plain_words(&self.code))
    }
}

/// Returns whether an answer that is no JSON says that the node was too busy.
pub(super) fn is_short_and_busy(text: &str) -> bool {
    text.len() <= TEXT_BYTES_MAX && says_busy(&plain_words(text))
}

fn says_busy(words: &str) -> bool {
    BUSY_WORDS.iter().any(|busy| words.contains(busy))
}

/// Small letters and digits, with one space for whatever is between.
fn plain_words(text: &str) -> String {
    let letters = text.to_lowercase();
    let words = letters.split(|letter: char| !letter.is_alphanumeric());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal(value: Value) -> NodeRefusal {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_busy_node_is_known_by_its_number_or_its_words() {
        for value in [
            json!({ "code": -32007, "message": "50/second request limit reached" }),
            json!({ "code": -32016, "message": "over rate limit" }),
            json!({ "code": -32005, "message": "limit exceeded" }),
            json!({ "code": -32005 }),
            json!({ "code": "429", "message": "" }),
            json!({ "code": 429, "message": "Your app has exceeded its compute units per second" }),
            json!({ "code": -32000, "message": "Too Many Requests, retry later" }),
            json!({ "code": "RATE_LIMITED", "message": "no" }),
            json!({ "code": "TOO_MANY_REQUESTS" }),
            json!({ "code": -32603, "message": "request throttled by the gateway" }),
            json!("slow down"),
            json!("rate-limit"),
        ] {
            assert!(refusal(value.clone()).is_busy(), "{value}");
        }
    }

    #[test]
    fn a_refusal_of_the_question_is_no_busy_node() {
        for value in [
            json!({ "code": -32000, "message": "execution reverted" }),
            json!({ "code": 3, "message": "execution reverted: too many requests" }),
            json!({ "code": -32005, "message": "query returned more than 10000 results" }),
            json!({ "code": -32000, "message": "exceeds block gas limit" }),
            json!({ "code": -32005, "message": "block range is too wide: limit exceeded" }),
            json!({ "code": -32601, "message": "the method does not exist" }),
            json!("header not found"),
            json!({}),
        ] {
            assert!(!refusal(value.clone()).is_busy(), "{value}");
        }
    }

    #[test]
    fn nothing_that_a_node_says_is_dropped() {
        for (value, wanted) in [
            (json!({ "code": -32000, "message": "header not found" }), "header not found (-32000)"),
            (json!("slow down"), "slow down"),
            (json!({ "error": "slow down" }), "slow down"),
            (json!({ "code": "BAD", "data": 7 }), r#"{"code":"BAD","data":7} (BAD)"#),
            (json!({ "code": 7, "message": { "en": "no" } }), r#"{"en":"no"} (7)"#),
            (json!([1]), "[1]"),
        ] {
            assert_eq!(refusal(value).to_string(), wanted);
        }
    }
}

//! Pure: JSON as servers and models write it, read wherever it can mean one thing only.
//!
//! A control character inside of a text means itself. Half a surrogate pair is half a character. Arguments may
//! stand in a fence, or be the text of an object. A text that does not end is never completed, and nothing is
//! left out, moved or guessed: whatever else is wrong stays an error.

use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use crate::halves;

/// Most times that arguments may be encoded as a text of themselves.
const ENCODINGS_MAX: usize = 3;

/// The mark before and after a fence.
const FENCE: &str = "```";

/// Origin of a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JsonSource {
    /// A server's reply. Numbers that cannot be computed with are no part of an answer, and read as `null`.
    /// Half a character waits for its other half.
    Reply,
    /// The arguments of a call. They are complete.
    Arguments,
}

/// Reads a reply of a server, or a piece of one. Half a character stands behind its mark.
///
/// # Errors
/// When it is no JSON.
pub(crate) fn read_reply(text: &str) -> Result<Value, serde_json::Error> {
    read(text, JsonSource::Reply)
}

/// Reads the arguments of a call as an object.
///
/// # Errors
/// When they are no JSON. `Ok(Err(_))` is JSON that is no object.
pub(crate) fn read_arguments(
    text: &str,
) -> Result<Result<Map<String, Value>, Value>, serde_json::Error> {
    let mut value = read(strip_fence(text), JsonSource::Arguments)?;
    for _ in 0..ENCODINGS_MAX {
        let Value::String(inner) = &value else { break };
        match read(strip_fence(inner), JsonSource::Arguments) {
            Ok(inner @ (Value::Object(_) | Value::String(_))) => value = inner,
            Ok(_) | Err(_) => break,
        }
    }
    Ok(match value {
        Value::Object(fields) => Ok(fields),
        other => Err(other),
    })
}

/// The bytes of a text without the mark that some servers put before it.
pub(crate) fn strip_byte_order_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(bytes)
}

/// The arguments of a call as a JSON text by the letter, if they can be read at all.
pub(crate) fn arguments_to_json(text: &str) -> Option<String> {
    // silent-ok: arguments that are no JSON are told to the model as they are.
    let fields = read_arguments(text).ok()?.ok()?;
    let is_strict = serde_json::from_str::<Map<String, Value>>(text).is_ok();
    Some(if is_strict { text.to_owned() } else { Value::Object(fields).to_string() })
}

fn read(text: &str, source: JsonSource) -> Result<Value, serde_json::Error> {
    let text = text.trim_start_matches('\u{FEFF}');
    serde_json::from_str(text).or_else(|error| match repair(text, source) {
        Some(repaired) => serde_json::from_str(&repaired).map_err(|_| error),
        None => Err(error),
    })
}

/// The text inside of a fence that stands around all of it.
fn strip_fence(text: &str) -> &str {
    let trimmed = text.trim();
    let inner = trimmed.strip_prefix(FENCE).and_then(|rest| rest.strip_suffix(FENCE));
    let Some(inner) = inner else { return text };
    let body = inner.trim_start_matches(|it: char| it.is_ascii_alphanumeric() || it == '_');
    match inner.contains(FENCE) {
        true => text,
        false => body,
    }
}

/// The text with its strings and numbers as JSON has them; nothing where they are so already.
fn repair(json: &str, source: JsonSource) -> Option<String> {
    let mut repaired = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find(|it: char| it == '"' || it == '-' || it.is_ascii_digit()) {
        let (before, token) = rest.split_at(at);
        repaired.push_str(before);
        let is_string = token.starts_with('"');
        let end = if is_string { string_end(token) } else { number_end(token) };
        let (token, after) = token.split_at(end.unwrap_or(token.len()));
        match is_string {
            true => repair_string(token, source, &mut repaired),
            false if source == JsonSource::Reply && is_beyond_numbers(token) => {
                repaired.push_str("null");
            }
            false => repaired.push_str(token),
        }
        rest = after;
    }
    repaired.push_str(rest);
    (repaired != json).then_some(repaired)
}

/// Returns the end of the string at the start of a text.
fn string_end(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, it) in text.char_indices().skip(1) {
        if it == '"' && !is_escaped {
            return Some(at + 1);
        }
        is_escaped = it == '\\' && !is_escaped;
    }
    None
}

fn number_end(text: &str) -> Option<usize> {
    text.find(|it: char| !(it.is_ascii_alphanumeric() || "+-.".contains(it)))
}

/// Returns true if a token is a number that no `f64` holds, such as `1e309`.
fn is_beyond_numbers(token: &str) -> bool {
    let is_number = serde_json::from_str::<IgnoredAny>(token).is_ok();
    is_number && serde_json::from_str::<Value>(token).is_err()
}

/// Writes a string with its control characters escaped and half characters marked or replaced.
fn repair_string(token: &str, source: JsonSource, repaired: &mut String) {
    let mut rest = token;
    while let Some(it) = rest.chars().next() {
        let width = match it {
            '\\' => match escaped_unit(rest) {
                Some(unit) if halves::is_surrogate(unit) => {
                    let next = rest.get(6..).and_then(escaped_unit);
                    let is_pair =
                        unit < 0xDC00 && next.is_some_and(|it| (0xDC00..0xE000).contains(&it));
                    match (is_pair, source) {
                        (true, _) => repaired.push_str(&rest[..12]),
                        (false, JsonSource::Reply) => halves::push_surrogate(repaired, unit),
                        (false, JsonSource::Arguments) => {
                            repaired.push(char::REPLACEMENT_CHARACTER);
                        }
                    }
                    if is_pair { 12 } else { 6 }
                }
                _ => {
                    let width = rest.chars().take(2).map(char::len_utf8).sum();
                    repaired.push_str(&rest[..width]);
                    width
                }
            },
            control @ '\0'..='\u{1F}' => {
                repaired.push_str(&format!("\\u{:04x}", u32::from(control)));
                1
            }
            other => {
                repaired.push(other);
                other.len_utf8()
            }
        };
        rest = &rest[width..];
    }
}

/// The UTF-16 unit of the escape that a text begins with.
fn escaped_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let is_hex = digits.bytes().all(|it| it.is_ascii_hexdigit());
    // silent-ok: four hexadecimal digits are a unit.
    if is_hex { u16::from_str_radix(digits, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn arguments(text: &str) -> Option<Value> {
        read_arguments(text).ok()?.ok().map(Value::Object)
    }

    #[test]
    fn arguments_are_read_where_they_can_mean_one_thing_only() {
        let wanted = json!({"path": "a.txt", "content": "one\ntwo\tthree"});
        let inner = r#"{"path":"a.txt","content":"one\ntwo\tthree"}"#;
        for text in [
            inner.to_owned(),
            "{\"path\":\"a.txt\",\"content\":\"one\ntwo\tthree\"}".to_owned(),
            format!("```json\n{inner}\n```"),
            format!("```\n{inner}\n```"),
            format!("\u{FEFF}{inner}"),
            Value::from(inner).to_string(),
            Value::from(Value::from(inner).to_string()).to_string(),
            Value::from(format!("```json\n{inner}```")).to_string(),
        ] {
            assert_eq!(arguments(&text), Some(wanted.clone()), "{text}");
            let json = arguments_to_json(&text).unwrap();
            assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), wanted, "{text}");
        }
        assert_eq!(arguments(r#"{"a":"\ud83d x"}"#), Some(json!({"a": "\u{FFFD} x"})));
        assert_eq!(arguments(r#"{"a":"\ud83d\ude00"}"#), Some(json!({"a": "\u{1F600}"})));
        assert_eq!(arguments("{\"a\\\\\":\"\u{0}\"}"), Some(json!({"a\\": "\u{0}"})));
    }

    #[test]
    fn arguments_that_could_mean_two_things_stay_a_mistake() {
        for text in [
            "",
            "{",
            r#"{"a":"b"#,
            r#"{"a":"b""#,
            r#"{"a":1}{"a":2}"#,
            r#"{"a":1,}"#,
            r#"{"a":"\d"}"#,
            r#"{"a":1e999}"#,
            "{'a': 1}",
            "```json\n{\"a\":1}",
            "Sure: {\"a\":1}",
            "\"{\\\"a\\\":\"",
            "```{\"a\":1}``` ```{\"a\":2}```",
        ] {
            assert_eq!(arguments(text), None, "{text}");
            assert_eq!(arguments_to_json(text), None, "{text}");
        }
        for text in ["[]", "7", "null", "\"text\"", "[{\"a\":1}]"] {
            assert!(read_arguments(text).is_ok_and(|read| read.is_err()), "{text}");
        }
    }

    #[test]
    fn a_reply_keeps_all_of_its_text() {
        let told = "{\"a\":\"x\ty\\ud83d\",\"n\":[-1e999, 1e999],\"m\":1e3}";
        let read = read_reply(told).unwrap();
        let joined = halves::join_text(read["a"].as_str().unwrap()).into_owned();
        assert_eq!((joined.as_str(), &read["n"]), ("x\ty\u{FFFD}", &json!([null, null])));
        assert_eq!(read["m"], json!(1e3));
        assert!(read_reply("{\"a\":1e309").is_err());
        assert!(read_reply("{\"a\":-}").is_err());
    }

    proptest! {
        #[test]
        fn what_is_json_is_read_as_serde_reads_it(text in r#"[a-z"\\{}\[\],:0-9 \n\t]{0,40}"#) {
            if let Ok(strict) = serde_json::from_str::<Value>(&text) {
                prop_assert_eq!(read_reply(&text).unwrap(), strict);
            }
        }

        #[test]
        fn any_text_survives_without_its_escapes(text in ".{0,40}") {
            let raw = text.replace('\\', "\\\\").replace('"', "\\\"");
            let read = arguments(&format!("{{\"a\":\"{raw}\"}}"));
            prop_assert_eq!(read, Some(json!({ "a": text })));
        }

        #[test]
        fn what_is_cut_off_is_never_completed(text in ".{1,40}", cut in 1_usize..60) {
            let whole = json!({ "a": text, "b": [1, {"c": "d"}] }).to_string();
            let cut = whole.floor_char_boundary(cut.min(whole.len() - 1));
            prop_assert_eq!(arguments(&whole[..cut]), None);
        }
    }
}

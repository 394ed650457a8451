//! Pure: arguments under the names that other runtimes have for them.
//!
//! Models know the tools of the reference runtime and of its documentation, where some arguments
//! have other names or forms than here. Only what means exactly the same is taken over; all
//! else stays as it is and is refused by the schema. Nothing may be rounded, dropped or guessed.

use automaton_core::tool::ArgsHash;
use serde_json::{Map, Number, Value};

/// The longest name that a fact gets from its own words alone, in characters.
const KEY_CHARS_MAX: usize = 100;

/// Digits of its hash in the name of a longer one.
const HASH_DIGITS: usize = 12;

/// Gives the arguments of a tool the names and forms that it has for them.
pub fn rename_arguments(tool: &str, arguments: &mut Map<String, Value>) {
    match tool {
        "transfer_credits" => {
            rename(arguments, "to", "to_address");
            dollars(arguments, "amount_usd", "amount_cents");
        }
        "remember_fact" => {
            name_fact(arguments);
            rename(arguments, "fact", "value");
        }
        "x402_fetch" => parse_headers(arguments),
        _ => {}
    }
}

/// Another name, where the tool's own is not given too.
fn rename(arguments: &mut Map<String, Value>, from: &str, to: &str) {
    if arguments.contains_key(to) {
        return;
    }
    if let Some(value) = arguments.remove(from) {
        arguments.insert(to.to_owned(), value);
    }
}

/// US dollars that are whole cents, as these.
fn dollars(arguments: &mut Map<String, Value>, from: &str, to: &str) {
    let Some(Value::Number(number)) = arguments.get(from) else { return };
    if let (Some(cents), false) = (cents_of(number), arguments.contains_key(to)) {
        arguments.remove(from);
        arguments.insert(to.to_owned(), cents.into());
    }
}

/// The cents of a number of dollars, by its digits: `0.1` is ten of them.
fn cents_of(number: &Number) -> Option<u64> {
    let text = number.to_string();
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let part = part.trim_end_matches('0');
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if part.len() > 2 || !digits(whole) || !digits(part) {
        return None;
    }
    // silent-ok: what is too large for a number is none.
    format!("{whole}{part:0<2}").parse().ok()
}

/// A fact in their form has no name: its words are one, and where they are many their
/// beginning and a hash, so that two facts that begin alike stay two.
fn name_fact(arguments: &mut Map<String, Value>) {
    if arguments.contains_key("key") || arguments.contains_key("value") {
        return;
    }
    let Some(fact @ Value::String(text)) = arguments.get("fact") else { return };
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let key = match words.char_indices().nth(KEY_CHARS_MAX) {
        None => words,
        Some((end, _)) => {
            let hash = ArgsHash::of(fact).to_string();
            format!("{} {}", &words[..end], &hash[..HASH_DIGITS])
        }
    };
    arguments.insert("key".to_owned(), key.into());
}

/// Headers that are an object in a text.
fn parse_headers(arguments: &mut Map<String, Value>) {
    let Some(Value::String(text)) = arguments.get("headers") else { return };
    // silent-ok: a text that is no object is refused by the schema.
    if let Ok(headers) = serde_json::from_str::<Map<String, Value>>(text) {
        arguments.insert("headers".to_owned(), headers.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn renamed(tool: &str, arguments: Value) -> Value {
        let Value::Object(mut arguments) = arguments else { panic!("{arguments}") };
        rename_arguments(tool, &mut arguments);
        Value::Object(arguments)
    }

    #[test]
    fn what_means_the_same_gets_the_name_and_the_form_that_it_has_here() {
        for (tool, theirs, ours) in [
            (
                "transfer_credits",
                json!({"to": "0x1", "amount_usd": 0.29, "reason": "r"}),
                json!({"to_address": "0x1", "amount_cents": 29, "reason": "r"}),
            ),
            ("transfer_credits", json!({"amount_usd": 5}), json!({"amount_cents": 500})),
            ("transfer_credits", json!({"amount_usd": 5.10}), json!({"amount_cents": 510})),
            (
                "remember_fact",
                json!({"category": "self", "fact": "The  door\nis green."}),
                json!({"category": "self", "value": "The  door\nis green.", "key": "The door is green."}),
            ),
            (
                "x402_fetch",
                json!({"url": "u", "headers": "{\"Accept\": \"text/plain\"}"}),
                json!({"url": "u", "headers": {"Accept": "text/plain"}}),
            ),
        ] {
            assert_eq!(renamed(tool, theirs), ours, "{tool}");
            assert_eq!(renamed(tool, ours.clone()), ours, "{tool}");
        }
    }

    #[test]
    fn what_is_not_exactly_the_same_stays_as_it_is() {
        for (tool, arguments) in [
            ("transfer_credits", json!({"amount_usd": 0.001})),
            ("transfer_credits", json!({"amount_usd": -1})),
            ("transfer_credits", json!({"amount_usd": 1e30})),
            ("transfer_credits", json!({"amount_usd": "5"})),
            ("transfer_credits", json!({"amount_usd": 5, "amount_cents": 1})),
            ("transfer_credits", json!({"to": "0x1", "to_address": "0x2"})),
            ("remember_fact", json!({"fact": "a", "value": "b", "key": "k"})),
            ("remember_fact", json!({"category": "self", "value": "a"})),
            ("x402_fetch", json!({"headers": "Accept: text/plain"})),
            ("write_file", json!({"to": "a", "fact": "b"})),
        ] {
            assert_eq!(renamed(tool, arguments.clone()), arguments, "{tool}");
        }
    }

    #[test]
    fn long_facts_that_begin_alike_have_names_of_their_own() {
        let name = |end: &str| {
            let fact = "é ".repeat(200) + end;
            renamed("remember_fact", json!({"fact": fact}))["key"].as_str().unwrap().to_owned()
        };
        assert_eq!(name("one"), name("one"));
        assert_ne!(name("one"), name("two"));
        assert_eq!(name("one").chars().count(), KEY_CHARS_MAX + 1 + HASH_DIGITS);
    }

    proptest! {
        #[test]
        fn dollars_are_as_many_cents_as_they_say(cents in 0_u64..10_000_000_000) {
            let text = format!("{}.{:02}", cents / 100, cents % 100);
            let number: Value = serde_json::from_str(&text).unwrap();
            let given = renamed("transfer_credits", json!({"amount_usd": number}));
            prop_assert_eq!(given, json!({"amount_cents": cents}));
        }
    }
}

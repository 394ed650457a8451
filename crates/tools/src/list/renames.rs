//! Arguments under the names that other runtimes have for them.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::find;

fn renamed(tool: &str, arguments: Value) -> Value {
    let Value::Object(mut arguments) = arguments else { panic!("{arguments}") };
    find(tool).unwrap().rename_arguments(&mut arguments);
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
    assert_eq!(name("one").chars().count(), 113);
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

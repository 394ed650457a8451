//! What holds for every tool of the list.

use super::*;
use crate::testing::judged;
use automaton_core::intent::Intentional;
use automaton_core::tool::{Effect, Risk};
use automaton_policy::RuleId;
use automaton_sandbox::WorkspacePath;
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn the_list_is_what_it_should_be() {
    let found: Vec<_> =
        specs().into_iter().map(|spec| (spec.name.to_string(), spec.risk, spec.effect)).collect();
    let expected = [
        ("exec", Risk::Caution, Effect::Mutates),
        ("write_file", Risk::Caution, Effect::Mutates),
        ("read_file", Risk::Safe, Effect::Observes),
        ("remember_fact", Risk::Safe, Effect::Mutates),
        ("recall_facts", Risk::Safe, Effect::Observes),
        ("send_message", Risk::Caution, Effect::Mutates),
        ("sleep", Risk::Caution, Effect::Mutates),
        ("system_synopsis", Risk::Safe, Effect::Observes),
        ("check_credits", Risk::Safe, Effect::Observes),
        ("check_usdc_balance", Risk::Safe, Effect::Observes),
        ("topup_credits", Risk::Caution, Effect::Mutates),
        ("transfer_credits", Risk::Dangerous, Effect::Mutates),
        ("x402_fetch", Risk::Caution, Effect::Mutates),
    ];
    assert_eq!(found, expected.map(|(name, risk, effect)| (name.to_owned(), risk, effect)));
    assert!(find("exec").is_some() && find("Exec").is_none() && find("").is_none());
}

#[test]
fn schemas_are_what_the_model_reads() {
    let schema = |name: &str| find(name).unwrap().spec().parameters;
    assert_eq!(
        schema("exec"),
        json!({
            "type": "object",
            "properties": {
                "command": {"type": "string", "minLength": 1, "maxLength": 16000, "description": "Shell command.", "examples": ["ls -l"]},
                "timeout": {"type": "integer", "minimum": 1, "maximum": 600_000, "description": "Milliseconds, default 30000."},
            },
            "required": ["command"],
            "additionalProperties": false,
        })
    );
    let fact = schema("remember_fact");
    let categories =
        json!(["self", "environment", "financial", "agent", "domain", "procedural_ref", "creator"]);
    assert_eq!(fact["properties"]["category"], json!({"type": "string", "enum": categories}));
    let confidence =
        json!({"type": "number", "minimum": 0, "maximum": 1, "description": "0 to 1, default 1."});
    assert_eq!(fact["properties"]["confidence"], confidence);
    let reply_to = json!({"type": "string", "maxLength": 26, "description": "Id of the message that this answers."});
    assert_eq!(schema("send_message")["properties"]["reply_to"], reply_to);
    let usd = json!({"type": "integer", "minimum": 5, "maximum": 2500, "enum": [5, 25, 100, 500, 1000, 2500], "description": "US dollars."});
    assert_eq!(schema("topup_credits")["properties"]["amount_usd"], usd);
    let nothing = json!({"type": "object", "properties": {}, "additionalProperties": false});
    assert_eq!(schema("system_synopsis"), nothing);
}

#[test]
fn every_schema_is_plain_bounded_and_short() {
    let (mut size, small) = (0, moneyless());
    for spec in specs() {
        let schema = &spec.parameters;
        assert!(jsonschema::validator_for(schema).is_ok(), "{}", spec.name);
        let text = schema.to_string();
        for word in ["$ref", "$schema", "$defs", "title", "anyOf", "null", "format", "default\""] {
            assert!(!text.contains(word), "{} has {word}: {text}", spec.name);
        }
        for (name, property) in schema["properties"].as_object().unwrap() {
            let bounded = match property["type"].as_str().unwrap() {
                "string" => property.get("maxLength").or(property.get("enum")),
                "object" => property.get("maxProperties"),
                _ => property.get("maximum").and(property.get("minimum")),
            };
            assert!(bounded.is_some(), "{}.{name} has no bound", spec.name);
        }
        if small.contains(&spec) {
            size += text.len() + spec.description.len();
        }
    }
    // A small model reads all of this in every prompt.
    assert!(size < 2_900, "{size} bytes");
}

/// One valid call of each tool.
fn samples() -> Vec<(&'static str, Value)> {
    vec![
        ("exec", json!({"command": "ls"})),
        ("write_file", json!({"path": "a", "content": ""})),
        ("read_file", json!({"path": "a"})),
        ("remember_fact", json!({"category": "self", "key": "k", "value": "v"})),
        ("recall_facts", json!({})),
        ("send_message", json!({"to_address": "creator", "content": "x"})),
        ("sleep", json!({"duration_seconds": 1})),
        ("system_synopsis", json!({})),
        ("check_credits", json!({})),
        ("check_usdc_balance", json!({})),
        ("topup_credits", json!({"amount_usd": 5})),
        (
            "transfer_credits",
            json!({"to_address": format!("0x{}", "2".repeat(40)), "amount_cents": 5}),
        ),
        ("x402_fetch", json!({"url": "https://api.conway.tech/x"})),
    ]
}

#[test]
fn a_valid_call_states_its_intents_and_an_invalid_one_is_told() {
    assert_eq!(samples().len(), TOOLS.len());
    for (name, arguments) in samples() {
        let tool = find(name).unwrap();
        let schema = jsonschema::validator_for(&tool.spec().parameters).unwrap();
        assert!(schema.is_valid(&arguments), "{name}");
        assert!(!tool.parse(&arguments).ok().unwrap().intents().is_empty(), "{name}");

        let mut unknown = arguments.clone();
        unknown["extra"] = json!(1);
        let mut missing = vec![unknown, json!([]), json!(null), json!("text")];
        if arguments != json!({}) {
            missing.push(json!({}));
        }
        for bad in missing {
            assert!(!schema.is_valid(&bad), "{name} {bad}");
            let error = tool.parse(&bad).err().unwrap().to_string();
            assert!(error.starts_with(&format!("{name} does not take")), "{error}");
        }
    }
}

proptest! {
    // The policy and the handle read paths each by themselves; they must agree.
    #[test]
    fn the_policy_and_the_workspace_agree_on_paths(path in "(~|/root|/|\\.\\.|\\.|[a-c~]{1,3}|//|\0){0,4}(/(\\.\\.|\\.|[a-c]{1,2}|é|x{256})){0,6}/?") {
        let verdict = judged("read_file", &json!({"path": path}));
        let refused = verdict.decision().rules_triggered.iter().map(|id: &RuleId| id.as_str()).any(|id| id == "path.workspace");
        prop_assert_eq!(refused, WorkspacePath::parse(&path).is_err());
    }
}

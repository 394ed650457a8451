//! Properties of every tool of the list.

use super::*;
use crate::profile::{Requirement, ToolAudience};
use crate::testing::judged;
use automaton_core::intent::Intentional;
use automaton_core::tool::{Effect, Risk};
use automaton_policy::RuleId;
use automaton_sandbox::WorkspacePath;
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn the_list_is_what_it_should_be() {
    let found: Vec<_> = BUILT_IN
        .iter()
        .map(|tool| tool.spec().clone())
        .map(|spec| (spec.name.to_string(), spec.risk, spec.effect))
        .collect();
    let expected = [
        ("exec", Risk::Caution, Effect::Mutates),
        ("start_process", Risk::Caution, Effect::Mutates),
        ("read_process", Risk::Safe, Effect::Observes),
        ("stop_process", Risk::Safe, Effect::Mutates),
        ("write_file", Risk::Caution, Effect::Mutates),
        ("read_file", Risk::Safe, Effect::Observes),
        ("edit_file", Risk::Caution, Effect::Mutates),
        ("list_files", Risk::Safe, Effect::Observes),
        ("search_files", Risk::Safe, Effect::Observes),
        ("remember_fact", Risk::Safe, Effect::Mutates),
        ("recall_facts", Risk::Safe, Effect::Observes),
        ("set_goal", Risk::Safe, Effect::Mutates),
        ("complete_goal", Risk::Safe, Effect::Mutates),
        ("save_procedure", Risk::Safe, Effect::Mutates),
        ("recall_procedure", Risk::Safe, Effect::Mutates),
        ("note_about_agent", Risk::Safe, Effect::Mutates),
        ("review_memory", Risk::Safe, Effect::Observes),
        ("forget", Risk::Safe, Effect::Mutates),
        ("update_soul", Risk::Caution, Effect::Mutates),
        ("reflect_on_soul", Risk::Safe, Effect::Mutates),
        ("view_soul", Risk::Safe, Effect::Observes),
        ("view_soul_history", Risk::Safe, Effect::Observes),
        ("send_message", Risk::Caution, Effect::Mutates),
        ("sleep", Risk::Caution, Effect::Mutates),
        ("choose_tools", Risk::Safe, Effect::Observes),
        ("system_synopsis", Risk::Safe, Effect::Observes),
        ("heartbeat_ping", Risk::Safe, Effect::Observes),
        ("distress_signal", Risk::Dangerous, Effect::Mutates),
        ("enter_low_compute", Risk::Caution, Effect::Mutates),
        ("modify_heartbeat", Risk::Caution, Effect::Mutates),
        ("update_genesis_prompt", Risk::Dangerous, Effect::Mutates),
        ("list_models", Risk::Safe, Effect::Observes),
        ("switch_model", Risk::Caution, Effect::Mutates),
        ("check_inference_spending", Risk::Safe, Effect::Observes),
        ("check_credits", Risk::Safe, Effect::Observes),
        ("check_usdc_balance", Risk::Safe, Effect::Observes),
        ("topup_credits", Risk::Caution, Effect::Mutates),
        ("transfer_credits", Risk::Dangerous, Effect::Mutates),
        ("x402_fetch", Risk::Dangerous, Effect::Mutates),
        ("create_sandbox", Risk::Dangerous, Effect::Mutates),
        ("list_sandboxes", Risk::Safe, Effect::Observes),
        ("delete_sandbox", Risk::Dangerous, Effect::Mutates),
        ("expose_port", Risk::Caution, Effect::Mutates),
        ("remove_port", Risk::Caution, Effect::Mutates),
    ];
    assert_eq!(found, expected.map(|(name, risk, effect)| (name.to_owned(), risk, effect)));
    assert!(find("exec").is_some() && find("Exec").is_none() && find("").is_none());
}

#[test]
fn schemas_are_what_the_model_reads() {
    let schema = |name: &str| Value::clone(&find(name).unwrap().spec().parameters);
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
    let mut size = 0;
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
                "boolean" => property.get("type"),
                "object" => property.get("maxProperties"),
                _ => property.get("maximum").and(property.get("minimum")),
            };
            assert!(bounded.is_some(), "{}.{name} has no bound", spec.name);
        }
        let profile = find(spec.name.as_str()).unwrap().profile();
        if profile.requires == Requirement::Nothing && profile.audience == ToolAudience::Everyone {
            size += text.len() + spec.description.len();
        }
    }
    // A small model reads all of this in every prompt.
    assert!(size < 3_500, "{size} bytes");
    // So does a large one, of all.
    let all: String =
        specs().iter().map(|it| format!("{}{}", it.description, it.parameters)).collect();
    let tokens = automaton_memory::tokens::estimate(&all);
    assert!(tokens < 5_200, "{tokens} tokens, {} bytes", all.len());
}

/// One valid call of each tool.
fn samples() -> Vec<(&'static str, Value)> {
    vec![
        ("exec", json!({"command": "ls"})),
        ("start_process", json!({"command": "make"})),
        ("read_process", json!({})),
        ("stop_process", json!({"process": 1})),
        ("write_file", json!({"path": "a", "content": ""})),
        ("read_file", json!({"path": "a"})),
        ("edit_file", json!({"path": "a", "old": "x", "new": ""})),
        ("list_files", json!({})),
        ("search_files", json!({"pattern": "x"})),
        ("remember_fact", json!({"category": "self", "key": "k", "value": "v"})),
        ("recall_facts", json!({})),
        ("set_goal", json!({"content": "Earn."})),
        ("complete_goal", json!({"goal_id": "m1"})),
        ("save_procedure", json!({"name": "a", "description": "b", "steps": "c"})),
        ("recall_procedure", json!({})),
        ("note_about_agent", json!({"entity_address": "0x1", "relationship_type": "peer"})),
        ("review_memory", json!({})),
        ("forget", json!({"id": "m1"})),
        ("update_soul", json!({"section": "strategy", "content": "Earn.", "reason": "It pays."})),
        ("reflect_on_soul", json!({})),
        ("view_soul", json!({})),
        ("view_soul_history", json!({})),
        ("update_genesis_prompt", json!({"new_prompt": "Keep bees.", "reason": "Asked."})),
        ("send_message", json!({"to_address": "creator", "content": "x"})),
        ("sleep", json!({"duration_seconds": 1})),
        ("choose_tools", json!({"family": "files"})),
        ("system_synopsis", json!({})),
        ("heartbeat_ping", json!({})),
        ("distress_signal", json!({})),
        ("enter_low_compute", json!({})),
        ("modify_heartbeat", json!({"name": "nightly"})),
        ("check_credits", json!({})),
        ("check_usdc_balance", json!({})),
        ("topup_credits", json!({"amount_usd": 5})),
        (
            "transfer_credits",
            json!({"to_address": format!("0x{}", "2".repeat(40)), "amount_cents": 5}),
        ),
        ("x402_fetch", json!({"url": "https://api.conway.tech/x"})),
        ("list_models", json!({})),
        ("switch_model", json!({"model_id": "gpt-5-mini", "reason": "cheap"})),
        ("check_inference_spending", json!({})),
        ("create_sandbox", json!({})),
        ("list_sandboxes", json!({})),
        ("delete_sandbox", json!({"sandbox_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV"})),
        ("expose_port", json!({"port": 8080})),
        ("remove_port", json!({"port": 8080})),
    ]
}

#[test]
fn a_valid_call_states_its_intents_and_an_invalid_one_is_told() {
    assert_eq!(samples().len(), BUILT_IN.len());
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

#[test]
fn in_the_last_credits_what_is_offered_is_what_is_allowed() {
    let tier = Some(automaton_core::tier::SurvivalTier::Critical);
    for (name, arguments) in samples() {
        let tool = find(name).unwrap();
        let facts = automaton_policy::Facts { tier, ..crate::testing::facts(tool.spec().risk) };
        let verdict = automaton_policy::judge(tool.parse(&arguments).unwrap(), &facts);
        let refused = verdict.decision().triggered().any(|rule| rule == "survival.critical");
        assert_eq!(tool.profile().in_critical_tier, !refused, "{name}");
    }
}

/// Everything that a property must not be, made from its schema.
fn misfits(schema: &Value) -> Vec<Value> {
    let kind = schema["type"].as_str().unwrap();
    let mut bad = vec![json!(null), json!([]), json!([[]]), json!({"a": {"b": []}})];
    if kind != "object" {
        bad.push(json!({}));
    }
    if kind != "boolean" {
        bad.extend([json!(true), json!(false)]);
    }
    match kind {
        "string" => bad.extend([json!(0), json!(-1.5), json!(["rm"])]),
        "integer" => bad.extend([json!("5"), json!(""), json!("5 USD"), json!(5.5), json!(0.4)]),
        "number" => bad.extend([json!("0.5"), json!("NaN"), json!("")]),
        "boolean" => bad.extend([json!("true"), json!(1), json!(0)]),
        _ => bad.extend([json!("{}"), json!(1), json!({"k": 5})]),
    }
    if let Some(bytes) = schema["maxLength"].as_u64() {
        bad.push(json!("x".repeat(usize::try_from(bytes).unwrap() + 1)));
    }
    if schema["minLength"].as_u64().is_some_and(|least| least > 0) {
        bad.push(json!(""));
    }
    if let (Some(least), Some(most)) = (schema["minimum"].as_i64(), schema["maximum"].as_i64()) {
        bad.extend([json!(least - 1), json!(most + 1), json!(1e20), json!(-1e20)]);
        bad.extend([json!(i64::MIN), json!(u64::MAX)]);
    }
    for choice in schema["enum"].as_array().into_iter().flatten() {
        bad.push(match choice.as_str() {
            Some(text) => json!(format!("{} ", text.to_uppercase())),
            None => json!(choice.as_i64().unwrap() + 1),
        });
        bad.extend(choice.as_str().is_some().then(|| json!("explode")));
    }
    bad
}

#[test]
fn no_tool_takes_what_its_schema_does_not_say() {
    let mut tried = 0;
    for (name, sample) in samples() {
        let tool = find(name).unwrap();
        let spec = tool.spec();
        let schema = jsonschema::validator_for(&spec.parameters).unwrap();
        let mut refused = |arguments: &Value| {
            assert!(!schema.is_valid(arguments), "{name} takes {arguments}");
            tried += 1;
        };
        for (key, property) in spec.parameters["properties"].as_object().unwrap() {
            for misfit in misfits(property) {
                let mut arguments = sample.clone();
                arguments[key] = misfit;
                refused(&arguments);
            }
            let mut misspelt = sample.clone();
            misspelt[key.to_uppercase()] = sample.get(key).cloned().unwrap_or(json!(1));
            refused(&misspelt);
        }
        for key in spec.parameters["required"].as_array().into_iter().flatten() {
            let mut missing = sample.clone();
            missing.as_object_mut().unwrap().remove(key.as_str().unwrap());
            refused(&missing);
            assert!(tool.parse(&missing).is_err(), "{name} runs without {key}");
        }
        // An answer that was cut off is no object, and never one with fewer arguments.
        let whole = sample.to_string();
        for (end, _) in whole.char_indices() {
            assert!(serde_json::from_str::<Value>(&whole[..end]).is_err(), "{name} {end}");
        }
    }
    assert!(tried > 300, "only {tried} were tried");
}

#[test]
fn wrong_types_are_refused_by_the_types_as_well() {
    for (name, sample) in samples() {
        let tool = find(name).unwrap();
        for (key, property) in tool.spec().parameters["properties"].as_object().unwrap() {
            for misfit in [json!([]), json!({"a": {"b": []}}), json!([["rm"]])] {
                let mut arguments = sample.clone();
                arguments[key] = misfit;
                assert!(tool.parse(&arguments).is_err(), "{name} {key} {property}");
            }
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

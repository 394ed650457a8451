//! Calls that fit and calls that do not.

use automaton_core::tool::{Effect, Risk, ToolCategory};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn spec(name: &str, parameters: Value) -> ToolSpec {
    ToolSpec {
        name: name.parse().unwrap(),
        description: "A tool.".into(),
        category: ToolCategory::Vm,
        risk: Risk::Safe,
        effect: Effect::Observes,
        parameters: parameters.into(),
    }
}

fn checker() -> Checker {
    let write = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1},
            "content": {"type": "string"},
            "mode": {"type": "string", "enum": ["append", "replace", "prepend", "insert", "merge"]},
            "times": {"type": "integer", "minimum": 1, "maximum": 9},
        },
        "required": ["path", "content"],
        "additionalProperties": false,
    });
    let none = json!({"type": "object", "properties": {}, "additionalProperties": false});
    Checker::new(&[spec("write_file", write), spec("system_synopsis", none)]).unwrap()
}

fn call(tool: &str, arguments: &str) -> RawCall {
    RawCall { provider_id: None, tool: tool.into(), arguments: arguments.into() }
}

#[test]
fn a_call_that_fits_comes_out_as_it_was_written() {
    let checked = checker().check(&call("write_file", r#"{"content":"b","path":"a","times":9}"#));
    let arguments = json!({"path": "a", "content": "b", "times": 9});
    assert_eq!(checked, Ok(CheckedCall { tool: "write_file".parse().unwrap(), arguments }));
    assert!(checker().check(&call("system_synopsis", " {} ")).is_ok());
}

#[test]
fn a_call_that_does_not_fit_is_explained() {
    let checker = checker();
    let check = |tool: &str, arguments: &str, kind: FaultKind, words: &[&str]| {
        let fault = checker.check(&call(tool, arguments)).unwrap_err();
        assert_eq!(fault.kind, kind, "{arguments}: {fault}");
        for word in words {
            assert!(fault.sentence.contains(word), "{word} in: {fault}");
        }
        assert!(fault.sentence.contains("Nothing was run"), "{fault}");
    };
    use FaultKind::{BadArguments, NotAnObject, NotJson, UnknownTool};
    check("rm", "{}", UnknownTool, &["'rm'", "system_synopsis, write_file"]);
    check("write_file", r#"{"path":"a","text":""}"#, BadArguments, &["'text'", "content", "mode"]);
    check("system_synopsis", r#"{"x":1}"#, BadArguments, &["'x'; there are: none"]);
    check("", "{}", UnknownTool, &["''"]);
    check("Write_File", "{}", UnknownTool, &[]);
    check("write_file", r#"{"path":"a","conte"#, NotJson, &["cut off"]);
    check("write_file", "", NotJson, &["{}"]);
    check("system_synopsis", "", NotJson, &["{}"]);
    check("write_file", "[]", NotAnObject, &["object"]);
    check("write_file", "null", NotAnObject, &[]);
    check("write_file", r#"{"path":"a"}"#, BadArguments, &["\"content\"", "required"]);
    check("write_file", r#"{"path":7,"content":""}"#, BadArguments, &["/path", "\"string\""]);
    check("write_file", r#"{"path":"","content":""}"#, BadArguments, &["/path"]);
    check("write_file", r#"{"path":"a","content":"","x":1}"#, BadArguments, &["x"]);
    check("write_file", r#"{"path":"a","content":"","times":0}"#, BadArguments, &["/times", "1"]);
    check("write_file", r#"{"path":"a","content":"","times":"three"}"#, BadArguments, &["/times"]);
    let all = ["append", "replace", "prepend", "insert", "merge"];
    check("write_file", r#"{"path":"a","content":"","mode":"explode"}"#, BadArguments, &all);
    check("system_synopsis", r#"{"x":1}"#, BadArguments, &["x"]);
}

#[test]
fn a_call_that_can_mean_one_thing_only_is_that() {
    let whole = r#"{"path":"a","content":"one\ntwo","times":3}"#;
    let raw = "{\"path\":\"a\",\"content\":\"one\ntwo\",\"times\":3}";
    let fenced = format!("```json\n{whole}\n```");
    let twice = Value::from(whole).to_string();
    let point = whole.replace("\"times\":3", "\"times\":3.0,\"mode\":null");
    let text = whole.replace("\"times\":3", "\"times\":\"3\"");
    let wanted = json!({"path": "a", "content": "one\ntwo", "times": 3});
    for arguments in [whole, raw, &fenced, &twice, &point, &text] {
        for tool in ["write_file", "functions.write_file", " write_file "] {
            let checked = checker().check(&call(tool, arguments)).unwrap();
            assert_eq!(checked.tool.as_str(), "write_file", "{arguments}");
            assert_eq!(checked.arguments, wanted, "{arguments}");
        }
    }
    for arguments in [
        whole.replace("\"times\":3", "\"times\":3.5"),
        whole.replace("\"a\"", "null"),
        format!("{whole}{whole}"),
        whole.replace(":3}", ":3"),
    ] {
        assert!(checker().check(&call("write_file", &arguments)).is_err(), "{arguments}");
    }
}

#[test]
fn long_and_deep_arguments_are_refused() {
    let long = format!(r#"{{"path":"{}"}}"#, "a".repeat(ARGUMENTS_BYTES_MAX));
    let fault = checker().check(&call("write_file", &long)).unwrap_err();
    assert_eq!(fault.kind, FaultKind::TooLarge);
    let deep = format!(r#"{{"path":{}"#, "[".repeat(10_000));
    let fault = checker().check(&call("write_file", &deep)).unwrap_err();
    assert_eq!(fault.kind, FaultKind::NotJson);
}

#[test]
fn a_schema_that_is_none_is_a_defect_of_ours() {
    let error = Checker::new(&[spec("bad", json!({"type": "thing"}))]).unwrap_err();
    assert!(matches!(error, InferenceError::Schema { .. }), "{error}");
}

proptest! {
    #[test]
    fn any_call_gets_a_bounded_answer(tool in "\\PC{0,80}", arguments in "\\PC{0,400}") {
        for tool in [tool.as_str(), "write_file"] {
            match checker().check(&call(tool, &arguments)) {
                Ok(checked) => prop_assert!(checked.arguments.is_object()),
                Err(fault) => prop_assert!(fault.sentence.len() <= SENTENCE_BYTES_MAX),
            }
        }
    }

    #[test]
    fn a_cut_call_never_passes(cut in 0_usize..39) {
        let whole = r#"{"path":"notes/a.txt","content":"ü{}"}"#;
        let cut = (0..=cut.min(whole.len() - 1)).rev().find(|end| whole.is_char_boundary(*end));
        let text = &whole[..cut.unwrap_or(0)];
        prop_assert!(checker().check(&call("write_file", text)).is_err());
    }
}

//! Narrowed schemas.

use super::*;

const ALL: Narrowing = Narrowing { string_chars_max: 100, freedom: Freedom::Full };

fn arguments(parameters: Value, narrowing: Narrowing) -> Value {
    let tool = LocalModelTool { name: "t".into(), description: String::new(), parameters };
    call_schema(&tool, narrowing)["properties"]["arguments"].clone()
}

fn names(schema: &Value) -> Vec<&String> {
    schema["properties"].as_object().unwrap().keys().collect()
}

#[test]
fn required_properties_come_first_and_in_order() {
    let parameters = json!({
        "type": "object",
        "properties": { "content": {}, "extra": {}, "path": {} },
        "required": ["path", "content"],
    });
    let offered = arguments(parameters.clone(), ALL);
    assert_eq!(names(&offered), ["path", "content", "extra"]);
    let withheld = arguments(parameters, Narrowing { freedom: Freedom::Little, ..ALL });
    assert_eq!(names(&withheld), ["path", "content"]);
}

#[test]
fn everything_has_an_end() {
    let schema = arguments(
        json!({
            "type": "object",
            "additionalProperties": true,
            "properties": {
                "free": { "type": "string" },
                "short": { "type": "string", "maxLength": 3 },
                "long": { "type": "string", "maxLength": 100_000 },
                "maybe": { "type": ["string", "null"] },
                "one_of": { "type": "string", "enum": ["a", "b"] },
                "count": { "type": "integer", "format": "uint32", "minimum": 1 },
                "list": { "type": "array", "items": { "type": "string" } },
                "inner": { "type": "object", "properties": { "deep": { "type": "string" } } },
                "choice": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
            },
        }),
        ALL,
    );
    assert_eq!(schema["additionalProperties"], json!(false));
    let of = |name: &str| schema["properties"][name].clone();
    assert_eq!(of("free")["maxLength"], json!(100));
    assert_eq!(of("short")["maxLength"], json!(3));
    assert_eq!(of("long")["maxLength"], json!(100));
    assert_eq!(of("maybe")["maxLength"], json!(100));
    assert_eq!(of("one_of").get("maxLength"), None);
    assert_eq!(of("count"), json!({ "type": "integer", "minimum": 1, "maximum": NUMBER_MAX }));
    assert_eq!(of("list")["maxItems"], json!(ITEMS_MAX));
    assert_eq!(of("list")["items"]["maxLength"], json!(100));
    assert_eq!(of("inner")["properties"]["deep"]["maxLength"], json!(100));
    assert_eq!(of("inner")["additionalProperties"], json!(false));
    assert_eq!(of("choice")["anyOf"][0]["maxLength"], json!(100));
}

#[test]
fn a_weak_model_writes_a_word_where_words_are_the_examples() {
    let parameters = |path: Value| json!({ "type": "object", "properties": { "path": path }, "required": ["path"] });
    let little = Narrowing { freedom: Freedom::Little, ..ALL };
    let of = |path: Value, narrowing| {
        arguments(parameters(path), narrowing)["properties"]["path"].clone()
    };
    let path = json!({ "type": "string", "minLength": 1, "maxLength": 512, "examples": ["a.txt"] });
    assert_eq!(of(path.clone(), little)["pattern"], json!(r"^[A-Za-z0-9][A-Za-z0-9.]{0,63}$"));
    assert_eq!(of(path, ALL).get("pattern"), None);
    for other in [
        json!({ "type": "string", "examples": ["ls -l"] }),
        json!({ "type": "string", "examples": [] }),
        json!({ "type": "string", "examples": ["a"], "maxLength": 8 }),
        json!({ "type": "string", "examples": ["a"], "minLength": 2 }),
        json!({ "type": "string" }),
    ] {
        assert_eq!(of(other.clone(), little).get("pattern"), other.get("pattern"), "{other}");
    }
}

#[test]
fn a_schema_that_is_no_object_is_left_to_the_grammar_library() {
    assert_eq!(arguments(json!(true), ALL), json!(true));
    let mut deep = json!({ "type": "string" });
    for _ in 0..200 {
        deep = json!({ "type": "array", "items": deep });
    }
    assert!(arguments(deep, ALL).is_object());
}

#[test]
fn the_end_of_a_call_is_as_long_as_its_required_properties() {
    let parameters = json!({ "type": "object", "required": ["path", "a\"b"] });
    let tool = LocalModelTool { name: "t".into(), description: String::new(), parameters };
    assert_eq!(shortest_arguments(&tool), r#" {"path": "", "a\"b": ""}}"#);
    let none = LocalModelTool { parameters: json!({}), ..tool };
    assert_eq!(shortest_arguments(&none), " {}}");
}

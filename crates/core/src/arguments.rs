//! Pure: values of arguments in the form that a schema has for them, where they mean the same.
//!
//! A model that was taught strict schemas sends `null` for every argument that it leaves out, and `10000.0` is an
//! integer by JSON Schema. Only what can mean one thing is changed. Nothing is rounded, and a required argument is
//! never left out.

use serde_json::{Map, Value};

/// The largest whole number that a floating-point number holds without rounding.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Deeper schemas than any tool has are left alone.
const DEPTH_MAX: usize = 8;

/// Gives the arguments of a call the form that the schema of an object has for them.
pub fn fit_arguments(schema: &Value, arguments: &mut Map<String, Value>) {
    fit_fields(schema, arguments, DEPTH_MAX);
}

fn fit_fields(schema: &Value, fields: &mut Map<String, Value>, depth: usize) {
    let Some(properties) = schema["properties"].as_object() else { return };
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_required = |name: &String| required.iter().any(|it| it == name);
    fields.retain(|name, value| {
        let is_left_out = value.is_null()
            && !is_required(name)
            && properties.get(name).is_some_and(|schema| !takes(schema, "null"));
        !is_left_out
    });
    for (name, value) in fields {
        if let Some(schema) = properties.get(name) {
            fit_value(schema, value, depth);
        }
    }
}

fn fit_value(schema: &Value, value: &mut Value, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else { return };
    if let Some(fitting) = same_in(schema, value) {
        *value = fitting;
    }
    match value {
        Value::Object(fields) => fit_fields(schema, fields, depth),
        Value::Array(items) => {
            items.iter_mut().for_each(|it| fit_value(&schema["items"], it, depth))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The value of the one type that the schema takes that means the same; nothing where it fits already, or where
/// none does.
fn same_in(schema: &Value, value: &Value) -> Option<Value> {
    let kind = schema["type"].as_str()?;
    match (kind, value) {
        ("integer", Value::Number(number)) if number.is_f64() => whole_number(value),
        ("integer" | "number", Value::String(text)) => number_in(kind, text),
        ("boolean", Value::String(text)) => match text.trim() {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => None,
        },
        ("array" | "object", Value::String(text)) => {
            // silent-ok: a text that is no JSON is for the schema to refuse.
            let inner: Value = serde_json::from_str(text).ok()?;
            let fits = if kind == "array" { inner.is_array() } else { inner.is_object() };
            fits.then_some(inner)
        }
        _ => None,
    }
}

/// The whole number that a number without a fraction is.
fn whole_number(value: &Value) -> Option<Value> {
    let number = value.as_f64()?;
    let is_whole = number.fract() == 0.0 && number.abs() <= EXACT_MAX;
    // silent-ok: a whole number within these bounds has such digits.
    if is_whole { format!("{number:.0}").parse::<i64>().ok().map(Value::from) } else { None }
}

/// The number that a text is, and nothing else.
fn number_in(kind: &str, text: &str) -> Option<Value> {
    // silent-ok: a text that is no number is for the schema to refuse.
    let number: Value = serde_json::from_str(text.trim()).ok()?;
    match (kind, &number) {
        ("integer", Value::Number(it)) if it.is_f64() => whole_number(&number),
        (_, Value::Number(_)) => Some(number),
        _ => None,
    }
}

/// Returns true if a schema accepts values of a type.
fn takes(schema: &Value, kind: &str) -> bool {
    let is_kind = |it: &Value| it["type"] == kind;
    schema["type"] == kind
        || schema["type"].as_array().is_some_and(|kinds| kinds.iter().any(|it| it == kind))
        || ["anyOf", "oneOf"]
            .iter()
            .any(|name| schema[*name].as_array().is_some_and(|choices| choices.iter().any(is_kind)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({"type": "object", "required": ["path"], "properties": {
            "path": {"type": "string"}, "limit": {"type": "integer"}, "share": {"type": "number"},
            "is_new": {"type": "boolean"}, "maybe": {"type": ["string", "null"]},
            "names": {"type": "array", "items": {"type": "integer"}},
            "inner": {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}},
        }})
    }

    fn fitted(arguments: Value) -> Value {
        let Value::Object(mut arguments) = arguments else { panic!("{arguments}") };
        fit_arguments(&schema(), &mut arguments);
        Value::Object(arguments)
    }

    #[test]
    fn a_value_that_means_the_same_gets_the_form_of_the_schema() {
        for (told, wanted) in [
            (json!({"path": "a", "limit": null, "inner": null}), json!({"path": "a"})),
            (json!({"limit": 10000.0}), json!({"limit": 10000})),
            (json!({"limit": 1e4}), json!({"limit": 10000})),
            (json!({"limit": -3.0}), json!({"limit": -3})),
            (json!({"limit": "10000"}), json!({"limit": 10000})),
            (json!({"limit": " 1e4 "}), json!({"limit": 10000})),
            (json!({"share": "0.5"}), json!({"share": 0.5})),
            (json!({"is_new": "true"}), json!({"is_new": true})),
            (json!({"names": "[1, 2.0]"}), json!({"names": [1, 2]})),
            (json!({"names": [1.0, "2"]}), json!({"names": [1, 2]})),
            (json!({"inner": {"n": 7.0}}), json!({"inner": {"n": 7}})),
            (json!({"inner": "{\"n\": \"7\"}"}), json!({"inner": {"n": 7}})),
        ] {
            assert_eq!(fitted(told.clone()), wanted, "{told}");
            assert_eq!(fitted(wanted.clone()), wanted, "it stays so");
        }
    }

    #[test]
    fn a_value_that_could_mean_something_else_stays() {
        for told in [
            json!({"path": null}),
            json!({"maybe": null}),
            json!({"unknown": null}),
            json!({"inner": {"n": null}}),
            json!({"limit": 10.5}),
            json!({"limit": "10.5"}),
            json!({"limit": 1e300}),
            json!({"limit": "ten"}),
            json!({"limit": "5 days"}),
            json!({"limit": ""}),
            json!({"limit": "0x10"}),
            json!({"limit": "true"}),
            json!({"path": 5}),
            json!({"path": "5", "is_new": "yes"}),
            json!({"is_new": 1}),
            json!({"names": "1, 2"}),
            json!({"names": "{}"}),
        ] {
            assert_eq!(fitted(told.clone()), told, "{told}");
        }
    }
}

//! Pure: the schema of a tool's arguments, made from their type, and what stands in them.
//!
//! What schemars writes is cut down to what a model needs: every token of it is
//! in every prompt, and a grammar is made from it. What remains must never
//! accept anything that parsing refuses for its shape.

use std::collections::BTreeSet;

use automaton_policy::guard::secrets;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// The JSON Schema of `A`: one object, nothing by reference, no decoration.
pub(crate) fn schema<A: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<A>().to_value();
    if let Value::Object(root) = &mut schema {
        root.remove("description");
        root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    tidy(&mut schema);
    schema
}

/// Takes decoration out of a schema and of the schemas of its properties, and
/// `null` out of its types: what is optional is left away.
fn tidy(schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    for decoration in ["title", "format", "default"] {
        fields.remove(decoration);
    }
    if let Some(Value::Array(choices)) = fields.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type") != Some(&Value::from("null")));
        if let [Value::Object(only)] = choices.as_mut_slice() {
            let only = std::mem::take(only);
            fields.remove("anyOf");
            fields.extend(only);
        }
    }
    if let Some(Value::Array(values)) = fields.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(types)) = fields.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_mut_slice() {
            let only = only.take();
            fields.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(tidy);
    }
}

/// The kinds of secrets that stand in the texts of a call; `own` are the automaton's.
#[must_use]
pub fn secrets_in(arguments: &Value, own: &[&str]) -> Vec<secrets::SecretKind> {
    let mut kinds = BTreeSet::new();
    let mut rest = vec![arguments];
    while let Some(value) = rest.pop() {
        match value {
            Value::String(text) => {
                kinds.extend(secrets::find(text, own).iter().map(|hit| hit.kind))
            }
            Value::Array(items) => rest.extend(items),
            Value::Object(fields) => rest.extend(fields.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    kinds.into_iter().collect()
}

/// Gives an argument another name, where the new one is not given, too.
pub(crate) fn rename(arguments: &mut Map<String, Value>, from: &str, to: &str) {
    if arguments.contains_key(to) {
        return;
    }
    if let Some(value) = arguments.remove(from) {
        arguments.insert(to.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    /// What should not be seen.
    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, rename_all = "snake_case")]
    #[expect(dead_code, reason = "only its schema is of interest")]
    struct Sample {
        /// A title.
        #[schemars(length(max = 9))]
        title: String,
        #[schemars(range(min = 1, max = 5))]
        count: Option<u32>,
        kind: Option<Choice>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Choice {
        OneThing,
        Another,
    }

    #[test]
    fn a_schema_is_one_plain_object() {
        let expected = json!({
            "type": "object",
            "properties": {
                "title": {"type": "string", "maxLength": 9, "description": "A title."},
                "count": {"type": "integer", "minimum": 1, "maximum": 5},
                "kind": {"type": "string", "enum": ["one_thing", "another"]},
            },
            "required": ["title"],
            "additionalProperties": false,
        });
        assert_eq!(schema::<Sample>(), expected);
    }
}

//! Pure: what a tool is called, what it takes and how dangerous it is.
//!
//! A [`ToolSpec`] is data: the model reads it, the policy judges by it, the
//! grammar of a local model is made from it. It must never hold code.

use std::borrow::Cow;
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::names::Names;

/// The name of a tool: 1 to 64 characters of `a-z`, `0-9` and `_`. A copy costs no allocation.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, derive_more::Display,
)]
#[serde(try_from = "String", into = "String")]
pub struct ToolName(Arc<str>);

impl ToolName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<ToolName> for String {
    fn from(name: ToolName) -> Self {
        name.0.as_ref().to_owned()
    }
}

/// A text cannot be the name of a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no tool name (1 to 64 of a-z, 0-9, _)")]
pub struct ToolNameError(String);

impl FromStr for ToolName {
    type Err = ToolNameError;

    fn from_str(text: &str) -> Result<Self, ToolNameError> {
        let legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
        if (1..=64).contains(&text.len()) && text.bytes().all(legal) {
            Ok(Self(text.into()))
        } else {
            Err(ToolNameError(text.chars().take(64).filter(|c| !c.is_control()).collect()))
        }
    }
}

impl TryFrom<String> for ToolName {
    type Error = ToolNameError;

    fn try_from(text: String) -> Result<Self, ToolNameError> {
        text.parse()
    }
}

/// The family a tool belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolCategory {
    /// The machine: commands and files.
    Vm,
    /// Staying alive: sleep, status, distress.
    Survival,
    /// The memory.
    Memory,
    /// Messages to others.
    Social,
    /// Money: what is there, and what it buys.
    Financial,
    /// Changes to itself: its schedule.
    SelfMod,
}

/// Harm that a tool can do in the wrong hands. Its [`name`](Self::name) is the one in the
/// database.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Names,
)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// None to speak of.
    Safe,
    /// Harm that can be mended.
    Caution,
    /// Harm that may not be mended.
    Dangerous,
    /// Always refused.
    Forbidden,
}

/// Effect of a call. A turn that only observes is idle. Its [`name`](Self::name) is the one in
/// the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Names)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The call looks and changes nothing.
    Observes,
    /// The call changes the workspace, the memory or the world.
    Mutates,
}

/// Description of a tool, for the model, the policy and the record.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolSpec {
    /// The tool's name.
    pub name: ToolName,
    /// Description for the model, in one or two sentences.
    pub description: Cow<'static, str>,
    /// The family it belongs to.
    pub category: ToolCategory,
    /// Harm that it can do.
    pub risk: Risk,
    /// Effect of a call.
    pub effect: Effect,
    /// JSON Schema of the arguments: an object schema without references.
    pub parameters: ToolSchema,
}

impl ToolSpec {
    /// Returns the tool with a schema that says only names, types and purposes: without the
    /// bounds of values, which are checked when a call comes, and without examples.
    #[must_use]
    pub fn brief(&self) -> Self {
        let mut schema = Value::clone(&self.parameters.value);
        remove_bounds(&mut schema);
        Self { parameters: schema.into(), ..self.clone() }
    }
}

/// Keywords of a schema that bound values or show them.
const BOUNDS: [&str; 7] =
    ["minLength", "maxLength", "minimum", "maximum", "maxProperties", "maxItems", "examples"];

/// Removes the bounds from a schema and from the schemas of its properties.
fn remove_bounds(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    object.retain(|key, _| !BOUNDS.contains(&key.as_str()));
    if let Some(items) = object.get_mut("items") {
        remove_bounds(items);
    }
    // The keys of `properties` are names and no keywords.
    if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(remove_bounds);
    }
}

/// A JSON Schema and its text, which is written once: each prompt counts it.
#[derive(Debug, Clone, PartialEq, derive_more::Deref, derive_more::Display)]
#[display("{text}")]
pub struct ToolSchema {
    #[deref(forward)]
    value: Arc<Value>,
    text: Arc<str>,
}

impl ToolSchema {
    /// Its text, as JSON without white space.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl From<Value> for ToolSchema {
    fn from(value: Value) -> Self {
        Self { text: value.to_string().into(), value: Arc::new(value) }
    }
}

impl Serialize for ToolSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

/// SHA-256 of a call's arguments in canonical form: object keys sorted, no
/// white space, so that the order in which a model wrote them does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
#[display("{}", hex::encode(_0))]
pub struct ArgsHash([u8; 32]);

impl ArgsHash {
    /// The hash of the arguments.
    #[must_use]
    pub fn of(arguments: &Value) -> Self {
        Self(Sha256::digest(canonical(arguments).as_bytes()).into())
    }

    /// Its 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// JSON text with the keys of every object in byte order and no white space.
#[must_use]
pub fn canonical(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
            let parts: Vec<String> = entries
                .into_iter()
                .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), canonical(value)))
                .collect();
            format!("{{{}}}", parts.join(","))
        }
        Value::Array(items) => {
            let parts: Vec<String> = items.iter().map(canonical).collect();
            format!("[{}]", parts.join(","))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_brief_schema_keeps_names_types_and_purposes_and_properties_named_like_bounds() {
        let spec = ToolSpec {
            name: "find".parse().unwrap(),
            description: "Find.".into(),
            category: ToolCategory::Vm,
            risk: Risk::Safe,
            effect: Effect::Observes,
            parameters: json!({
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "maximum": {"type": "integer", "maximum": 9, "description": "Most."},
                    "words": {"type": "array", "maxItems": 3, "items": {"type": "string", "maxLength": 5}},
                    "kind": {"type": "string", "enum": ["a"], "examples": ["a"]},
                },
                "required": ["maximum"],
            })
            .into(),
        };
        let brief = json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "maximum": {"type": "integer", "description": "Most."},
                "words": {"type": "array", "items": {"type": "string"}},
                "kind": {"type": "string", "enum": ["a"]},
            },
            "required": ["maximum"],
        });
        assert_eq!(spec.brief().parameters.text(), brief.to_string());
    }

    #[test]
    fn names_are_narrow() {
        assert!("write_file".parse::<ToolName>().is_ok());
        for bad in ["", "Write", "a b", "rm-rf", "ä", &"x".repeat(65)] {
            assert!(bad.parse::<ToolName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_order_of_keys_does_not_change_the_hash() {
        let one: Value = serde_json::from_str(r#"{"a":1,"b":{"c":[1,2],"d":"\n"}}"#).unwrap();
        let two: Value = serde_json::from_str(r#"{"b":{"d":"\n","c":[1,2]},"a":1}"#).unwrap();
        assert_eq!(ArgsHash::of(&one), ArgsHash::of(&two));
        assert_ne!(
            ArgsHash::of(&one),
            ArgsHash::of(&json!({"a": 1, "b": {"c": [2, 1], "d": "\n"}}))
        );
        assert_eq!(canonical(&one), r#"{"a":1,"b":{"c":[1,2],"d":"\n"}}"#);
    }
}

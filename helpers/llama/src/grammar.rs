//! Pure: from a tool's JSON Schema to the schema of a call that always ends.
//!
//! A call is written as `{"name": "TOOL", "arguments": {…}}`. The schema that a
//! tool brings is narrowed: no unknown properties, required ones first and in the
//! order of `required`, and a length for each string, list and number, so that no
//! answer can go on for ever. It must never widen what the tool allows.

use std::collections::BTreeSet;

use automaton_core::wire::brain::LocalModelTool;
use serde_json::{Map, Value, json};

/// Most items of a list that has no `maxItems`.
const ITEMS_MAX: u64 = 16;
/// Largest magnitude of an unbounded number: what a double holds exactly, 2⁵³.
const NUMBER_MAX: i64 = 1 << 53;
/// Longest word that a weak model writes where a word is due, in characters.
const WORD_CHARS_MAX: u64 = 64;
/// Deepest nesting that is followed; deeper schemas are left as they are.
const DEPTH_MAX: u32 = 16;

/// How much of what a tool allows a model may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freedom {
    /// All of it.
    Full,
    /// What a weak model does not fill with noise: required properties only, and
    /// one word of the same letters where all examples of a string are one word.
    Little,
}

/// How a call's schema is narrowed.
#[derive(Debug, Clone, Copy)]
pub struct Narrowing {
    /// Longest string, in characters.
    pub string_chars_max: u64,
    /// How much may be written.
    pub freedom: Freedom,
}

/// The schema of a call of `tool`.
#[must_use]
pub fn call_schema(tool: &LocalModelTool, narrowing: Narrowing) -> Value {
    json!({
        "x-guidance": {
            "whitespace_flexible": false,
            "item_separator": ", ",
            "key_separator": ": ",
        },
        "type": "object",
        "properties": {
            "name": { "const": tool.name },
            "arguments": narrowed(&tool.parameters, narrowing, DEPTH_MAX),
        },
        "required": ["name", "arguments"],
        "additionalProperties": false,
    })
}

/// The shortest arguments of `tool`, with an empty string for each required
/// property: their length tells how much room the end of a call needs.
#[must_use]
pub fn shortest_arguments(tool: &LocalModelTool) -> String {
    let names = required(tool.parameters.get("required"));
    let fields = names.into_iter().map(|name| format!("{name}: \"\"", name = json!(name)));
    format!(" {{{}}}}}", fields.collect::<Vec<_>>().join(", "))
}

/// The names in a list of required properties.
fn required(list: Option<&Value>) -> Vec<String> {
    let names = list.and_then(Value::as_array).into_iter().flatten();
    names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// A schema with all that is in it narrowed.
fn narrowed(schema: &Value, narrowing: Narrowing, depth: u32) -> Value {
    let (Value::Object(source), Some(depth)) = (schema, depth.checked_sub(1)) else {
        return schema.clone();
    };
    let mut target = source.clone();
    for key in ["anyOf", "oneOf", "allOf"] {
        if let Some(Value::Array(choices)) = target.get_mut(key) {
            choices.iter_mut().for_each(|choice| *choice = narrowed(choice, narrowing, depth));
        }
    }
    for key in ["$defs", "definitions"] {
        if let Some(Value::Object(named)) = target.get_mut(key) {
            named.values_mut().for_each(|inner| *inner = narrowed(inner, narrowing, depth));
        }
    }
    if is(source, "object") {
        narrow_object(&mut target, narrowing, depth);
    }
    if is(source, "array") {
        target.entry("maxItems").or_insert_with(|| json!(ITEMS_MAX));
        if let Some(items) = target.get_mut("items") {
            *items = narrowed(items, narrowing, depth);
        }
    }
    let listed = source.contains_key("enum") || source.contains_key("const");
    if is(source, "string") {
        if narrowing.freedom == Freedom::Little
            && let Some(pattern) = word_like(source)
        {
            target.insert("pattern".to_owned(), json!(pattern));
            target.remove("maxLength");
            target.remove("minLength");
        } else if !listed && !source.contains_key("pattern") && !source.contains_key("format") {
            let own = source.get("maxLength").and_then(Value::as_u64).unwrap_or(u64::MAX);
            let least = source.get("minLength").and_then(Value::as_u64).unwrap_or(0);
            let limit = own.min(narrowing.string_chars_max.max(least));
            target.insert("maxLength".to_owned(), json!(limit));
        }
    } else {
        // On other types `format` is a remark, such as `uint32`.
        target.remove("format");
    }
    if !listed && (is(source, "integer") || is(source, "number")) {
        bound(&mut target, ["minimum", "exclusiveMinimum"], -NUMBER_MAX);
        bound(&mut target, ["maximum", "exclusiveMaximum"], NUMBER_MAX);
    }
    Value::Object(target)
}

/// The pattern of one word in the letters of the examples, where they are words
/// and nothing but the length is bound. A word begins with a letter or a digit.
fn word_like(schema: &Map<String, Value>) -> Option<String> {
    let examples = schema.get("examples")?.as_array()?;
    let words: Vec<&str> = examples.iter().map(Value::as_str).collect::<Option<_>>()?;
    let bound = ["pattern", "format", "enum", "const"].iter().any(|key| schema.contains_key(*key));
    let length = |key, none| schema.get(key).and_then(Value::as_u64).unwrap_or(none);
    let fits = length("minLength", 0) <= 1 && length("maxLength", WORD_CHARS_MAX) >= WORD_CHARS_MAX;
    let marks: BTreeSet<char> =
        words.iter().flat_map(|word| word.chars()).filter(|c| !c.is_ascii_alphanumeric()).collect();
    let plain = |mark: &char| "._-/:@".contains(*mark);
    if bound || !fits || words.is_empty() || !marks.iter().all(plain) {
        return None;
    }
    // A hyphen stands for itself at the end of a class.
    let hyphen = if marks.contains(&'-') { "-" } else { "" };
    let marks: String = marks.iter().filter(|mark| **mark != '-').collect();
    Some(format!("^[A-Za-z0-9][A-Za-z0-9{marks}{hyphen}]{{0,{}}}$", WORD_CHARS_MAX - 1))
}

/// Orders and closes the properties of an object.
fn narrow_object(target: &mut Map<String, Value>, narrowing: Narrowing, depth: u32) {
    let properties = match target.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    let required = required(target.get("required"));
    let first = required.iter().filter_map(|name| Some((name, properties.get(name)?)));
    let rest = properties
        .iter()
        .filter(|(name, _)| !required.contains(name) && narrowing.freedom == Freedom::Full);
    let ordered: Map<String, Value> = first
        .chain(rest)
        .map(|(name, inner)| (name.clone(), narrowed(inner, narrowing, depth)))
        .collect();
    target.insert("properties".to_owned(), Value::Object(ordered));
    target.insert("additionalProperties".to_owned(), Value::Bool(false));
}

/// Gives a number a bound where none of `keys` does.
fn bound(target: &mut Map<String, Value>, keys: [&str; 2], limit: i64) {
    if !keys.iter().any(|key| target.contains_key(*key)) {
        target.insert(keys[0].to_owned(), json!(limit));
    }
}

/// Whether a schema's `type` is or contains `name`.
fn is(schema: &Map<String, Value>, name: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(kind)) => kind == name,
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == name),
        _ => false,
    }
}

#[cfg(test)]
mod tests;

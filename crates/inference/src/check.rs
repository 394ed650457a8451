//! Pure: whether a call fits the schema of the tool that it names.
//!
//! A name in the wrapping of its format and arguments in another JSON form are read where they can mean one thing
//! only. All else goes back to the model as a sentence. It must never be guessed, filled with defaults or
//! run.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use automaton_core::arguments::fit_arguments;
use automaton_core::tool::{ToolName, ToolSchema, ToolSpec};
use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value};

use crate::error::InferenceError;
use crate::lenient;
use crate::provider::RawCall;
use crate::tool_name::unwrap_tool_name;

/// The longest arguments that are looked at, in bytes.
pub const ARGUMENTS_BYTES_MAX: usize = 256 << 10;

/// The longest sentence for the model, in bytes.
const SENTENCE_BYTES_MAX: usize = 600;

/// The longest that a text of the model is quoted, in characters.
const QUOTED_CHARS_MAX: usize = 64;

/// The compiled schemas of a set of tools. Each is compiled once, and shared by the sets that
/// are made of this one.
#[derive(Debug, Clone, Default)]
pub struct Checker {
    tools: BTreeMap<ToolName, Arc<CompiledSchema>>,
}

/// The schema of one tool.
#[derive(Debug)]
struct CompiledSchema {
    validator: Validator,
    schema: ToolSchema,
    /// The names of the arguments, where the tool takes no others.
    arguments: Option<Vec<String>>,
}

/// A call that fits.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedCall {
    /// The tool.
    pub tool: ToolName,
    /// The arguments, an object.
    pub arguments: Value,
}

/// A call that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct CallFault {
    /// Description of the fault and its remedy, for the model.
    pub sentence: String,
    /// Kind of the fault.
    pub kind: FaultKind,
}

/// The kinds of faults of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// There is no such tool.
    UnknownTool,
    /// The arguments are too long.
    TooLarge,
    /// The arguments are no JSON; perhaps they were cut.
    NotJson,
    /// The arguments are JSON, but no object.
    NotAnObject,
    /// The arguments do not fit the schema.
    BadArguments,
}

impl CallFault {
    fn new(kind: FaultKind, sentence: impl fmt::Display) -> Self {
        let mut sentence = sentence.to_string();
        sentence.truncate(sentence.floor_char_boundary(SENTENCE_BYTES_MAX));
        Self { sentence, kind }
    }
}

impl CompiledSchema {
    fn new(spec: &ToolSpec) -> Result<Self, InferenceError> {
        let validator = jsonschema::validator_for(&spec.parameters).map_err(|source| {
            InferenceError::Schema { tool: spec.name.clone(), source: Box::new(source) }
        })?;
        let properties = spec.parameters["properties"].as_object();
        let names = properties.into_iter().flat_map(|all| all.keys().cloned());
        let is_closed = spec.parameters["additionalProperties"] == false;
        let arguments = is_closed.then(|| names.collect());
        Ok(Self { validator, schema: spec.parameters.clone(), arguments })
    }
}

impl Checker {
    /// Compiles the schemas of these tools.
    ///
    /// # Errors
    /// [`InferenceError::Schema`] when one is no JSON Schema.
    pub fn new(specs: &[ToolSpec]) -> Result<Self, InferenceError> {
        let mut checker = Self::default();
        for spec in specs {
            checker.insert(spec)?;
        }
        Ok(checker)
    }

    /// Compiles the schema of one more tool, in place of one of the same name.
    ///
    /// # Errors
    /// [`InferenceError::Schema`] when it is no JSON Schema; nothing is changed then.
    pub fn insert(&mut self, spec: &ToolSpec) -> Result<(), InferenceError> {
        self.tools.insert(spec.name.clone(), Arc::new(CompiledSchema::new(spec)?));
        Ok(())
    }

    /// Forgets a tool.
    pub fn remove(&mut self, name: &ToolName) {
        self.tools.remove(name);
    }

    /// Returns a checker of those of its tools that are offered.
    #[must_use]
    pub fn only(&self, offered: &[ToolSpec]) -> Self {
        let known = |spec: &ToolSpec| self.tools.get_key_value(&spec.name);
        let shared = offered.iter().filter_map(known);
        Self { tools: shared.map(|(name, schema)| (name.clone(), Arc::clone(schema))).collect() }
    }

    /// Reads a call and checks it.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn check(&self, call: &RawCall) -> Result<CheckedCall, CallFault> {
        self.check_renamed(call, |_, _| ())
    }

    /// Reads a call, has the names of its arguments put right for its tool, and checks it.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn check_renamed(
        &self,
        call: &RawCall,
        rename: impl FnOnce(&ToolName, &mut Map<String, Value>),
    ) -> Result<CheckedCall, CallFault> {
        let (tool, compiled) = self.find(&call.tool)?;
        let mut arguments = read_arguments(tool, &call.arguments)?;
        rename(tool, &mut arguments);
        fit_arguments(&compiled.schema, &mut arguments);
        let arguments = Value::Object(arguments);
        compiled.check(tool, &arguments)?;
        Ok(CheckedCall { tool: tool.clone(), arguments })
    }

    fn find(&self, name: &str) -> Result<(&ToolName, &CompiledSchema), CallFault> {
        // silent-ok: what is no name at all is no tool either.
        let get = |name: &str| {
            name.parse().ok().and_then(|name: ToolName| self.tools.get_key_value(&name))
        };
        let known = unwrap_tool_name(name, |name| get(name).is_some()).and_then(get);
        let known = known.map(|(name, compiled)| (name, &**compiled));
        known.ok_or_else(|| self.unknown_tool(name))
    }

    /// Returns the fault of a call that names none of the tools.
    #[must_use]
    pub fn unknown_tool(&self, name: &str) -> CallFault {
        let shown: String =
            name.chars().filter(|c| !c.is_control()).take(QUOTED_CHARS_MAX).collect();
        let tools: Vec<&str> = self.tools.keys().map(ToolName::as_str).collect();
        let sentence = format!(
            "There is no tool '{shown}'. Nothing was run. The tools are: {}.",
            tools.join(", ")
        );
        CallFault::new(FaultKind::UnknownTool, sentence)
    }
}

/// Reads the arguments of a call as an object.
fn read_arguments(tool: &ToolName, text: &str) -> Result<Map<String, Value>, CallFault> {
    let bytes = text.len();
    if bytes > ARGUMENTS_BYTES_MAX {
        let sentence = format!(
            "The arguments of {tool} are {bytes} bytes long, more than the \
             {ARGUMENTS_BYTES_MAX} that are allowed. Nothing was run. Split the work into smaller calls."
        );
        return Err(CallFault::new(FaultKind::TooLarge, sentence));
    }
    let arguments = lenient::read_arguments(text).map_err(|error| {
        let sentence = format!(
            "The arguments of {tool} are not valid JSON ({error}); they may have been cut off. \
             Nothing was run. Call {tool} again with one complete JSON object, {{}} if it needs nothing."
        );
        CallFault::new(FaultKind::NotJson, sentence)
    })?;
    arguments.map_err(|_| {
        let sentence = format!(
            "The arguments of {tool} must be a JSON object with named values. Nothing was run."
        );
        CallFault::new(FaultKind::NotAnObject, sentence)
    })
}

impl CompiledSchema {
    /// Checks the arguments of a call by the schema.
    fn check(&self, tool: &ToolName, arguments: &Value) -> Result<(), CallFault> {
        self.know_all(tool, arguments)?;
        self.validator.validate(arguments).map_err(|error| {
            let path = error.instance_path().to_string();
            let place = if path.is_empty() { String::new() } else { format!(" at {path}") };
            let wrong = match error.kind() {
                // The validator's own message names the first few.
                ValidationErrorKind::Enum { options } => one_of(options),
                // The value is left out: it is the model's own text, and long.
                _ => error.masked_with("the value").to_string(),
            };
            let sentence = format!(
                "The arguments of {tool} do not fit its schema{place}: {wrong}. Nothing was run. \
                 Call {tool} again with arguments that fit."
            );
            CallFault::new(FaultKind::BadArguments, sentence)
        })
    }

    /// Checks that the tool has each of the arguments that are given.
    fn know_all(&self, tool: &ToolName, arguments: &Value) -> Result<(), CallFault> {
        let Some(known) = &self.arguments else { return Ok(()) };
        let mut given = arguments.as_object().into_iter().flat_map(|all| all.keys());
        let Some(strange) = given.find(|name| !known.contains(name)) else { return Ok(()) };
        let shown: String =
            strange.chars().filter(|c| !c.is_control()).take(QUOTED_CHARS_MAX).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let sentence = format!(
            "{tool} has no argument '{shown}'; there are: {known}. Nothing was run. Call {tool} again."
        );
        Err(CallFault::new(FaultKind::BadArguments, sentence))
    }
}

/// All values that there are.
fn one_of(options: &Value) -> String {
    let options = options.as_array().into_iter().flatten();
    let options: Vec<String> = options.map(Value::to_string).collect();
    format!("the value must be one of {}", options.join(", "))
}

#[cfg(test)]
mod tests;

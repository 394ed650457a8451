//! Pure: the model's answer in a step, and its recognition later.
//!
//! An agent may show an answer shortened and with its own ids. An answer must never be recognised
//! by an id.

use automaton_core::tool::ArgsHash;
use automaton_core::wire::chat::ChatMessage;
use toml::{Table, Value};

use super::view::{ConversationView, content};
use super::{Arguments, CallTemplate, ModelAct, Template};

/// An answer of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptedAnswer {
    /// The text. May be empty if there are calls.
    pub text: String,
    /// The calls, in order.
    pub calls: Vec<ScriptedCall>,
}

/// A call of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptedCall {
    /// The provider's id, unique in the story: `call_STEP_N`.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The arguments as text, usually JSON.
    pub arguments: String,
}

impl ScriptedAnswer {
    /// Returns true if a message of the conversation is this answer.
    pub(super) fn matches(&self, message: &ChatMessage) -> bool {
        let shown = message.tool_calls.as_deref().unwrap_or_default();
        let same_tools = shown.len() == self.calls.len()
            && self.calls.iter().zip(shown).all(|(own, shown)| own.tool == shown.function.name);
        let same_arguments = || {
            let mut pairs = self.calls.iter().zip(shown);
            pairs.all(|(own, shown)| same_json(&own.arguments, &shown.function.arguments))
        };
        let text = head(&self.text);
        same_tools
            && if text.is_empty() { same_arguments() } else { head(content(message)) == text }
    }
}

/// Returns the beginning of a text that identifies it, since an agent may cut long texts.
pub(super) fn head(text: &str) -> String {
    text.trim().chars().take(200).collect()
}

fn same_json(one: &str, other: &str) -> bool {
    let hash = |text| serde_json::from_str(text).map(|value| ArgsHash::of(&value));
    match (hash(one), hash(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => one.trim() == other.trim(),
    }
}

/// Builds a step's answer, with the tools' results in its placeholders.
pub(super) fn fill(
    index: usize,
    model: &ModelAct,
    view: &ConversationView<'_>,
) -> Result<ScriptedAnswer, String> {
    let text = model.say.fill(|tool| view.result(tool))?;
    let call = |(nth, call): (usize, &CallTemplate)| {
        let arguments = match &call.arguments {
            Arguments::Raw(template) => template.fill(|tool| view.result(tool))?,
            Arguments::Table(table) => {
                let filled = fill_table(table, view)?;
                serde_json::to_string(&filled).map_err(|error| error.to_string())?
            }
        };
        let id = format!("call_{}_{}", index + 1, nth + 1);
        Ok(ScriptedCall { id, tool: call.tool.clone(), arguments })
    };
    let calls = model.calls.iter().enumerate().map(call).collect::<Result<_, String>>()?;
    Ok(ScriptedAnswer { text, calls })
}

fn fill_table(table: &Table, view: &ConversationView<'_>) -> Result<Table, String> {
    table.iter().map(|(key, value)| Ok((key.clone(), fill_value(value, view)?))).collect()
}

fn fill_value(value: &Value, view: &ConversationView<'_>) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => {
            let template = Template::parse(text).map_err(|error| error.to_string())?;
            Value::String(template.fill(|tool| view.result(tool))?)
        }
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| fill_value(item, view)).collect::<Result<_, _>>()?)
        }
        Value::Table(table) => Value::Table(fill_table(table, view)?),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {
            value.clone()
        }
    })
}

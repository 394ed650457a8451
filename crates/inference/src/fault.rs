//! Pure: what is wrong with an answer that came whole.
//!
//! A model may write its calls as text, be silenced by its provider's filter, or be cut
//! off. That is told to it, and then to the creator. A call that is written as text must
//! never be run: nobody knows whether it was meant.

use automaton_core::tool::ToolSpec;
use serde_json::{Deserializer, Value};

use crate::provider::{Completion, FinishReason};

/// The most places of one answer at which a written call is looked for.
const PLACES_MAX: usize = 64;

/// Before what a call written as JSON stands.
const BEFORE_JSON: [&str; 9] = [
    "```json",
    "```tool_call",
    "```tool_code",
    "```",
    "<tool_call>",
    "<tool_calls>",
    "<|tool_call|>",
    "<|python_tag|>",
    "[TOOL_CALLS]",
];

/// Before what the name of a called tool stands.
const BEFORE_NAME: [&str; 6] = [
    "<function=",
    "<invoke name=\"",
    "<tool_call>",
    "[TOOL_CALLS]",
    "<|tool▁sep|>",
    "<｜tool▁sep｜>",
];

/// Fault of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AnswerFault {
    /// It holds calls as text, which did not run.
    WrittenCall,
    /// The provider withheld it, or a part of it.
    Filtered,
    /// It reached the limit of tokens.
    CutOff,
}

impl AnswerFault {
    /// Returns the fault of this answer. An answer with proper calls has none; a faulty call is
    /// reported as its result.
    #[must_use]
    pub fn from_reply(reply: &Completion, tools: &[ToolSpec]) -> Option<Self> {
        match reply.finish {
            _ if !reply.calls.is_empty() => None,
            FinishReason::Filtered => Some(Self::Filtered),
            _ if writes_call(&reply.text, tools) => Some(Self::WrittenCall),
            FinishReason::Length | FinishReason::Repetition => Some(Self::CutOff),
            FinishReason::Stop | FinishReason::ToolCalls => None,
        }
    }

    /// Returns the message for the model.
    #[must_use]
    pub const fn for_model(self) -> &'static str {
        match self {
            Self::WrittenCall => {
                "You wrote a tool call as text, and it did not run. Call the tool through the \
                 tool interface, or say what you have to say without it."
            }
            Self::Filtered => {
                "Your provider withheld your last answer. Go on another way, and say so if you \
                 cannot."
            }
            Self::CutOff => {
                "Your answer was cut off at the most tokens that it may have. Be brief, and call \
                 one tool; write what is long in pieces."
            }
        }
    }

    /// Returns the message for the creator after a repetition.
    #[must_use]
    pub const fn for_creator(self) -> &'static str {
        match self {
            Self::WrittenCall => {
                "The model writes its tool calls as text instead of making them, so nothing runs. \
                 Its server may need a parser for its calls (vLLM: --tool-call-parser, llama.cpp: \
                 --jinja); or choose a model that calls tools."
            }
            Self::Filtered => {
                "The model's provider withholds its answers. Ask for it in other words, or choose \
                 another model."
            }
            Self::CutOff => {
                "The model's answers are cut off. Raise `maxTokensPerTurn`, or ask for less at a \
                 time."
            }
        }
    }
}

/// Returns true if a text contains a call of one of the tools: a name between the marks of some
/// model's format, or an object with name and arguments in the place of a call.
fn writes_call(text: &str, tools: &[ToolSpec]) -> bool {
    let known = |name: &str| tools.iter().any(|tool| tool.name.as_str() == name);
    let named = BEFORE_NAME.iter().any(|mark| {
        after_each(text, mark).any(|rest| {
            let rest = rest.trim_start();
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
            end.is_some_and(|end| known(&rest[..end]))
        })
    });
    let written = || {
        let places = BEFORE_JSON.iter().flat_map(|mark| after_each(text, mark));
        std::iter::once(text).chain(places).any(|rest| {
            let rest = rest.trim_start();
            // silent-ok: what is no JSON is no call.
            let value = Deserializer::from_str(rest).into_iter::<Value>().next();
            let starts = rest.starts_with(['{', '[']);
            starts && value.and_then(Result::ok).is_some_and(|value| is_call(&value, &known))
        })
    };
    named || written()
}

/// Returns the text after each occurrence of a mark.
fn after_each<'a>(text: &'a str, mark: &'a str) -> impl Iterator<Item = &'a str> {
    text.match_indices(mark).take(PLACES_MAX).map(move |(at, _)| &text[at + mark.len()..])
}

fn is_call(value: &Value, known: &dyn Fn(&str) -> bool) -> bool {
    if let Value::Array(calls) = value {
        return calls.first().is_some_and(|call| is_call(call, known));
    }
    let inner = value.get("function").filter(|inner| inner.is_object()).unwrap_or(value);
    let name = ["name", "tool", "tool_name", "function"].into_iter().find_map(|key| inner.get(key));
    let arguments = ["arguments", "parameters", "args", "input", "tool_input"];
    let has_arguments = arguments
        .into_iter()
        .any(|key| inner.get(key).is_some_and(|it| it.is_object() || it.is_string()));
    has_arguments && name.and_then(Value::as_str).is_some_and(known)
}

#[cfg(test)]
mod tests {
    use automaton_core::money::Microcents;
    use automaton_core::record::Usage;
    use automaton_core::tool::{Effect, Risk, ToolCategory};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::provider::{RawCall, TokenCountSource};

    fn tools() -> Vec<ToolSpec> {
        let tool = |name: &str| ToolSpec {
            name: name.parse().unwrap(),
            description: "Runs.".into(),
            category: ToolCategory::Vm,
            risk: Risk::Safe,
            effect: Effect::Mutates,
            parameters: json!({"type": "object"}).into(),
        };
        vec![tool("exec"), tool("write_file")]
    }

    fn reply(text: &str, finish: FinishReason, calls: usize) -> Completion {
        let call = RawCall { provider_id: None, tool: "exec".into(), arguments: "{}".into() };
        let usage = Usage {
            model: "m".to_owned(),
            prompt_tokens: 0,
            cached_tokens: 0,
            completion_tokens: 0,
            cost: Microcents::ZERO,
            estimated: false,
            first_token_ms: 0,
            total_ms: 0,
            unknown_end: None,
        };
        let text = text.to_owned();
        let calls = vec![call; calls];
        Completion { text, calls, finish, usage, counted: TokenCountSource::Reported }
    }

    #[test]
    fn a_call_that_is_written_as_text_is_known_in_every_format() {
        for text in [
            "```json\n{\"name\": \"exec\", \"arguments\": {\"command\": \"ls\"}}\n```",
            "I look.\n\n```\n{\"tool\": \"exec\", \"args\": {}}\n```\nThen I write.",
            "```tool_call\n{\"name\":\"exec\",\"parameters\":{}}\n```",
            "<tool_call>\n{\"name\": \"exec\", \"arguments\": {}}\n</tool_call>",
            "<tool_call>exec\n<arg_key>command</arg_key><arg_value>ls</arg_value></tool_call>",
            "<function=exec>{\"command\": \"ls\"}</function>",
            "<function=write_file>\n<parameter=path>\na\n</parameter>\n</function>",
            "<function_calls><invoke name=\"exec\"><parameter name=\"command\">ls",
            "[TOOL_CALLS][{\"name\": \"exec\", \"arguments\": {}}]",
            "[TOOL_CALLS]exec[ARGS]{\"command\": \"ls\"}",
            "<|python_tag|>{\"name\": \"exec\", \"parameters\": {}}",
            "<｜tool▁call▁begin｜>function<｜tool▁sep｜>exec\n```json\n{}\n```",
            "{\"name\": \"exec\", \"arguments\": \"{}\"}",
            "{\"type\": \"function\", \"function\": {\"name\": \"exec\", \"arguments\": {}}}",
        ] {
            let fault = AnswerFault::from_reply(&reply(text, FinishReason::Stop, 0), &tools());
            assert_eq!(fault, Some(AnswerFault::WrittenCall), "{text}");
            assert_eq!(
                AnswerFault::from_reply(&reply(text, FinishReason::Stop, 1), &tools()),
                None,
                "{text}"
            );
        }
    }

    #[test]
    fn a_text_that_shows_json_or_names_a_tool_is_a_text() {
        for text in [
            "",
            "I shall call exec now, and then write_file.",
            "```json\n{\"name\": \"left-pad\", \"version\": \"1.0.0\"}\n```",
            "```json\n{\"name\": \"exec\", \"version\": 1}\n```",
            "```json\n{\"name\": \"Anna\", \"arguments\": {\"for\": 3, \"against\": 2}}\n```",
            "```json\n{\"exec\": {\"arguments\": {}}}\n```",
            "The file holds `{\"name\": \"exec\", \"arguments\": {}}` in line 3.",
            "Use <tool_call> tags, or <function=NAME>.",
            "```rust\nfn exec() {}\n```",
            "{not json",
            "[1, 2, 3]",
            "[]",
        ] {
            assert_eq!(
                AnswerFault::from_reply(&reply(text, FinishReason::Stop, 0), &tools()),
                None,
                "{text}"
            );
        }
    }

    #[test]
    fn what_was_withheld_or_cut_off_is_told() {
        let of = |finish, calls| AnswerFault::from_reply(&reply("Well,", finish, calls), &tools());
        assert_eq!(of(FinishReason::Filtered, 0), Some(AnswerFault::Filtered));
        assert_eq!(of(FinishReason::Length, 0), Some(AnswerFault::CutOff));
        assert_eq!(of(FinishReason::Repetition, 0), Some(AnswerFault::CutOff));
        for finish in [FinishReason::Filtered, FinishReason::Length, FinishReason::ToolCalls] {
            assert_eq!(of(finish, 1), None);
        }
    }

    proptest! {
        #[test]
        fn any_text_can_be_looked_at(text in "([a-z{}\\[\\]\":<>=` ]|```json|<tool_call>|exec|é){0,40}") {
            let fault = AnswerFault::from_reply(&reply(&text, FinishReason::Length, 0), &tools());
            prop_assert!(fault.is_some());
        }
    }
}
